// Lines as writes, ready to be sent.

import Basics
import DocumentJSON
import DocumentModel
import FirestoreMessages
import Glibc

/// How lines become documents.
struct LineRules: Sendable {
    /// The collection of the documents; nil if lines name their documents in full.
    var collection: CollectionPath?
    /// The member that names the document.
    var idField: String?
    /// The seed of the ids for lines that do not name a document.
    var seed: UInt64
    /// Whether reading stops at an invalid line.
    var stopsAtBadLine: Bool
    /// Whether the lines are records of CSV, of which some may be refused (``RefusedLine``).
    var isCSV = false
}

/// The documents of one chunk, in the order of its lines.
struct ParsedChunk: Sendable {
    /// The range of a document's write in `bytes`, and the range of its path below the collection.
    struct Document {
        var write: Range<Int32>
        var path: Range<Int32>
        var line: Int
    }

    struct BadLine {
        var text: [UInt8]
        var line: Int
        var reason: String
    }

    /// `writes` entries of a CommitRequest, back to back.
    private(set) var bytes: [UInt8] = []
    private(set) var documents: [Document] = []
    private(set) var badLines: [BadLine] = []
    /// The position after the last line that was read.
    private(set) var end: (offset: Int, lines: Int)
    /// What an import reports at its end.
    var notes = LoadNotes()

    /// Reads all lines, or those before the first invalid one; it skips empty lines and those that begin with `#`.
    init(_ chunk: Chunk, _ rules: LineRules) {
        end = (chunk.offset, chunk.firstLine - 1)
        if chunk.longLineBytes > 0 {
            let reason = "the line is longer than \(ChunkReader.lineBytesMax >> 20) MiB"
            badLines = [BadLine(text: [], line: chunk.firstLine, reason: reason)]
            if !rules.stopsAtBadLine { end = (chunk.offset + chunk.byteCount, chunk.firstLine) }
            return
        }
        var parser = JSONLineParser(database: rules.collection?.database.description ?? "", idField: rules.idField)
        var writer = ByteBuffer(capacity: chunk.bytes.count + chunk.bytes.count / 4)
        var name = ByteBuffer(capacity: 256)
        var start = chunk.offset == 0 ? InputKind.withoutMark(chunk.bytes).startIndex : 0
        while start < chunk.bytes.count {
            let lineEnd = Self.lineEnd(in: chunk.bytes, from: start)
            let line = chunk.bytes.span.extracting(start..<lineEnd)
            let number = end.lines + 1
            if !(line.isEmpty || line[0] == 0x23 || (line.count == 1 && line[0] == 0x0D)) {
                do {
                    try append(line, number, rules, &parser, &writer, &name)
                } catch {
                    badLines.append(
                        BadLine(text: Array(chunk.bytes[start..<lineEnd]), line: number, reason: Self.reason(error)))
                    if rules.stopsAtBadLine { break }
                }
            }
            start = min(lineEnd + 1, chunk.bytes.count)
            end = (chunk.offset + start, number)
        }
        bytes = writer.copyBytes()
    }

    private static func lineEnd(in bytes: [UInt8], from start: Int) -> Int {
        bytes.withUnsafeBytes { bytes in
            guard let found = memchr(bytes.baseAddress! + start, 0x0A, bytes.count - start) else { return bytes.count }
            return UnsafeRawPointer(found) - bytes.baseAddress!
        }
    }

    private mutating func append(
        _ line: Span<UInt8>, _ number: Int, _ rules: LineRules, _ parser: inout JSONLineParser,
        _ writer: inout ByteBuffer,
        _ name: inout ByteBuffer
    ) throws {
        if rules.isCSV, let reason = RefusedLine.reason(line) { throw CommandFailure(reason) }
        let parsed = try parser.parse(line)
        name.reset()
        if let collection = rules.collection {
            name.append(utf8: collection.description)
            name.append(byte: UInt8(ascii: "/"))
        }
        let pathOffset = name.count
        switch parsed {
        case .path(let path): name.append(utf8: path)
        case .none:
            guard rules.collection != nil else {
                throw CommandFailure("it has no __name__, and no --collection says where it belongs")
            }
            var id: [UInt8] = []
            AutomaticID.append(seed: rules.seed, line: number, to: &id)
            name.append(id)
        }
        try parser.withDocumentBytes { fields in
            try add(name: name.bytes, fields: fields, pathOffset: pathOffset, line: number, to: &writer)
        }
    }

    /// Adds a document. The server would refuse the whole batch for one bad document; this names the line.
    ///
    /// - Parameter pathOffset: where in the name the part begins in which documents differ.
    private mutating func add(
        name: RawSpan, fields: RawSpan, pathOffset: Int, line: Int, to writer: inout ByteBuffer
    ) throws {
        let view = try ResourceNameView(resource: name)
        guard view.isDocument else { throw RequestError(.notADocument, name: name) }
        let size = DocumentSize.document(
            nameSize: DocumentSize.name(view), fieldsSize: try DocumentValidator.validate(fields: fields).size)
        if size > Limits.documentBytes { throw InvalidDocument(.documentTooLarge, offset: 0) }
        let start = writer.count
        let place = CommitWrites.appendSet(name: name, fields: fields, to: &writer)
        let path = Int32(place.lowerBound + pathOffset)..<Int32(place.upperBound)
        documents.append(Document(write: Int32(start)..<Int32(writer.count), path: path, line: line))
    }

    static func reason(_ error: any Error) -> String {
        switch error {
        case let error as RequestError: error.message
        case let error as InvalidDocument: error.message
        default: "\(error)"
        }
    }
}

extension ParsedChunk {
    /// A document before it is checked.
    struct Draft: ~Copyable {
        /// The full resource name.
        var name = ByteBuffer(capacity: 256)
        /// Canonical document bytes.
        var fields = ByteBuffer(capacity: 4 << 10)
    }

    /// Makes documents of the items of an input.
    ///
    /// - Parameters:
    ///   - ends: the position before the first item, and after each. Its `lines` is the number of the item.
    ///   - byteCount: bytes of the documents, about.
    ///   - pathOffset: where in a name the part begins in which documents differ.
    ///   - stopsAtBadLine: whether an item that is not a document is the last.
    ///   - read: reads the item at an index into an empty draft, or throws why it is not a document.
    init(
        ends: [(offset: Int, lines: Int)], byteCount: Int, pathOffset: Int, stopsAtBadLine: Bool,
        _ read: (_ index: Int, inout Draft) throws -> Void
    ) {
        end = ends[0]
        var draft = Draft()
        var writer = ByteBuffer(capacity: byteCount + byteCount / 4)
        for (index, itemEnd) in ends.dropFirst().enumerated() {
            draft.name.reset()
            draft.fields.reset()
            do {
                try read(index, &draft)
                try add(
                    name: draft.name.bytes, fields: draft.fields.bytes, pathOffset: pathOffset, line: itemEnd.lines,
                    to: &writer)
            } catch {
                badLines.append(BadLine(text: [], line: itemEnd.lines, reason: Self.reason(error)))
                if stopsAtBadLine { break }
            }
            end = itemEnd
        }
        bytes = writer.copyBytes()
    }
}
