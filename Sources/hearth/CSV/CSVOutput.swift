// Documents as CSV: a first reading finds the columns, a second one writes the records.

import Basics
import DocumentJSON
import DocumentModel
import HearthClient

/// The fields of documents as columns: maps become columns of their members, everything else is one value.
enum CSVFields {
    /// Calls `body` with the path and the value of each cell of a document or of a map, and the value's bytes.
    ///
    /// - Parameter path: of the map, as ``appendName(_:to:)`` writes it; the same after the call.
    static func forEach(
        _ entries: RawSpan, below path: inout ByteBuffer, _ body: (RawSpan, WireValue, RawSpan) throws -> Void
    ) throws {
        var reader = FieldEntryReader(entries)
        let byteCount = path.count
        while try reader.next() {
            guard let value = WireValue(reader.value) else { throw InvalidDocument(.valueTypeMissing, offset: 0) }
            appendName(reader.key, to: &path)
            // An empty map is a value; so are vectors and others that are maps with a type.
            if value.typeClass == .map, !value.payload.isEmpty {
                try forEach(value.payload, below: &path, body)
            } else {
                try body(path.bytes, value, reader.value)
            }
            path.truncate(to: byteCount)
        }
    }

    /// Appends the name of a field to the path of the map around it: its bytes after their number.
    static func appendName(_ name: RawSpan, to path: inout ByteBuffer) {
        path.append(littleEndian: UInt32(name.byteCount))
        path.append(name)
    }

    /// The names of a path.
    static func names(_ path: RawSpan) -> [[UInt8]] {
        var names: [[UInt8]] = []
        var offset = 0
        while offset < path.byteCount {
            let end = offset + 4 + Int(path.littleEndian32(at: offset))
            names.append([UInt8](copying: path.extracting(offset + 4..<end)))
            offset = end
        }
        return names
    }

    /// The type of a column that has this value alone; nil for null.
    static func type(of value: WireValue) -> CSVType? {
        switch value.tag {
        case ValueTag.null: nil
        case ValueTag.boolean: .boolean
        case ValueTag.integer: .integer
        case ValueTag.double: .double
        case ValueTag.timestamp: .timestamp
        case ValueTag.string: .string
        // An empty cell of bytes is none.
        case ValueTag.bytes: value.payload.isEmpty ? .json : .bytes
        case ValueTag.reference: .reference
        default: .json
        }
    }
}

/// Finds the columns of documents.
final class CSVColumnFinder: ExportOutput {
    /// Paths and the places of their types in ``types``.
    private var paths = ByteTable()
    private var types: [CSVType?] = []

    /// Columns of a file.
    static let columnsMax = 10_000

    func write(_ page: [NamedDocument]) throws -> Int {
        var path = ByteBuffer(capacity: 256)
        for document in page { try CSVFields.forEach(document.content.fields.byteSpan, below: &path, add) }
        return page.reduce(0) { $0 + $1.content.fields.count }
    }

    private func add(_ path: RawSpan, _ value: WireValue, _: RawSpan) throws {
        let type = CSVFields.type(of: value)
        guard let place = paths.insert(path, hash: ByteTable.hash(path), value: types.count) else {
            if types.count == Self.columnsMax {
                throw CommandFailure("the documents have more than \(Self.columnsMax) fields; export them as lines")
            }
            types.append(type)
            return
        }
        let known = types[place]
        guard let type, known != type else { return }
        types[place] = known == nil ? type : .json
    }

    func finish() throws {}

    /// The columns in the order of their paths. One that has only null is a string.
    func columns() throws -> [(path: FieldPath, type: CSVType)] {
        try types.enumerated().map { place, type in
            var path = ByteBuffer(capacity: 256)
            paths.appendKey(at: place, to: &path)
            return (try FieldPath(utf8Segments: CSVFields.names(path.bytes)), type ?? .string)
        }.sorted { $0.0 < $1.0 }
    }
}

/// Writes documents as records; the first column is `__name__`.
final class CSVOutput: ExportOutput {
    private let output: ExportBytes
    private let prefixBytes: Int
    private let columns: [(path: FieldPath, type: CSVType)]
    /// The columns of paths.
    private var places = ByteTable()
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
        writer = JSONLineWriter(database: database)
        var path = ByteBuffer(capacity: 256)
        for (place, column) in columns.enumerated() {
            path.reset()
            for name in column.path.utf8Segments { CSVFields.appendName(name.byteSpan, to: &path) }
            places.set(path.bytes, to: place)
        }
    }

    func write(_ page: [NamedDocument]) throws -> Int {
        var bytes: [UInt8] = []
        appendHeader(&bytes)
        var path = ByteBuffer(capacity: 256)
        // The cells of a record in the order in which the document has them.
        var texts: [UInt8] = []
        var cells: [Range<Int>] = []
        for document in page {
            texts.removeAll(keepingCapacity: true)
            cells = [Range<Int>](repeating: 0..<0, count: columns.count)
            try CSVFields.forEach(document.content.fields.byteSpan, below: &path) { path, value, valueBytes in
                guard let place = places.value(of: path) else { return }
                let start = texts.count
                try appendCell(value, valueBytes, columns[place].type, to: &texts)
                cells[place] = start..<texts.count
            }
            document.name.withUTF8Span { name in
                Self.append(name.extracting(prefixBytes..<name.byteCount), to: &bytes)
            }
            for cell in cells {
                bytes.append(UInt8(ascii: ","))
                bytes.append(contentsOf: texts.byteSpan.extracting(cell))
            }
            bytes += [0x0D, 0x0A]
        }
        try output.write(bytes)
        return bytes.count
    }

    private func appendHeader(_ bytes: inout [UInt8]) {
        if hasHeader { return }
        hasHeader = true
        bytes += "__name__".utf8
        for column in columns {
            bytes.append(UInt8(ascii: ","))
            column.path.description.withUTF8Span { Self.append($0, to: &bytes) }
        }
        bytes += [0x0D, 0x0A]
    }

    func finish() throws {
        var bytes: [UInt8] = []
        appendHeader(&bytes)
        try output.write(bytes)
        try output.finish()
    }

    private func appendCell(
        _ value: WireValue, _ valueBytes: RawSpan, _ type: CSVType, to bytes: inout [UInt8]
    ) throws {
        if value.isNull { return bytes += CSVType.null.utf8 }
        if type != .json, value.tag == ValueTag.string {
            let isQuoted = value.payload.isEmpty || value.payload.equalsUTF8(of: CSVType.null)
            return Self.append(value.payload, isQuoted: isQuoted, to: &bytes)
        }
        let json = try writer.json(of: valueBytes)
        guard type != .json, json.first == UInt8(ascii: "{") else { return Self.append(json.byteSpan, to: &bytes) }
        // The text of an object with one member: a time, bytes, a reference, a number that JSON lacks. Without escapes
        // it is what lies between the quotes.
        let object = json.byteSpan
        if let colon = object.firstOffset(of: UInt8(ascii: ":")), object.firstOffset(of: UInt8(ascii: "\\")) == nil {
            return Self.append(object.extracting(colon + 2..<object.byteCount - 2), to: &bytes)
        }
        guard case .object(let members) = try JSONValue.read(json), case .string(let text)? = members.values.first
        else { throw InvalidDocument(.valueTypeMissing, offset: 0) }
        text.withUTF8Span { Self.append($0, to: &bytes) }
    }

    private static let special = ByteSet("\",\r\n".utf8)

    /// Appends a cell, in quotes where RFC 4180 needs them.
    private static func append(_ text: RawSpan, isQuoted: Bool = false, to bytes: inout [UInt8]) {
        if isQuoted || text.firstOffset(in: special) != nil {
            CSVReader.appendQuoted(text, to: &bytes)
        } else {
            bytes.append(contentsOf: text)
        }
    }

    /// The types as `hearth load --types` has them, so that what is loaded is what was exported.
    static func typesText(_ columns: [(path: FieldPath, type: CSVType)]) -> String {
        if columns.isEmpty { return "inferred" }
        return columns.map { CSVTypes.text($0.path.description, $0.type) }.joined(separator: ",")
    }
}
