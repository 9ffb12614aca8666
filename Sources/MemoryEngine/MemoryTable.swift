// The sorted table of an engine in memory: keys in order, each with its versions.

internal import Basics
internal import Storage

/// Bytes that never change and never move.
@safe
final class MemoryBytes: @unchecked Sendable {  // Written once, before it is shared.
    let bytes: UnsafeRawBufferPointer

    init(_ source: UnsafeRawBufferPointer) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(source.count, 1), alignment: 1)
        unsafe copy.copyMemory(from: source)
        unsafe bytes = unsafe UnsafeRawBufferPointer(start: copy.baseAddress, count: source.count)
    }

    deinit {
        unsafe bytes.deallocate()
    }
}

/// What one commit did to a key.
struct MemoryVersion {
    let version: UInt64
    /// Nil for a deletion.
    let value: MemoryBytes?
}

/// A key and its versions, oldest first; never empty. Guarded by the lock of its volume, apart from the key, which
/// never changes.
final class MemoryEntry {
    let key: MemoryBytes
    private(set) var versions: [MemoryVersion]

    init(key: MemoryBytes, _ versions: [MemoryVersion]) {
        self.key = key
        self.versions = versions
    }

    /// The newest version that is not above `version`; nil if the key is younger.
    func version(atMost version: UInt64) -> MemoryVersion? {
        versions.last { $0.version <= version }
    }

    /// Adds a version above all others; the same version again replaces it.
    func append(_ version: MemoryVersion) {
        if let last = versions.last, last.version == version.version { versions.removeLast() }
        versions.append(version)
    }

    /// Removes what no snapshot at or above `version` needs.
    /// - Returns: false if nothing is left: the key was deleted.
    func removeSuperseded(upTo version: UInt64) -> Bool {
        guard let kept = versions.lastIndex(where: { $0.version <= version }) else { return true }
        versions.removeSubrange(0..<kept)
        if versions.count == 1, versions[0].value == nil { versions.removeAll() }
        return !versions.isEmpty
    }

    /// A copy without the versions above `version`; nil if none is left.
    func copied(upTo version: UInt64) -> MemoryEntry? {
        let kept = versions.filter { $0.version <= version }
        return kept.isEmpty ? nil : MemoryEntry(key: key, kept)
    }
}

/// Entries in the order of their keys, in chunks, so that an insertion moves few of them.
struct MemoryTable {
    /// Where an entry is; the end is `(chunks.count, 0)`.
    struct Position {
        var chunk: Int
        var index: Int
    }

    private static let chunkCountMax = 512
    /// Never empty ones.
    private var chunks: [[MemoryEntry]] = []
    private(set) var count = 0

    init() {}

    /// - Parameter entries: in the order of their keys.
    init(sorted entries: [MemoryEntry]) {
        count = entries.count
        let size = MemoryTable.chunkCountMax / 2
        chunks = stride(from: 0, to: count, by: size).map { Array(entries[$0..<min($0 + size, count)]) }
    }

    var all: [MemoryEntry] { Array(chunks.joined()) }

    /// The first position whose key is `key` or above it (`isInclusive`), or above it.
    func position(of key: UnsafeRawBufferPointer, isInclusive: Bool) -> Position {
        func isBefore(_ entry: MemoryEntry) -> Bool {
            let order = unsafe compareBytes(entry.key.bytes, key)
            return isInclusive ? order < 0 : order <= 0
        }
        // The first chunk that ends at or beyond the position.
        var (low, high) = (0, chunks.count)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(chunks[middle][chunks[middle].count - 1]) { low = middle + 1 } else { high = middle }
        }
        if low == chunks.count { return end }
        let chunk = low
        (low, high) = (0, chunks[chunk].count)
        while low < high {
            let middle = (low + high) / 2
            if isBefore(chunks[chunk][middle]) { low = middle + 1 } else { high = middle }
        }
        return Position(chunk: chunk, index: low)
    }

    var start: Position { Position(chunk: 0, index: 0) }
    var end: Position { Position(chunk: chunks.count, index: 0) }

    /// The entry at a position; nil at the end.
    func entry(at position: Position) -> MemoryEntry? {
        position.chunk < chunks.count ? chunks[position.chunk][position.index] : nil
    }

    func position(after position: Position) -> Position {
        if position.index + 1 < chunks[position.chunk].count {
            return Position(chunk: position.chunk, index: position.index + 1)
        }
        return Position(chunk: position.chunk + 1, index: 0)
    }

    /// Nil at the start.
    func position(before position: Position) -> Position? {
        if position.index > 0 { return Position(chunk: position.chunk, index: position.index - 1) }
        if position.chunk == 0 { return nil }
        return Position(chunk: position.chunk - 1, index: chunks[position.chunk - 1].count - 1)
    }

    /// The entry of a key, if there is one.
    func entry(of key: UnsafeRawBufferPointer) -> MemoryEntry? {
        guard let entry = entry(at: unsafe position(of: key, isInclusive: true)) else { return nil }
        return unsafe compareBytes(entry.key.bytes, key) == 0 ? entry : nil
    }

    /// Versions of the keys in `lower..<upper`, and bytes of keys and values.
    func size(from lower: UnsafeRawBufferPointer, to upper: UnsafeRawBufferPointer) -> KeyRangeEstimate {
        var size = KeyRangeEstimate()
        var position = unsafe position(of: lower, isInclusive: true)
        while let entry = entry(at: position), unsafe compareBytes(entry.key.bytes, upper) < 0 {
            size.entries += entry.versions.count
            for version in entry.versions {
                size.bytes += unsafe entry.key.bytes.count + (version.value?.bytes.count ?? 0)
            }
            position = self.position(after: position)
        }
        return size
    }

    /// Adds an entry whose key the table does not have.
    mutating func insert(_ entry: MemoryEntry) {
        count += 1
        var position = unsafe position(of: entry.key.bytes, isInclusive: true)
        if chunks.isEmpty {
            chunks.append([entry])
            return
        }
        if position.chunk == chunks.count {
            position.chunk -= 1
            position.index = chunks[position.chunk].count
        }
        chunks[position.chunk].insert(entry, at: position.index)
        guard chunks[position.chunk].count > MemoryTable.chunkCountMax else { return }
        let upper = Array(chunks[position.chunk][(MemoryTable.chunkCountMax / 2)...])
        chunks[position.chunk].removeSubrange((MemoryTable.chunkCountMax / 2)...)
        chunks.insert(upper, at: position.chunk + 1)
    }

    mutating func remove(_ key: UnsafeRawBufferPointer) {
        let position = unsafe position(of: key, isInclusive: true)
        guard let entry = entry(at: position), unsafe compareBytes(entry.key.bytes, key) == 0 else { return }
        count -= 1
        chunks[position.chunk].remove(at: position.index)
        if chunks[position.chunk].isEmpty { chunks.remove(at: position.chunk) }
    }
}
