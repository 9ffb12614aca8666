internal import Basics
internal import CPrefetch
internal import CXXHash
internal import Glibc
internal import Storage
internal import Synchronization

/// The memtable: an ordered list in memory of all versions that were committed since the last checkpoint.
///
/// It is a linked list in one block of address space, with a search tree next to it (`Memtable+Search.swift`), and
/// sorted batches for index entries of large commits (`Memtable+Batches.swift`). One writer inserts; any number of
/// readers read at the same time without a lock. Entries are ordered by key, and for one key by version, newest first:
///
///     ("a", 7) → ("a", 3) → ("b", 9, deleted) → ("b", 4) → …       a read at version 5 sees a@3 and b@4
///
///     base                                                                                     base + reserved
///     ┌────────┬──────┬─────────┬────────────────┬─────────┬─ ─ ─ ─►            ◄─ ─ ─┬───────┬───────┬────────┐
///     │ header │ head │ entry 1 │ node of search │ entry 2 │        untouched         │ val 2 │ val 1 │ filter │
///     └────────┴──────┴─────────┴────────────────┴─────────┴─ ─ ─ ─►            ◄─ ─ ─┴───────┴───────┴────────┘
///
/// The filter (Bloom 1970, with all bits of a key in one 64-bit word) shows with one cache miss that a key is absent,
/// which is the result of most lookups. Entries grow upwards and values downwards, in pages of 2 MiB if the kernel has
/// them, because random reads of a table of this size would otherwise miss the TLB. Only touched pages use memory.
/// Memory is released as a whole, when the list has been written to a run and no reader uses it
/// (``MemtableRegistry``).
///
/// Why this is safe without a lock: an entry is complete before its number is stored (release) in the entry before it,
/// and a reader gets that number only from there or from the search tree (acquire). Afterwards an entry changes only in
/// the number of the next entry and, while its version is unpublished, in its value; readers skip such entries after
/// they have read key and version. The bits of a key are set in the filter before its entry is linked. The result of
/// the search tree is only a hint where to start.
///
/// An entry is 8-aligned and numbered by its offset / 8; 0 means none:
///
///      0  version       8 bytes
///      8  value offset  4 bytes, in units of 8 from base
///     12  value length  4 bytes, 0xFFFFFFFF for a deletion
///     16  next entry    4 bytes
///     20  key length    2 bytes, then 2 unused
///     24  key
///
/// A copy refers to the same list; `release` ends it for all copies. Use it only while the registry (or the only owner)
/// holds it. `insert` makes all offsets inside.
@safe
struct Memtable: @unchecked Sendable {  // See the essay above.
    let base: UnsafeMutableRawPointer

    static let deletionLength = UInt32.max
    /// Stands before all entries; it has no key.
    static let head: UInt32 = 26

    /// Where things stand in the header.
    enum Field {
        static let reserved = 0
        static let entryEnd = 8
        static let valueStart = 16
        static let entryCount = 24
        static let byteCount = 32
        static let versionMax = 40
        /// Words of the filter less one, and where it begins.
        static let filterMask = 48
        static let filterStart = 56
        /// Of the search tree: its root, and the writer's path through it.
        static let root = 64
        static let path = 72
        static let versionMin = 160
        /// Of the sorted batches: the newest one, their number, and the lowest and highest space that they are for.
        static let newestBatch = 168
        static let batchCount = 176
        static let lowestScanned = 184
        static let highestScanned = 185
        static let hashSeed = 192
        static let documentBytes = 200
    }

    /// Where things stand in an entry.
    private enum EntryField {
        static let valueOffset = 8
        static let valueLength = 12
        static let next = 16
        static let keyLength = 20
        static let key = 24
    }

    /// Reserves address space for `reservedBytes` of entries and values, and a filter for some `filterBytes / 4` keys.
    /// - Parameters:
    ///   - hashSeed: of the filter, not known to those who choose the keys.
    ///   - scannedSpaces: first bytes of keys that may be in sorted batches.
    init(
        reservedBytes: Int, filterBytes: Int = 4096, hashSeed: UInt64 = 0, scannedSpaces: ClosedRange<UInt8>? = nil
    ) throws(StorageError) {
        var filterWords = 1
        while filterWords * 16 <= filterBytes { filterWords *= 2 }
        let rounded = (reservedBytes + filterWords * 8 + 4095) & ~4095
        let memory = unsafe mmap(
            nil, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else {
            throw .system(errno, "cannot reserve \(rounded) bytes of address space for the memtable")
        }
        unsafe base = memory
        // Only faster: a kernel without large pages refuses.
        _ = unsafe madvise(memory, rounded, MADV_HUGEPAGE)
        let filterStart = rounded - filterWords * 8
        unsafe base.storeBytes(of: rounded, toByteOffset: Field.reserved, as: Int.self)
        unsafe base.storeBytes(of: filterWords - 1, toByteOffset: Field.filterMask, as: Int.self)
        unsafe base.storeBytes(of: filterStart, toByteOffset: Field.filterStart, as: Int.self)
        unsafe base.storeBytes(of: hashSeed, toByteOffset: Field.hashSeed, as: UInt64.self)
        unsafe base.storeBytes(
            of: scannedSpaces?.lowerBound ?? .max, toByteOffset: Field.lowestScanned, as: UInt8.self)
        unsafe base.storeBytes(of: scannedSpaces?.upperBound ?? 0, toByteOffset: Field.highestScanned, as: UInt8.self)
        begin()
    }

    private func begin() {
        let filterStart = unsafe base.load(fromByteOffset: Field.filterStart, as: Int.self)
        unsafe base.storeBytes(of: filterStart, toByteOffset: Field.valueStart, as: Int.self)
        unsafe base.storeBytes(of: Int(Self.head) * 8 + EntryField.key, toByteOffset: Field.entryEnd, as: Int.self)
        makeSearchTree()
    }

    /// Makes the list empty, and keeps its memory. Nothing else may refer to the list.
    func removeAll() {
        let counts = [Field.entryCount, Field.byteCount, Field.versionMax, Field.versionMin, Field.batchCount]
        for field in counts + [Field.documentBytes] {
            unsafe base.storeBytes(of: 0, toByteOffset: field, as: UInt64.self)
        }
        unsafe base.storeBytes(of: 0, toByteOffset: Field.newestBatch, as: UInt64.self)
        let filterStart = unsafe base.load(fromByteOffset: Field.filterStart, as: Int.self)
        unsafe memset(base + filterStart, 0, reservedBytes - filterStart)
        unsafe memset(base + Int(Self.head) * 8, 0, EntryField.key)
        begin()
    }

    /// Gives the memory back. Nothing may refer to the list any more.
    func release() {
        unsafe munmap(base, reservedBytes)
    }

    /// Bytes of memory that the kernel has given for it, in whole pages.
    var residentBytes: Int {
        var pages = [UInt8](repeating: 0, count: (reservedBytes + 4095) / 4096)
        guard unsafe mincore(base, reservedBytes, &pages) == 0 else { return 0 }
        return pages.reduce(0) { $0 + Int($1 & 1) } * 4096
    }

    private var reservedBytes: Int { unsafe base.load(fromByteOffset: Field.reserved, as: Int.self) }

    /// Entries: keys times versions. Any thread.
    var entryCount: Int { unsafe atomicInt(at: Field.entryCount).pointee.load(ordering: .relaxed) }

    /// Bytes taken by entries, values and what finds them. Any thread.
    var byteCount: Int { unsafe atomicInt(at: Field.byteCount).pointee.load(ordering: .relaxed) }

    /// What a checkpoint may write of it at most. Any thread.
    var runBytesMax: Int {
        let documents = unsafe atomicInt(at: Field.documentBytes).pointee.load(ordering: .relaxed)
        return Self.runBytesMax(byteCount: byteCount, documentBytes: documents)
    }

    /// What a checkpoint may write of so many bytes. Index entries take fewer in a file than in memory. An LMDB file
    /// takes up to two and a half times as many: at worst each leaf is half full, and each value begins a page of its
    /// own.
    /// - Parameter documentBytes: as `MutationBatch` counts them.
    static func runBytesMax(byteCount: Int, documentBytes: Int) -> Int { byteCount + documentBytes * 3 / 2 }

    /// The highest version inserted. Writer's thread, or any once the memtable is frozen.
    var versionMax: CommitVersion {
        CommitVersion(microseconds: unsafe base.load(fromByteOffset: Field.versionMax, as: UInt64.self))
    }

    /// The lowest version inserted, which is the first. Like `versionMax`.
    var versionMin: UInt64 { unsafe base.load(fromByteOffset: Field.versionMin, as: UInt64.self) }

    /// An upper bound of what inserting `count` entries with `bytes` of keys and values takes.
    static func bytesNeeded(count: Int, bytes: Int) -> Int {
        bytes + count * (EntryField.key + 14 + searchBytesPerEntry) + searchBytesAtOnce
    }

    /// Bytes that can still be inserted. Writer's thread.
    var bytesFree: Int {
        unsafe base.load(fromByteOffset: Field.valueStart, as: Int.self)
            - base.load(fromByteOffset: Field.entryEnd, as: Int.self)
    }

    /// Takes memory for an entry or a node, and answers its number. Writer's thread.
    func allocate(_ length: Int, aligned alignment: Int = 8) -> UInt32 {
        let end = unsafe base.load(fromByteOffset: Field.entryEnd, as: Int.self)
        let offset = (end + alignment - 1) & ~(alignment - 1)
        let newEnd = (offset + length + 7) & ~7
        precondition(newEnd - end <= bytesFree, "the memtable is written beyond its bound")
        unsafe base.storeBytes(of: newEnd, toByteOffset: Field.entryEnd, as: Int.self)
        unsafe atomicInt(at: Field.byteCount).pointee.add(newEnd - end, ordering: .relaxed)
        return UInt32(offset / 8)
    }

    func atomicInt(at offset: Int) -> UnsafeMutablePointer<Atomic<Int>> {
        unsafe (base + offset).assumingMemoryBound(to: Atomic<Int>.self)
    }
}

// MARK: - Entries

extension Memtable {
    @inline(__always)
    private func address(_ entry: UInt32) -> UnsafeMutableRawPointer {
        unsafe base + Int(entry) * 8
    }

    @inline(__always)
    func version(_ entry: UInt32) -> UInt64 {
        unsafe address(entry).load(as: UInt64.self)
    }

    @inline(__always)
    func key(_ entry: UInt32) -> UnsafeRawBufferPointer {
        let start = unsafe address(entry)
        let length = unsafe Int(start.load(fromByteOffset: EntryField.keyLength, as: UInt16.self))
        return unsafe UnsafeRawBufferPointer(start: start + EntryField.key, count: length)
    }

    /// The entry's value; nil for a deletion. Only for entries whose version is published, or on the writer's thread.
    func value(_ entry: UInt32) -> UnsafeRawBufferPointer? {
        let start = unsafe address(entry)
        let length = unsafe start.load(fromByteOffset: EntryField.valueLength, as: UInt32.self)
        if length == Self.deletionLength { return nil }
        let offset = unsafe Int(start.load(fromByteOffset: EntryField.valueOffset, as: UInt32.self)) * 8
        return unsafe UnsafeRawBufferPointer(start: base + offset, count: Int(length))
    }

    /// The entry after `entry`; 0 at the end.
    @inline(__always)
    func next(_ entry: UInt32) -> UInt32 {
        unsafe link(entry).pointee.load(ordering: .acquiring)
    }

    @inline(__always)
    private func link(_ entry: UInt32) -> UnsafeMutablePointer<Atomic<UInt32>> {
        unsafe (address(entry) + EntryField.next).assumingMemoryBound(to: Atomic<UInt32>.self)
    }

    var firstEntry: UInt32 { next(Self.head) }

    var isEmpty: Bool { entryCount == 0 }
}

// MARK: - The filter

extension Memtable {
    /// The hash of a key that `mayContain` expects: that of `RunHashIndex` with the seed of the memtable.
    @inline(__always)
    func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
        unsafe RunHashIndex.hash(key, seed: base.load(fromByteOffset: Field.hashSeed, as: UInt64.self))
    }

    /// False if no version of the key with this hash is there; true if one may be.
    @inline(__always)
    func mayContain(hash: UInt64) -> Bool {
        let bits = Self.filterBits(hash)
        return unsafe filterWord(hash).pointee.load(ordering: .relaxed) & bits == bits
    }

    /// Prefetches the word of the filter for a key.
    func prefetchFilter(_ key: UnsafeRawBufferPointer) {
        unsafe prefetch_for_writing(filterWord(hash(key)))
    }

    private func noteInFilter(_ key: UnsafeRawBufferPointer) {
        let hash = unsafe hash(key)
        let word = unsafe filterWord(hash)
        // One writer: no need for a locked instruction.
        unsafe word.pointee.store(word.pointee.load(ordering: .relaxed) | Self.filterBits(hash), ordering: .relaxed)
    }

    @inline(__always)
    private func filterWord(_ hash: UInt64) -> UnsafeMutablePointer<Atomic<UInt64>> {
        let mask = unsafe base.load(fromByteOffset: Field.filterMask, as: UInt64.self)
        let start = unsafe base.load(fromByteOffset: Field.filterStart, as: Int.self)
        return unsafe (base + start + Int(hash & mask) * 8).assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    @inline(__always)
    private static func filterBits(_ hash: UInt64) -> UInt64 {
        1 &<< (hash &>> 40) | 1 &<< (hash &>> 46) | 1 &<< (hash &>> 52) | 1 &<< (hash &>> 58)
    }
}

// MARK: - Finding

extension Memtable {
    /// Whether `entry` stands before the place of `key` at `version`: a lower key, or the same key and a newer version.
    @inline(__always)
    func isBefore(_ entry: UInt32, _ key: UnsafeRawBufferPointer, _ version: UInt64) -> Bool {
        let order = unsafe compareBytes(self.key(entry), key)
        return order != 0 ? order < 0 : self.version(entry) > version
    }

    /// The entries around the place of `key` at `version`: the last one before it, or the head, and the first one at or
    /// after it, or 0. Any thread.
    private func neighbours(of key: UnsafeRawBufferPointer, _ version: UInt64) -> (before: UInt32, after: UInt32) {
        var entry = unsafe hint(for: key, version)
        while true {
            let following = next(entry)
            guard following != 0, unsafe isBefore(following, key, version) else { return (entry, following) }
            entry = following
        }
    }

    /// The first entry at or after the place of `key` at `version`; 0 if there is none.
    func firstEntry(atOrAfter key: UnsafeRawBufferPointer, version: UInt64) -> UInt32 {
        unsafe neighbours(of: key, version).after
    }

    /// The last entry before the first one of `key`; 0 if there is none. With nil, the last of all.
    func lastEntry(before key: UnsafeRawBufferPointer?) -> UInt32 {
        var entry: UInt32
        if let key = unsafe key {
            entry = unsafe neighbours(of: key, .max).before
        } else {
            entry = lastHint
            while next(entry) != 0 { entry = next(entry) }
        }
        return entry == Self.head ? 0 : entry
    }

    /// The entry of the newest version of `key` that is at most `version`; 0 if there is none.
    func find(_ key: UnsafeRawBufferPointer, atMost version: UInt64) -> UInt32 {
        let entry = unsafe firstEntry(atOrAfter: key, version: version)
        guard entry != 0, unsafe compareBytes(self.key(entry), key) == 0 else { return 0 }
        return entry
    }
}

// MARK: - Inserting

extension Memtable {
    /// Adds a value, or with nil a deletion, of `key` at `version`; replaces the one of the very same version. Writer's
    /// thread.
    ///
    /// The caller has made sure that `bytesNeeded` are free.
    /// - Parameter leaf: the leaf of the key, if it is known.
    func insert(
        _ key: UnsafeRawBufferPointer, version: UInt64, value: UnsafeRawBufferPointer?, near leaf: KnownLeaf? = nil
    ) {
        let place = unsafe place(of: key, version, near: leaf)
        if place.following != 0, self.version(place.following) == version,
            unsafe compareBytes(self.key(place.following), key) == 0
        {
            unsafe setValue(of: place.following, to: value)
            return
        }
        link(unsafe makeEntry(key, version, value), at: place)
    }

    /// Enters an entry that `makeEntry` has made, or gives its value to the one of the very same version. Writer's
    /// thread.
    /// - Parameter leaf: the leaf of its key, if it is known.
    func insert(_ entry: UInt32, near leaf: KnownLeaf?) {
        let (key, version) = unsafe (key(entry), version(entry))
        let place = unsafe place(of: key, version, near: leaf)
        if place.following != 0, self.version(place.following) == version,
            unsafe compareBytes(self.key(place.following), key) == 0
        {
            unsafe (address(place.following) + EntryField.valueOffset).copyMemory(
                from: address(entry) + EntryField.valueOffset, byteCount: EntryField.next - EntryField.valueOffset)
            return forget(1)
        }
        link(entry, at: place)
    }

    private func link(_ entry: UInt32, at place: Place) {
        unsafe noteInFilter(key(entry))
        unsafe link(entry).pointee.store(next(place.previous), ordering: .relaxed)
        unsafe link(place.previous).pointee.store(entry, ordering: .releasing)
        enter(entry, at: place)
    }

    /// Some entries that `makeEntry` has made are not used. Writer's thread.
    func forget(_ count: Int) {
        unsafe atomicInt(at: Field.entryCount).pointee.subtract(count, ordering: .relaxed)
    }

    /// Makes an entry that is not in the list yet. Writer's thread.
    func makeEntry(_ key: UnsafeRawBufferPointer, _ version: UInt64, _ value: UnsafeRawBufferPointer?) -> UInt32 {
        let entry = allocate(EntryField.key + key.count)
        let start = unsafe address(entry)
        unsafe start.storeBytes(of: version, as: UInt64.self)
        unsafe start.storeBytes(of: UInt16(key.count), toByteOffset: EntryField.keyLength, as: UInt16.self)
        unsafe (start + EntryField.key).copyMemory(from: key.baseAddress!, byteCount: key.count)
        unsafe setValue(of: entry, to: value)
        if unsafe RunKind(of: key) == .documents { noteDocument(MutationBatch.documentHeadBytes + key.count) }
        if entryCount == 0 { unsafe base.storeBytes(of: version, toByteOffset: Field.versionMin, as: UInt64.self) }
        if version > versionMax.microseconds {
            unsafe base.storeBytes(of: version, toByteOffset: Field.versionMax, as: UInt64.self)
        }
        unsafe atomicInt(at: Field.entryCount).pointee.add(1, ordering: .relaxed)
        return entry
    }

    private func noteDocument(_ bytes: Int) {
        unsafe atomicInt(at: Field.documentBytes).pointee.add(bytes, ordering: .relaxed)
    }

    private func setValue(of entry: UInt32, to value: UnsafeRawBufferPointer?) {
        let start = unsafe address(entry)
        guard let value = unsafe value else {
            unsafe start.storeBytes(of: Self.deletionLength, toByteOffset: EntryField.valueLength, as: UInt32.self)
            return
        }
        if unsafe RunKind(of: key(entry)) == .documents { noteDocument(value.count) }
        let length = (value.count + 7) & ~7
        precondition(length <= bytesFree, "the memtable is written beyond its bound")
        let offset = unsafe base.load(fromByteOffset: Field.valueStart, as: Int.self) - length
        if let bytes = value.baseAddress {
            unsafe base.storeBytes(of: offset, toByteOffset: Field.valueStart, as: Int.self)
            unsafe (base + offset).copyMemory(from: bytes, byteCount: value.count)
            unsafe atomicInt(at: Field.byteCount).pointee.add(length, ordering: .relaxed)
        }
        unsafe start.storeBytes(of: UInt32(offset / 8), toByteOffset: EntryField.valueOffset, as: UInt32.self)
        unsafe start.storeBytes(of: UInt32(value.count), toByteOffset: EntryField.valueLength, as: UInt32.self)
    }
}
