// A CSV file as JSON lines, for the loader.

/// The records of a file as lines of JSON: one record a line, in order. Memory is bounded by a record.
final class CSVLines: ByteSource {
    private let reader: CSVReader
    private let columns: CSVColumns

    /// - Parameters:
    ///   - source: the file from its start.
    ///   - columns: of its header, with their types.
    init(_ source: any ByteSource, name: String, _ columns: CSVColumns) throws(CommandFailure) {
        reader = try CSVReader(source, name: name)
        guard let header = try reader.next() else { throw CommandFailure("\(name) has no header") }
        if let types = columns.pending {
            var known = try CSVColumns(header)
            try types.apply(to: &known)
            self.columns = known
            return
        }
        self.columns = columns
        guard header.map(\.text) == columns.columns.map(\.name) else {
            throw CommandFailure("\(name) has another header than before")
        }
    }

    func read(into bytes: inout [UInt8], atMost count: Int) throws(CommandFailure) -> Bool {
        let start = bytes.count
        while bytes.count - start < count, let record = try reader.next() {
            bytes += try columns.line(record, reader).utf8
            bytes.append(0x0A)
        }
        return bytes.count > start
    }
}

/// What a CSV file holds, before it is loaded.
struct CSVSurvey {
    let columns: CSVColumns
    let records: Int

    /// Finds the types of the columns of a file, and reads all cells as these types: a file with a wrong cell is not
    /// loaded in part.
    static func of(_ path: String, _ types: CSVTypes) throws(CommandFailure) -> CSVSurvey {
        let reader = try CSVReader(try CSVSurvey.bytes(of: path), name: path)
        guard let header = try reader.next() else { throw CommandFailure("\(path) has no header") }
        var columns = try CSVColumns(header)
        try types.apply(to: &columns)
        var inferred = header.map { _ in CSVInference() }
        var records = 0
        while let record = try reader.next() {
            records += 1
            for (number, cell) in record.prefix(header.count).enumerated() { inferred[number].add(cell) }
        }
        for (number, column) in columns.columns.enumerated() where types.declared[column.name] == nil {
            columns.set(inferred[number].type, at: number)
        }
        let lines = try CSVLines(try CSVSurvey.bytes(of: path), name: path, columns)
        var part: [UInt8] = []
        while try lines.read(into: &part, atMost: 1 << 20) { part.removeAll(keepingCapacity: true) }
        return CSVSurvey(columns: columns, records: records)
    }

    /// The bytes of a file, decompressed.
    static func bytes(of path: String) throws(CommandFailure) -> any ByteSource {
        let source = PeekableBytes(try DescriptorBytes(path))
        guard try source.first(2).starts(with: InputKind.gzip) else { return source }
        return try GunzipBytes(source, path: path)
    }

    /// The columns and their types, for a person.
    func description(of path: String) -> String {
        let width = min(columns.columns.map(\.name.count).max() ?? 0, 40)
        let lines = columns.columns.map { column in
            let name = column.name + String(repeating: " ", count: max(0, width - column.name.count))
            return "  \(name)  \(column.path.isDocumentName ? "the document's name" : column.type.rawValue)\n"
        }
        return "\(path): \(ProgressLine.grouped(records)) records\n" + lines.joined()
    }
}
