// The overlay: an ordered table in memory of everything committed since the last checkpoint, with all its versions.
//
// A skip list (Pugh 1990; LevelDB's memtable) in one block of address space. One writer inserts, any number of readers
// walk at the same time without a lock. Entries are ordered by key, and for one key by version, newest first:
//
//      ("a", 7) → ("a", 3) → ("b", 9, deleted) → ("b", 4) → …       a read at version 5 sees a@3 and b@4
//
//      base                                                                                  base + reserved
//      ┌────────┬───────────┬────────┬────────┬─ ─ ─ ─►                      ◄─ ─ ─┬───────┬───────┬────────┐
//      │ header │ head node │ node 1 │ node 2 │            untouched               │ val 2 │ val 1 │ filter │
//      └────────┴───────────┴────────┴────────┴─ ─ ─ ─►                      ◄─ ─ ─┴───────┴───────┴────────┘
//
// The filter (Bloom 1970, with all bits of a key in one word of 64) tells for one cache miss that a key is not there, which is
// what most lookups find: a search of the list costs ten or twenty. Nodes grow upwards and stay dense, so that searching touches few pages; values grow downwards. Only touched pages take
// memory. Nothing is freed but the whole, when it has been written to the tree and no reader looks through it any more
// (`OverlayRegistry`).
//
// Why this is safe without a lock: a node is complete before its number is stored (releasing) in a neighbour's tower, and a
// reader gets that number only from a tower (acquiring). A node never changes afterwards, but for its tower and, while its
// version is unpublished, its value: readers pass such nodes by after looking at key and version alone. A key's bits are set
// in the filter before its node is linked.
//
// Node, 8-aligned, numbered by its offset / 8; 0 is no node:
//
//      0  version       8 bytes
//      8  value offset  4 bytes, in units of 8 from base
//     12  value length  4 bytes, 0xFFFFFFFF for a deletion
//     16  key length    2 bytes
//     18  height        1 byte, then 1 unused
//     20  tower         4 bytes each: next node at level 0, 1, …
//         key

internal import CXXHash
internal import Glibc
internal import Synchronization

/// A skip list in its own address space. A copy refers to the same list; `release` ends it for all.
/// Safe to use while the registry (or the only owner) holds it; all offsets inside are made by `insert`.
@safe
struct Overlay: @unchecked Sendable {  // See the essay above.
    let base: UnsafeMutableRawPointer

    static let heightMax = 12
    static let deletionLength = UInt32.max
    static let headNode: UInt32 = 16

    /// Where things stand in the header.
    private enum Field {
        static let reserved = 0
        static let nodeEnd = 8
        static let valueStart = 16
        static let random = 24
        static let entryCount = 32
        static let byteCount = 40
        static let versionMax = 48
        static let height = 56
        /// The last insertion's predecessor on each level, for insertions in key order.
        static let finger = 64
        /// Words of the filter less one, and where it begins.
        static let filterMask = 112
        static let filterStart = 120
    }

    /// Reserves address space for `reservedBytes` of nodes and values, and a filter for some `filterBytes / 4` keys.
    init(reservedBytes: Int, filterBytes: Int = 4096) throws(StorageError) {
        var filterWords = 1
        while filterWords * 16 <= filterBytes { filterWords *= 2 }
        let rounded = (reservedBytes + filterWords * 8 + 4095) & ~4095
        let memory = unsafe mmap(
            nil, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        guard let memory = unsafe memory, unsafe memory != MAP_FAILED else {
            throw .system(errno, "cannot reserve \(rounded) bytes of address space for the overlay")
        }
        unsafe base = memory
        unsafe base.storeBytes(of: rounded, toByteOffset: Field.reserved, as: Int.self)
        unsafe base.storeBytes(of: rounded - filterWords * 8, toByteOffset: Field.valueStart, as: Int.self)
        unsafe base.storeBytes(of: filterWords - 1, toByteOffset: Field.filterMask, as: Int.self)
        unsafe base.storeBytes(of: rounded - filterWords * 8, toByteOffset: Field.filterStart, as: Int.self)
        unsafe base.storeBytes(of: 0x9E37_79B9_7F4A_7C15, toByteOffset: Field.random, as: UInt64.self)
        let head = Int(Self.headNode) * 8
        unsafe base.storeBytes(of: UInt8(Self.heightMax), toByteOffset: head + 18, as: UInt8.self)
        let end = head + Self.nodeBytes(height: Self.heightMax, keyLength: 0)
        unsafe base.storeBytes(of: end, toByteOffset: Field.nodeEnd, as: Int.self)
        height = 1
        resetFinger()
    }

    /// Gives the memory back. Nothing may refer to the list any more.
    func release() {
        unsafe munmap(base, reservedBytes)
    }

    private var reservedBytes: Int { unsafe base.load(fromByteOffset: Field.reserved, as: Int.self) }

    /// Entries: keys times versions. Any thread.
    var entryCount: Int { unsafe atomicInt(at: Field.entryCount).pointee.load(ordering: .relaxed) }

    /// Bytes taken by nodes and values. Any thread.
    var byteCount: Int { unsafe atomicInt(at: Field.byteCount).pointee.load(ordering: .relaxed) }

    /// The highest version inserted. Writer's thread, or any once the overlay is frozen.
    var versionMax: CommitVersion {
        CommitVersion(microseconds: unsafe base.load(fromByteOffset: Field.versionMax, as: UInt64.self))
    }

    /// An upper bound of what inserting `count` entries with `bytes` of keys and values takes.
    static func bytesNeeded(count: Int, bytes: Int) -> Int {
        bytes + count * (20 + 4 * heightMax + 16)
    }

    /// Bytes that can still be inserted. Writer's thread.
    var bytesFree: Int {
        unsafe base.load(fromByteOffset: Field.valueStart, as: Int.self)
            - base.load(fromByteOffset: Field.nodeEnd, as: Int.self)
    }
}

// MARK: - Nodes

extension Overlay {
    private static func nodeBytes(height: Int, keyLength: Int) -> Int {
        (20 + 4 * height + keyLength + 7) & ~7
    }

    private func address(_ node: UInt32) -> UnsafeMutableRawPointer {
        unsafe base + Int(node) * 8
    }

    func version(_ node: UInt32) -> UInt64 {
        unsafe address(node).load(as: UInt64.self)
    }

    func key(_ node: UInt32) -> UnsafeRawBufferPointer {
        let start = unsafe address(node)
        let length = unsafe Int(start.load(fromByteOffset: 16, as: UInt16.self))
        let height = unsafe Int(start.load(fromByteOffset: 18, as: UInt8.self))
        return unsafe UnsafeRawBufferPointer(start: start + 20 + 4 * height, count: length)
    }

    /// The node's value; nil for a deletion. Only for nodes whose version is published, or on the writer's thread.
    func value(_ node: UInt32) -> UnsafeRawBufferPointer? {
        let start = unsafe address(node)
        let length = unsafe start.load(fromByteOffset: 12, as: UInt32.self)
        if length == Self.deletionLength { return nil }
        let offset = unsafe Int(start.load(fromByteOffset: 8, as: UInt32.self)) * 8
        return unsafe UnsafeRawBufferPointer(start: base + offset, count: Int(length))
    }

    /// The node after `node` on a level; 0 at the end.
    @inline(__always)
    func next(_ node: UInt32, level: Int = 0) -> UInt32 {
        unsafe tower(node, level).pointee.load(ordering: .acquiring)
    }

    @inline(__always)
    private func tower(_ node: UInt32, _ level: Int) -> UnsafeMutablePointer<Atomic<UInt32>> {
        unsafe (address(node) + 20 + 4 * level).assumingMemoryBound(to: Atomic<UInt32>.self)
    }

    private func atomicInt(at offset: Int) -> UnsafeMutablePointer<Atomic<Int>> {
        unsafe (base + offset).assumingMemoryBound(to: Atomic<Int>.self)
    }

    /// The number of levels in use.
    @inline(__always)
    private var height: Int {
        get { unsafe Int(heightPointer.pointee.load(ordering: .relaxed)) }
        nonmutating set { unsafe heightPointer.pointee.store(UInt32(newValue), ordering: .relaxed) }
    }

    private var heightPointer: UnsafeMutablePointer<Atomic<UInt32>> {
        unsafe (base + Field.height).assumingMemoryBound(to: Atomic<UInt32>.self)
    }
}

// MARK: - The filter

extension Overlay {
    static func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
        unsafe XXH3_64bits(key.baseAddress, key.count)
    }

    /// False if no version of the key with this hash is there; true if one may be.
    @inline(__always)
    func mayContain(hash: UInt64) -> Bool {
        let bits = Self.filterBits(hash)
        return unsafe filterWord(hash).pointee.load(ordering: .relaxed) & bits == bits
    }

    private func noteInFilter(_ key: UnsafeRawBufferPointer) {
        let hash = unsafe Self.hash(key)
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

// MARK: - Searching

extension Overlay {
    /// Whether `node` stands before the place of `key` at `version`: a lower key, or the same key and a newer version.
    @inline(__always)
    private func isBefore(_ node: UInt32, _ key: UnsafeRawBufferPointer, _ version: UInt64) -> Bool {
        let order = unsafe compareBytes(self.key(node), key)
        return order != 0 ? order < 0 : self.version(node) > version
    }

    /// The first node at or after the place of `key` at `version`; 0 if there is none.
    func firstNode(atOrAfter key: UnsafeRawBufferPointer, version: UInt64) -> UInt32 {
        var node = Self.headNode
        var level = height - 1
        var beyond: UInt32 = 0
        while true {
            let following = next(node, level: level)
            if following != 0 && following != beyond, unsafe isBefore(following, key, version) {
                node = following
            } else {
                if level == 0 { return following }
                beyond = following
                level -= 1
            }
        }
    }

    /// The last node before the first one of `key`; 0 if there is none. With nil, the last of all.
    func lastNode(before key: UnsafeRawBufferPointer?) -> UInt32 {
        var node = Self.headNode
        var level = height - 1
        while true {
            let following = next(node, level: level)
            let isLower = unsafe following != 0 && (key.map { unsafe isBefore(following, $0, .max) } ?? true)
            if isLower {
                node = following
            } else {
                if level == 0 { return node == Self.headNode ? 0 : node }
                level -= 1
            }
        }
    }

    /// The node of the newest version of `key` that is at most `version`; 0 if there is none.
    func find(_ key: UnsafeRawBufferPointer, atMost version: UInt64) -> UInt32 {
        let node = unsafe firstNode(atOrAfter: key, version: version)
        guard node != 0, unsafe compareBytes(self.key(node), key) == 0 else { return 0 }
        return node
    }

    var firstNode: UInt32 { next(Self.headNode) }

    var isEmpty: Bool { firstNode == 0 }
}

// MARK: - Inserting

extension Overlay {
    /// Adds a value, or with nil a deletion, of `key` at `version`; replaces the one of the very same version. Writer's thread.
    ///
    /// The caller has made sure that `bytesNeeded` are free.
    func insert(_ key: UnsafeRawBufferPointer, version: UInt64, value: UnsafeRawBufferPointer?) {
        let following = unsafe moveFinger(to: key, version)
        if following != 0, self.version(following) == version, unsafe compareBytes(self.key(following), key) == 0 {
            unsafe setValue(of: following, to: value)
            return
        }
        let nodeHeight = randomHeight()
        let length = Self.nodeBytes(height: nodeHeight, keyLength: key.count)
        let offset = unsafe base.load(fromByteOffset: Field.nodeEnd, as: Int.self)
        precondition(length <= bytesFree, "the overlay is written beyond its bound")
        unsafe base.storeBytes(of: offset + length, toByteOffset: Field.nodeEnd, as: Int.self)
        let node = UInt32(offset / 8)
        let start = unsafe address(node)
        unsafe start.storeBytes(of: version, as: UInt64.self)
        unsafe start.storeBytes(of: UInt16(key.count), toByteOffset: 16, as: UInt16.self)
        unsafe start.storeBytes(of: UInt8(nodeHeight), toByteOffset: 18, as: UInt8.self)
        unsafe (start + 20 + 4 * nodeHeight).copyMemory(from: key.baseAddress!, byteCount: key.count)
        unsafe setValue(of: node, to: value)
        unsafe noteInFilter(key)
        if version > versionMax.microseconds {
            unsafe base.storeBytes(of: version, toByteOffset: Field.versionMax, as: UInt64.self)
        }
        link(node, height: nodeHeight)
        unsafe atomicInt(at: Field.entryCount).pointee.add(1, ordering: .relaxed)
        unsafe atomicInt(at: Field.byteCount).pointee.add(length, ordering: .relaxed)
    }

    /// Puts a complete node behind the finger on its levels, lowest first, and moves the finger onto it.
    private func link(_ node: UInt32, height nodeHeight: Int) {
        if nodeHeight > height {
            height = nodeHeight
        }
        for level in 0..<nodeHeight {
            let predecessor = unsafe finger[level]
            let following = next(predecessor, level: level)
            unsafe tower(node, level).pointee.store(following, ordering: .relaxed)
            unsafe tower(predecessor, level).pointee.store(node, ordering: .releasing)
            unsafe finger[level] = node
        }
    }

    private func setValue(of node: UInt32, to value: UnsafeRawBufferPointer?) {
        let start = unsafe address(node)
        guard let value = unsafe value else {
            unsafe start.storeBytes(of: Self.deletionLength, toByteOffset: 12, as: UInt32.self)
            return
        }
        let length = (value.count + 7) & ~7
        precondition(length <= bytesFree, "the overlay is written beyond its bound")
        let offset = unsafe base.load(fromByteOffset: Field.valueStart, as: Int.self) - length
        unsafe base.storeBytes(of: offset, toByteOffset: Field.valueStart, as: Int.self)
        if let bytes = value.baseAddress { unsafe (base + offset).copyMemory(from: bytes, byteCount: value.count) }
        unsafe start.storeBytes(of: UInt32(offset / 8), toByteOffset: 8, as: UInt32.self)
        unsafe start.storeBytes(of: UInt32(value.count), toByteOffset: 12, as: UInt32.self)
        unsafe atomicInt(at: Field.byteCount).pointee.add(length, ordering: .relaxed)
    }

    private var finger: UnsafeMutablePointer<UInt32> {
        unsafe (base + Field.finger).assumingMemoryBound(to: UInt32.self)
    }

    private func resetFinger() {
        for level in 0..<Self.heightMax { unsafe finger[level] = Self.headNode }
    }

    /// Makes the finger hold the predecessors of the place of `key` at `version`, and answers the node that follows there.
    /// The nearer the place lies behind the last insertion, as in loads in key order, the less there is to search.
    private func moveFinger(to key: UnsafeRawBufferPointer, _ version: UInt64) -> UInt32 {
        var node = Self.headNode
        var level = height - 1
        let last = unsafe finger[0]
        if last != Self.headNode, unsafe isBefore(last, key, version) {
            let following = next(last)
            if following == 0 { return 0 }
            if unsafe !isBefore(following, key, version) { return following }
            // Up as long as the finger's neighbours are before the place, then down from there: near places cost little.
            level = 1
            while level < height {
                let neighbour = unsafe next(finger[level], level: level)
                guard neighbour != 0, unsafe isBefore(neighbour, key, version) else { break }
                level += 1
            }
            level -= 1
            node = unsafe finger[level]
        } else {
            resetFinger()
        }
        var beyond: UInt32 = 0
        while true {
            let following = next(node, level: level)
            if following != 0 && following != beyond, unsafe isBefore(following, key, version) {
                node = following
            } else {
                unsafe finger[level] = node
                if level == 0 { return following }
                beyond = following
                level -= 1
            }
        }
    }

    /// 1 with probability 3/4, 2 with 3/16, … (xorshift64*).
    private func randomHeight() -> Int {
        var state = unsafe base.load(fromByteOffset: Field.random, as: UInt64.self)
        state ^= state >> 12
        state ^= state << 25
        state ^= state >> 27
        unsafe base.storeBytes(of: state, toByteOffset: Field.random, as: UInt64.self)
        let bits = (state &* 0x2545_F491_4F6C_DD1D) >> 40
        return min(Self.heightMax, 1 + (bits | 1 << 23).trailingZeroBitCount / 2)
    }
}

/// Orders two byte strings as unsigned bytes, a prefix first: negative, zero or positive.
@inline(__always)
func compareBytes(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
    let common = min(left.count, right.count)
    if common > 0 {
        let order = unsafe memcmp(left.baseAddress!, right.baseAddress!, common)
        if order != 0 { return Int(order) }
    }
    return left.count - right.count
}
