// The documents changed by recent commits, newest last: they are checked against the ranges of a transaction.
//
// A ring in two halves: the newer one is filled, then takes the older one's place, whose entries are forgotten all at
// once. Between half of the maximum and all of it is always remembered.

internal import Basics
internal import DocumentModel

/// Keys of changed documents with their versions. Belongs to the commit thread.
struct RecentChanges: ~Copyable {
    private struct Entry {
        var version: UInt64
        var keyOffset: Int
        var keyCount: Int
    }

    private struct Half: ~Copyable {
        var entries: [Entry] = []
        var keys = ByteBuffer(capacity: 4096)
    }

    private var newer = Half()
    private var older = Half()
    private let halfMax: Int

    /// Every change above this version is remembered.
    private(set) var coverage: UInt64

    /// Bytes of keys per half; with long names it is reached before the count is.
    private let halfBytesMax: Int

    private static let keyBytes = StoreConfiguration.recentChangeBytes - MemoryLayout<Entry>.stride

    /// - Parameter since: the version of the store now: nothing later has been missed.
    init(maximum: Int, since: UInt64) {
        halfMax = max(maximum / 2, 1)
        halfBytesMax = max(halfMax * Self.keyBytes, 64 << 10)
        coverage = since
    }

    var count: Int { newer.entries.count + older.entries.count }

    /// Makes room for a commit's changes. To be called before the first `append` of each commit.
    mutating func beginCommit() {
        if newer.entries.count < halfMax, newer.keys.count < halfBytesMax { return }
        if let last = older.entries.last { coverage = last.version }
        swap(&newer, &older)
        newer.entries.removeAll(keepingCapacity: true)
        newer.keys.reset(keeping: halfBytesMax)
    }

    /// The number of changes above a version; nil if not all of them are remembered.
    borrowing func count(since version: UInt64) -> Int? {
        if coverage > version { return nil }
        return Self.count(newer.entries, since: version) + Self.count(older.entries, since: version)
    }

    private static func count(_ entries: [Entry], since version: UInt64) -> Int {
        // Versions ascend.
        entries.count - entries.partitioningIndex { $0.version > version }
    }

    mutating func append(key: RawSpan, version: UInt64) {
        newer.entries.append(Entry(version: version, keyOffset: newer.keys.count, keyCount: key.byteCount))
        newer.keys.append(key)
    }

    /// Forgets the changes of a commit that came to nothing.
    mutating func rollBack(version: UInt64) {
        while let last = newer.entries.last, last.version == version {
            newer.keys.truncate(to: last.keyOffset)
            newer.entries.removeLast()
        }
    }

    /// Visits the keys changed above a version, newest first, until `body` returns false. A key may come repeatedly.
    borrowing func forEachKey(
        since version: UInt64, _ body: (_ key: RawSpan, _ version: UInt64) throws(RequestError) -> Bool
    ) throws(RequestError) {
        for entry in newer.entries.reversed() {
            if entry.version <= version { return }
            let range = entry.keyOffset..<(entry.keyOffset + entry.keyCount)
            if try !body(newer.keys.bytes.extracting(range), entry.version) { return }
        }
        for entry in older.entries.reversed() {
            if entry.version <= version { return }
            let range = entry.keyOffset..<(entry.keyOffset + entry.keyCount)
            if try !body(older.keys.bytes.extracting(range), entry.version) { return }
        }
    }
}
