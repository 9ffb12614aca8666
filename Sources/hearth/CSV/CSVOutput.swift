// Documents as CSV: a first reading finds the columns, a second one writes the records.

import Basics
import DocumentJSON
import DocumentModel
import HearthClient

/// The fields of documents as columns: maps become columns of their members, everything else is one value.
enum CSVFields {
    /// The names of a field and of the maps around it, as bytes: texts that look alike may be different names.
    typealias Path = [[UInt8]]

    /// Calls `body` with the path and the value of each cell of a document.
    static func forEach(
        _ fields: [UInt8], _ body: (Path, Value) throws -> Void
    ) throws {
        try forEach(try MapValue(documentBytes: fields.byteSpan), below: [], body)
    }

    private static func forEach(
        _ map: MapValue, below path: Path, _ body: (Path, Value) throws -> Void
    ) throws {
        for (name, value) in map.entries {
            // An empty map is a value; so are vectors, which are maps with a type.
            let place = path + [Array(name.utf8)]
            if case .map(let inner) = value, !inner.isEmpty, inner["__type__"] == nil {
                try forEach(inner, below: place, body)
            } else {
                try body(place, value)
            }
        }
    }

    /// The type of a column that has this value alone; nil for null.
    static func type(of value: Value) -> CSVType? {
        switch value {
        case .null: nil
        case .boolean: .boolean
        case .integer: .integer
        case .double: .double
        case .timestamp: .timestamp
        case .string: .string
        // An empty cell of bytes is none.
        case .bytes(let bytes): bytes.isEmpty ? .json : .bytes
        case .reference: .reference
        case .geoPoint, .array, .map: .json
        }
    }
}

/// Finds the columns of documents.
final class CSVColumnFinder: ExportOutput {
    private var types: [CSVFields.Path: CSVType?] = [:]

    /// Columns of a file.
    static let columnsMax = 10_000

    func write(_ page: [NamedDocument]) throws -> Int {
        for document in page { try CSVFields.forEach(document.content.fields, add) }
        return page.reduce(0) { $0 + $1.content.fields.count }
    }

    private func add(_ path: CSVFields.Path, _ value: Value) throws {
        let type = CSVFields.type(of: value)
        guard let known = types[path] else {
            if types.count == Self.columnsMax {
                throw CommandFailure("the documents have more than \(Self.columnsMax) fields; export them as lines")
            }
            types[path] = .some(type)
            return
        }
        guard let type, known != type else { return }
        types[path] = .some(known == nil ? type : .json)
    }

    func finish() throws {}

    /// The columns in the order of their paths. One that has only null is a string.
    func columns() throws -> [(path: FieldPath, type: CSVType)] {
        try types.map { (try FieldPath(utf8Segments: $0.key), $0.value ?? .string) }.sorted { $0.0 < $1.0 }
    }
}

/// Writes documents as records; the first column is `__name__`.
final class CSVOutput: ExportOutput {
    private let output: ExportBytes
    private let prefixBytes: Int
    private let columns: [(path: FieldPath, type: CSVType)]
    private let places: [CSVFields.Path: Int]
    private var writer: JSONLineWriter
    private var hasHeader = false

    /// - Parameters:
    ///   - prefix: what names begin with that is not a part of `__name__`.
    ///   - database: references within it are written relative.
    init(
        _ output: ExportBytes, prefix: String, database: String, _ columns: [(path: FieldPath, type: CSVType)]
    ) {
        self.output = output
        self.columns = columns
        prefixBytes = prefix.utf8.count
        places = Dictionary(
            uniqueKeysWithValues: columns.enumerated().map { ($0.element.path.utf8Segments, $0.offset + 1) })
        writer = JSONLineWriter(database: database)
    }

    func write(_ page: [NamedDocument]) throws -> Int {
        var bytes: [UInt8] = []
        appendHeader(&bytes)
        for document in page {
            var cells = [String](repeating: "", count: columns.count + 1)
            cells[0] = Self.quoted(String(decoding: document.name.utf8.dropFirst(prefixBytes), as: UTF8.self))
            try CSVFields.forEach(document.content.fields) { path, value in
                guard let place = places[path] else { return }
                cells[place] = try cell(value, columns[place - 1].type)
            }
            bytes += cells.joined(separator: ",").utf8
            bytes += [0x0D, 0x0A]
        }
        try output.write(bytes)
        return bytes.count
    }

    private func appendHeader(_ bytes: inout [UInt8]) {
        if hasHeader { return }
        hasHeader = true
        let names = ["__name__"] + columns.map { Self.quoted($0.path.description) }
        bytes += names.joined(separator: ",").utf8
        bytes += [0x0D, 0x0A]
    }

    func finish() throws {
        var bytes: [UInt8] = []
        appendHeader(&bytes)
        try output.write(bytes)
        try output.finish()
    }

    private func cell(_ value: Value, _ type: CSVType) throws -> String {
        if case .null = value { return CSVType.null }
        let json = String(decoding: try writer.json(of: value.wireBytes.byteSpan), as: UTF8.self)
        switch (type, value) {
        case (.json, _): return Self.quoted(json)
        case (_, .string(let text)): return Self.quoted(text, always: text.isEmpty || text == CSVType.null)
        case (_, .timestamp), (_, .bytes), (_, .reference), (_, .double):
            guard json.hasPrefix("{") else { return json }
            let object = try JSONObject(Array(json.utf8))
            for name in ["$timestamp", "$bytes", "$reference", "$double"] {
                if let text = try object.string(name) { return Self.quoted(text) }
            }
            return Self.quoted(json)
        default: return json
        }
    }

    /// A cell, in quotes where RFC 4180 needs them.
    private static func quoted(_ text: String, always: Bool = false) -> String {
        let special = text.utf8.contains { $0 == 0x22 || $0 == 0x2C || $0 == 0x0A || $0 == 0x0D }
        guard always || special else { return text }
        return CSVReader.quoted(text)
    }

    /// The types as `hearth load --types` has them, so that what is loaded is what was exported.
    static func typesText(_ columns: [(path: FieldPath, type: CSVType)]) -> String {
        if columns.isEmpty { return "inferred" }
        return columns.map { CSVTypes.text($0.path.description, $0.type) }.joined(separator: ",")
    }
}
