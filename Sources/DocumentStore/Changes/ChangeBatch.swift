// The documents that one commit changed, as listeners need them.

internal import DocumentModel

/// The documents that one commit changed, with their fields before and after the commit. Immutable and
/// thread-safe.
package final class ChangeBatch: Sendable {
    struct Entry: Sendable {
        /// Ranges of `bytes`.
        var path: Range<Int>
        /// Nil if the document did not exist before the commit.
        var before: Range<Int>?
        /// Nil if the commit deleted the document.
        var after: Range<Int>?
    }

    /// The commit's version, in microseconds since 1970.
    package let version: UInt64
    /// The number that stands for the database in keys.
    package let database: UInt32
    private let entries: [Entry]
    private let bytes: [UInt8]

    init(version: UInt64, database: UInt32, entries: [Entry], bytes: [UInt8]) {
        self.version = version
        self.database = database
        self.entries = entries
        self.bytes = bytes
    }

    /// The number of documents.
    package var count: Int { entries.count }

    /// Memory that the batch holds, in bytes.
    package var byteCount: Int { bytes.count + entries.count * MemoryLayout<Entry>.stride }

    /// Lends the change of one document.
    package func withChange<Output>(_ position: Int, _ body: (DocumentChange) -> Output) -> Output {
        let entry = entries[position]
        let bytes = bytes
        let span = bytes.byteSpan
        let path = span.extracting(entry.path)
        let before = span.extracting(entry.before ?? 0..<0)
        let after = span.extracting(entry.after ?? 0..<0)
        let change = DocumentChange(
            path: path, existedBefore: entry.before != nil, before: before, existsAfter: entry.after != nil,
            after: after)
        return body(change)
    }
}

/// One document before and after a commit.
package struct DocumentChange: ~Escapable {
    /// The document's path below `documents`, UTF-8.
    package let path: RawSpan
    package let existedBefore: Bool
    /// The canonical field entries before the commit; empty if the document did not exist.
    package let before: RawSpan
    package let existsAfter: Bool
    /// The canonical field entries after the commit; empty if the document was deleted.
    package let after: RawSpan

    @_lifetime(copy path, copy before, copy after)
    package init(path: RawSpan, existedBefore: Bool, before: RawSpan, existsAfter: Bool, after: RawSpan) {
        self.path = path
        self.existedBefore = existedBefore
        self.before = before
        self.existsAfter = existsAfter
        self.after = after
    }

    /// The path of the document's collection below `documents`.
    package var collection: RawSpan {
        @_lifetime(copy self)
        get {
            let documentID = RelativePath.lastSegment(path)
            return path.extracting(0..<max(0, path.byteCount - documentID.byteCount - 1))
        }
    }

    /// The id of the document's collection.
    package var collectionID: RawSpan {
        @_lifetime(copy self)
        get { RelativePath.lastSegment(collection) }
    }
}

/// Collects the changes of the commit that is being made. Belongs to the commit thread.
struct ChangeCollector: ~Copyable {
    private var isCollecting = false
    private var entries: [ChangeBatch.Entry] = []
    private var bytes: [UInt8] = []

    /// Starts a commit.
    /// - Parameter isCollecting: whether the changes of this commit are wanted.
    mutating func begin(isCollecting: Bool) {
        self.isCollecting = isCollecting
        if entries.isEmpty { return }
        entries.removeAll()
        bytes.removeAll()
    }

    /// Adds the change of a document.
    mutating func append(_ item: borrowing LogItem, replacing prior: borrowing PriorDocument) {
        guard isCollecting else { return }
        entries.append(
            ChangeBatch.Entry(
                path: append(item.path), before: prior.exists ? append(prior.fields) : nil,
                after: item.kind == .deleted ? nil : append(item.payload)))
    }

    private mutating func append(_ span: RawSpan) -> Range<Int> {
        let start = bytes.count
        bytes.append(contentsOf: span)
        return start..<bytes.count
    }

    /// The changes of a commit that is staged; nil if there are none.
    mutating func take(version: UInt64, database: UInt32) -> ChangeBatch? {
        if entries.isEmpty { return nil }
        defer {
            entries = []
            bytes = []
        }
        return ChangeBatch(version: version, database: database, entries: entries, bytes: bytes)
    }
}
