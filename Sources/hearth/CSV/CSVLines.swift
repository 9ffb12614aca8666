// A CSV file as JSON lines, for the loader.

/// The records of a file as lines of JSON: one record a line, in order. Memory is bounded by a record.
final class CSVLines: InputBytes {
    private let reader: CSVReader
    private let columns: CSVColumns
    private let skipsBad: Bool

    /// - Parameters:
    ///   - source: the file from its start.
    ///   - columns: of its header, with their types.
    ///   - skipsBad: whether the line of a record that is not valid is a ``RefusedLine``. Otherwise it is an error.
    init(_ source: any InputBytes, name: String, _ columns: CSVColumns, skipsBad: Bool) throws(CommandFailure) {
        let (reader, header) = try CSVLines.open(source, name: name)
        (self.reader, self.skipsBad) = (reader, skipsBad)
        if let types = columns.pending {
            var known = try CSVColumns(header)
            try types.apply(to: &known)
            self.columns = known
            return
        }
        self.columns = columns
        guard header == columns.columns.map(\.name) else {
            throw CommandFailure("\(name) has another header than before")
        }
    }

    /// Reads the header of a file.
    static func open(
        _ source: any InputBytes, name: String, keepsText: Bool = false
    ) throws(CommandFailure) -> (CSVReader, header: [String]) {
        do throws(CSVProblem) {
            let reader = try CSVReader(source, name: name, keepsText: keepsText)
            if try reader.next() { return (reader, reader.record.texts) }
        } catch {
            throw CommandFailure(error.description)
        }
        throw CommandFailure("\(name) has no header")
    }

    func read(into bytes: inout [UInt8], atMost count: Int) throws(CommandFailure) -> Bool {
        let start = bytes.count
        while bytes.count - start < count, try appendNext(to: &bytes) { bytes.append(0x0A) }
        return bytes.count > start
    }

    private func appendNext(to bytes: inout [UInt8]) throws(CommandFailure) -> Bool {
        let start = bytes.count
        do throws(CSVProblem) {
            guard try reader.next() else { return false }
            try columns.appendLine(reader, to: &bytes)
            if bytes.count - start > ChunkReader.lineBytesMax {
                throw reader.problem("the record is longer than \(ChunkReader.lineBytesMax >> 20) MiB as JSON")
            }
        } catch {
            guard skipsBad, error.isLocal else { throw CommandFailure(error.description) }
            bytes.removeLast(bytes.count - start)
            bytes += RefusedLine.text(error.reason).utf8
        }
        return true
    }
}

/// The line of a record that is not valid. It has the reason. JSON begins with another byte.
enum RefusedLine {
    private static let mark: UInt8 = 0

    static func text(_ reason: String) -> String { "\0" + String(reason.map { $0.isNewline ? " " : $0 }) }

    /// The reason of such a line; nil for others.
    static func reason(_ line: Span<UInt8>) -> String? {
        guard line.count > 0, line[0] == mark else { return nil }
        return String(decoding: (1..<line.count).map { line[$0] }, as: UTF8.self)
    }
}

/// What a CSV file holds, before it is loaded.
struct CSVSurvey {
    private(set) var columns: CSVColumns
    private(set) var records = 0
    /// Records that are not valid.
    private(set) var badRecords = 0

    /// Finds the types of the columns of a file, and reads all cells as these types.
    ///
    /// - Parameter skipsBad: whether records that are not valid are counted. Otherwise one of them is an error, so that
    ///   a file with a wrong cell is not loaded in part.
    init(_ path: String, _ types: CSVTypes, skipsBad: Bool) throws(CommandFailure) {
        let (reader, header) = try CSVLines.open(try CSVSurvey.bytes(of: path), name: path)
        columns = try CSVColumns(header)
        try types.apply(to: &columns)
        var inferred = header.map { _ in CSVInference() }
        while true {
            do throws(CSVProblem) {
                guard try reader.next() else { break }
                if reader.record.count == header.count {
                    for number in header.indices { inferred[number].add(reader.record[number]) }
                }
            } catch {
                guard skipsBad, error.isLocal else { throw CommandFailure(error.description) }
            }
            records += 1
        }
        for (number, column) in columns.columns.enumerated() where types.declared[Array(column.name.utf8)] == nil {
            columns.set(inferred[number].type, at: number)
        }
        let lines = try CSVLines(try CSVSurvey.bytes(of: path), name: path, columns, skipsBad: skipsBad)
        var part: [UInt8] = []
        while try lines.read(into: &part, atMost: 1 << 20) {
            badRecords += part.split(separator: 0x0A).count { RefusedLine.reason($0.span) != nil }
            part.removeAll(keepingCapacity: true)
        }
    }

    /// The bytes of a file, decompressed.
    static func bytes(of path: String) throws(CommandFailure) -> any InputBytes {
        let source = PeekableBytes(try DescriptorBytes(path))
        guard try source.first(2).starts(with: InputKind.gzip) else { return source }
        return try GunzipBytes(source, path: path)
    }

    /// The columns and their types, for a person.
    func description(of path: String) -> String {
        let width = min(columns.columns.map(\.name.count).max() ?? 0, 40)
        let lines = columns.columns.map { column in
            let name = column.name + String(repeating: " ", count: max(0, width - column.name.count))
            return "  \(name)  \(column.isDocumentName ? "the document's name" : column.type.rawValue)\n"
        }
        let bad = badRecords == 0 ? "" : ", \(ProgressLine.grouped(badRecords)) of them not valid"
        return "\(path): \(ProgressLine.grouped(records)) records\(bad)\n" + lines.joined()
    }
}
