// Reads documents that the filter names.

internal import Basics
internal import DocumentModel
internal import StoreFormat

/// The documents of a list of paths, as far as they exist.
struct PointLookup: QueryOperator {
    /// Paths below `documents`, in the order of the results.
    private let paths: [[UInt8]]
    private let scope: QueryScope
    /// The resume token: the next path.
    private var position = 0

    init(_ paths: [[UInt8]], in scope: QueryScope) {
        self.paths = paths
        self.scope = scope
    }

    var isFinished: Bool { position == paths.count }

    mutating func restart() { position = 0 }

    var tree: PlanTree { PlanTree(line: "PointLookup \(paths.count) of \(scope)") }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        while position < paths.count {
            let path = paths[position]
            position += 1
            DocumentKey.write(path.byteSpan, database: source.database, into: &key)
            guard let stored = try source.value(forKey: key.bytes) else { continue }
            guard let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.versionMicroseconds) else {
                throw .damagedDocument
            }
            let hasBudget = work.countDocument(byteCount: record.fields.byteCount)
            let row = QueryRow(
                path: path.byteSpan, createMicroseconds: record.createMicroseconds,
                updateMicroseconds: record.updateMicroseconds, fields: record.fields)
            if try page(row) == .full || !hasBudget { return }
        }
    }
}
