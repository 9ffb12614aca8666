// The documents that the commits of a group changed, as listeners need them.

internal import DocumentModel

/// The documents that the commits of one group changed, with their fields before and after each commit. Immutable and
/// thread-safe.
package final class ChangeBatch: Sendable {
    struct Entry: Sendable {
        /// The commit's version, in microseconds since 1970.
        var version: UInt64
        var database: UInt32
        /// Ranges of `bytes`.
        var path: Range<Int>
        /// Nil if the document did not exist before the commit.
        var before: Range<Int>?
        /// Nil if the commit deleted the document.
        var after: Range<Int>?
    }

    /// In the order of the versions; at least one.
    private let entries: [Entry]
    private let bytes: [UInt8]

    init(entries: [Entry], bytes: [UInt8]) {
        self.entries = entries
        self.bytes = bytes
    }

    var firstVersion: UInt64 { entries[0].version }
    var lastVersion: UInt64 { entries[entries.count - 1].version }

    /// Memory that the batch holds, in bytes.
    var byteCount: Int { bytes.count + entries.count * MemoryLayout<Entry>.stride }

    /// Lends the changes of the commits above `position`, up to and including `readTime`, in their order.
    package func forEachChange(after position: UInt64, through readTime: UInt64, _ body: (StoreChange) -> Void) {
        let bytes = bytes
        let span = bytes.byteSpan
        for entry in entries where entry.version > position && entry.version <= readTime {
            body(StoreChange(entry, in: span))
        }
    }
}

/// One document before and after a commit.
package struct StoreChange: ~Escapable {
    /// The commit's version, in microseconds since 1970.
    package let version: UInt64
    /// The number that stands for the database in keys.
    package let database: UInt32
    /// The document's path below `documents`, UTF-8.
    package let path: RawSpan
    /// Whether there was a document before the commit.
    package let existedBefore: Bool
    /// The canonical field entries before the commit; empty if the document did not exist.
    package let before: RawSpan
    /// Whether there is a document after the commit.
    package let existsAfter: Bool
    /// The canonical field entries after the commit; empty if the document was deleted.
    package let after: RawSpan

    @_lifetime(copy bytes)
    fileprivate init(_ entry: ChangeBatch.Entry, in bytes: RawSpan) {
        version = entry.version
        database = entry.database
        path = bytes.extracting(entry.path)
        existedBefore = entry.before != nil
        before = bytes.extracting(entry.before ?? 0..<0)
        existsAfter = entry.after != nil
        after = bytes.extracting(entry.after ?? 0..<0)
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

/// Collects the changes of the commits of a group. Belongs to the commit thread.
struct ChangeCollector: ~Copyable {
    private var isCollecting = false
    private var version: UInt64 = 0
    private var database: UInt32 = 0
    private var entries: [ChangeBatch.Entry] = []
    private var bytes: [UInt8] = []
    /// Where the changes of the current commit begin.
    private var start = (entries: 0, bytes: 0)

    /// Starts a commit.
    /// - Parameter isCollecting: whether the changes of this commit are wanted.
    mutating func begin(version: UInt64, database: UInt32, isCollecting: Bool) {
        self.isCollecting = isCollecting
        self.version = version
        self.database = database
        start = (entries.count, bytes.count)
    }

    /// Names the database of the current commit, where it is known only now.
    mutating func setDatabase(_ database: UInt32) { self.database = database }

    /// Whether the current commit is collected.
    var isWanted: Bool { isCollecting }

    /// Forgets the changes of the current commit.
    mutating func rollBack() {
        if entries.count == start.entries { return }
        entries.removeSubrange(start.entries...)
        bytes.removeSubrange(start.bytes...)
    }

    /// Adds the change of a document.
    mutating func append(_ item: borrowing LogItem, replacing prior: borrowing PriorDocument) {
        // Nobody sees a copy while it is made.
        guard isCollecting, !item.kind.isCopy else { return }
        entries.append(
            ChangeBatch.Entry(
                version: version, database: database, path: append(item.path),
                before: prior.exists ? append(prior.fields) : nil,
                after: item.kind == .deleted ? nil : append(item.payload)))
    }

    private mutating func append(_ span: RawSpan) -> Range<Int> {
        let start = bytes.count
        bytes.append(contentsOf: span)
        return start..<bytes.count
    }

    /// The changes of the commits that were started since the last call and not rolled back; nil if there are none.
    mutating func take() -> ChangeBatch? {
        if entries.isEmpty { return nil }
        // The next group is probably of the same size.
        let capacity = (entries: min(entries.count, 256), bytes: min(bytes.count, 256 << 10))
        defer {
            entries = []
            entries.reserveCapacity(capacity.entries)
            bytes = []
            bytes.reserveCapacity(capacity.bytes)
        }
        return ChangeBatch(entries: entries, bytes: bytes)
    }
}
