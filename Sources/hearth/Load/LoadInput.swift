// What the loader reads from: JSON lines, or the entities of an export.

import ManagedExport

/// A part of an input that was read and not parsed.
struct LoadPart: Sendable {
    /// Bytes of the input.
    var byteCount: Int
    /// Makes documents of it, on any thread.
    var parse: @Sendable () -> ParsedChunk
}

/// An input of the loader, read part by part.
protocol LoadInput: AnyObject {
    /// The input's size in bytes; nil if it has no size, as a pipe.
    var totalBytes: Int? { get }
    /// The next part; nil at the end.
    func next() throws -> LoadPart?
}

/// JSON lines, or CSV as JSON lines, as an input.
final class LineInput: LoadInput {
    private let reader: ChunkReader
    private let rules: LineRules

    /// - Parameter columns: of CSV; nil for JSON lines.
    init(
        path: String, columns: CSVColumns? = nil, from start: LoadProgress, _ rules: LineRules
    ) throws(CommandFailure) {
        if let columns {
            let lines = try CSVLines(
                try CSVSurvey.bytes(of: path), name: path, columns, skipsBad: !rules.stopsAtBadLine)
            reader = try ChunkReader(lines, path: path, offset: start.offset, lineNumber: start.lines)
        } else {
            reader = try ChunkReader(
                path: path, offset: start.offset, lineNumber: start.lines, mayHaveBadLines: !rules.stopsAtBadLine)
        }
        self.rules = rules
    }

    var totalBytes: Int? { reader.totalBytes }

    func next() throws -> LoadPart? {
        guard let chunk = try reader.next() else { return nil }
        return LoadPart(byteCount: chunk.byteCount) { [rules] in ParsedChunk(chunk, rules) }
    }
}

/// What an import reports at its end: how many documents each collection has, and what was converted.
struct LoadNotes: Sendable, Equatable {
    /// Documents by the collections on their paths, with `*` for ids: `users/*/posts`.
    private(set) var collections: [String: Int] = [:]
    /// Documents of further collections.
    private(set) var others = 0
    private(set) var conversions = ConversionCounts()

    /// Collections that are counted one by one.
    private static let collectionsMax = 1_000

    mutating func count(_ collection: String, _ documents: Int = 1) {
        if collections[collection] != nil || collections.count < Self.collectionsMax {
            collections[collection, default: 0] += documents
        } else {
            others += documents
        }
    }

    mutating func add(_ more: ConversionCounts) { conversions.add(more) }

    mutating func add(_ other: LoadNotes) {
        for (collection, documents) in other.collections { count(collection, documents) }
        others += other.others
        conversions.add(other.conversions)
    }
}
