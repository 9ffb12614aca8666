// The search tree of the memtable: it finds where in the list to start looking for a key.
//
// It is a B+ tree whose leaves name every entry of the list. A slot has the number of the entry and eight bytes of its
// key, the *front*, so that a search through a node of 36 slots does not touch the entries. All keys below a node share
// a prefix, the common prefix of its two *fences*. Fronts are the bytes after this prefix, and rarely two are equal.
// Only then are whole keys and versions compared.
//
//                       ┌──────────────────────────────────────────┐
//      inner            │  -∞          k7              k20         │   separators: entries, so that keys need no copy
//                       └──┬────────────┬───────────────┬──────────┘
//      leaves      k1 k3 k5      k7 k9 k12 k19      k20 k31          fences: the separators on either side
//
// One writer changes nodes in place, slot by slot, while readers search them. So a reader can be misled: it can see a
// slot twice, miss a slot, or enter a node whose upper half has just moved. But every number that it finds is the
// number of a complete entry or node, and it compares the entry that it ends with in full. If that entry is before the
// key, the reader follows the list from there; otherwise it searches again. The upper half of a node is entered in its
// parent before it is removed below, so readers miss nothing for longer than a few instructions.
//
// Node, 64-aligned, numbered by its offset / 8:
//
//      0  level         1 byte, 0 for a leaf
//      4  shape         4 bytes: slots in use, and from bit 16 on the number of key bytes before the fronts
//      8  low fence     4 bytes: the entry that separates the node from those to the left, or the head
//     12  high fence    4 bytes: the same to the right, or 0
//     16  fronts        8 bytes each
//    304  entries       4 bytes each
//    448  children      4 bytes each, of inner nodes. The first has no separator.

internal import CPrefetch
internal import Synchronization

extension Memtable {
    private static let slotsMax = 36
    private static let leafBytes = 448
    private static let innerBytes = 448 + 4 * slotsMax
    private static let levelsMax = 10

    /// The bytes of one entry in the tree, in the worst order of insertion: a node that splits leaves each half with
    /// half of its slots. Includes the loss by alignment.
    static let searchBytesPerEntry = 2 * (leafBytes + 64) / (slotsMax / 2) + 8
    /// One insertion may split a node on every level.
    static let searchBytesAtOnce = levelsMax * (innerBytes + 128)

    private enum NodeField {
        static let shape = 4
        static let low = 8
        static let high = 12
        static let fronts = 16
        static let entries = 304
        static let children = 448
    }

    /// Where an entry goes: between two entries of the list, and into a leaf.
    struct Place {
        let previous: UInt32
        /// What follows there, if it may have the same key; 0 also if it cannot.
        let following: UInt32
        fileprivate let leaf: UInt32
        fileprivate let slot: Int
    }

    func makeSearchTree() {
        let root = makeNode(level: 0, low: Self.head, high: 0)
        unsafe rootPointer.pointee.store(root, ordering: .releasing)
    }
}

// MARK: - Searching

extension Memtable {
    /// An entry before the place of `key` at `version`, or the head: nearly always the last one. Any thread.
    func hint(for key: UnsafeRawBufferPointer, _ version: UInt64) -> UInt32 {
        // Misled more than once or twice, a reader would have to be very unlucky; walking all of the list is right too.
        for _ in 0..<16 {
            let node = unsafe leaf(for: key, version)
            let slot = unsafe slot(of: key, version, in: node, from: 0)
            let entry = slot > 0 ? self.entry(node, slot - 1) : low(node)
            if entry == Self.head { return entry }
            if unsafe isBefore(entry, key, version) { return entry }
        }
        return Self.head
    }

    /// The leaf that the tree leads to; it is not touched.
    @inline(__always)
    private func leaf(for key: UnsafeRawBufferPointer, _ version: UInt64) -> UInt32 {
        var node = root
        for _ in 0..<level(node) { node = child(node, unsafe slot(of: key, version, in: node, from: 1) - 1) }
        return node
    }

    /// An entry near the end of the list, or the head. Any thread.
    var lastHint: UInt32 {
        var node = root
        while level(node) > 0 { node = child(node, slotCount(node) - 1) }
        let count = slotCount(node)
        return count > 0 ? entry(node, count - 1) : low(node)
    }

    /// The place of `key` at `version`; remembers the path to it. Writer's thread.
    func place(of key: UnsafeRawBufferPointer, _ version: UInt64) -> Place {
        var node = root
        var level = level(node)
        while level > 0 {
            let slot = unsafe slot(of: key, version, in: node, from: 1)
            unsafe path[level] = PathStep(node: node, slot: UInt32(slot - 1))
            node = child(node, slot - 1)
            level -= 1
        }
        return unsafe place(of: key, version, in: node)
    }

    /// The same for a key whose leaf was looked for before other keys were inserted.
    ///
    /// Splits take the high end of a leaf's range away and change nothing else of it. The path is needed when a leaf is
    /// full.
    func place(of key: UnsafeRawBufferPointer, _ version: UInt64, near known: KnownLeaf?) -> Place {
        guard let known, high(known.leaf) == known.high, slotCount(known.leaf) < Self.slotsMax else {
            return unsafe place(of: key, version)
        }
        return unsafe place(of: key, version, in: known.leaf)
    }

    @inline(__always)
    private func place(of key: UnsafeRawBufferPointer, _ version: UInt64, in node: UInt32) -> Place {
        let slot = unsafe slot(of: key, version, in: node, from: 0)
        let previous = slot > 0 ? entry(node, slot - 1) : low(node)
        // An entry whose front differs has another key; it need not be touched.
        let front = unsafe Self.front(of: key, behind: prefixBytes(node))
        let mayBeSame = slot == slotCount(node) || self.front(node, slot) == front
        return Place(previous: previous, following: mayBeSame ? next(previous) : 0, leaf: node, slot: slot)
    }

    /// A leaf into which a key goes, and the end of its range.
    struct KnownLeaf {
        let leaf: UInt32
        let high: UInt32
    }

    /// Prefetches the leaf into which `key` goes, and returns it. Call it on the writer's thread.
    func prefetch(_ key: UnsafeRawBufferPointer, _ version: UInt64) -> UInt32 {
        let node = unsafe leaf(for: key, version)
        for line in 0..<(Self.leafBytes / 64) { unsafe prefetch_for_writing(base + Int(node) * 8 + 64 * line) }
        return node
    }

    /// The leaf that `prefetch` has returned, which is in the cache by now.
    func known(_ leaf: UInt32) -> KnownLeaf { KnownLeaf(leaf: leaf, high: high(leaf)) }

    /// Prefetches an entry.
    @inline(__always)
    func prefetch(_ entry: UInt32) {
        unsafe prefetch_for_reading(base + Int(entry) * 8)
        unsafe prefetch_for_reading(base + Int(entry) * 8 + 64)
    }

    /// Prefetches the entry of a leaf after which `key` goes.
    func prefetch(_ key: UnsafeRawBufferPointer, _ version: UInt64, in leaf: UInt32) {
        let slot = unsafe slot(of: key, version, in: leaf, from: 0)
        if slot > 0 { unsafe prefetch_for_writing(base + Int(entry(leaf, slot - 1)) * 8) }
    }

    /// The first slot at or after `first` that is not before the place of `key` at `version`.
    @inline(__always)
    private func slot(
        of key: UnsafeRawBufferPointer, _ version: UInt64, in node: UInt32, from first: Int
    ) -> Int {
        let shape = unsafe shapePointer(node).pointee.load(ordering: .acquiring)
        let count = Int(shape & 0xFFFF)
        let front = unsafe Self.front(of: key, behind: Int(shape >> 16))
        // Without branches, which nobody could predict: `step` is taken where the front in the middle is lower.
        var low = first
        var left = count - first
        while left > 0 {
            let step = (left &+ 1) &>> 1
            let isLower = self.front(node, low &+ step &- 1).subtractingReportingOverflow(front).overflow
            low &+= step & (0 &- (isLower ? 1 : 0))
            left &-= step
        }
        if low >= count || self.front(node, low) != front { return low }
        // Of a key with many versions nearly always the newest is looked for, or a newer one inserted.
        if unsafe !isBefore(entry(node, low), key, version) { return low }
        low &+= 1
        var high = low
        while high < count, self.front(node, high) == front { high += 1 }
        while low < high {
            let middle = (low + high) / 2
            if unsafe isBefore(entry(node, middle), key, version) { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Eight bytes of a key after its first `prefixBytes`, as a number with the same order; missing bytes are zeros.
    @inline(__always)
    static func front(of key: UnsafeRawBufferPointer, behind prefixBytes: Int) -> UInt64 {
        let left = key.count - prefixBytes
        if left >= 8 {
            return unsafe UInt64(bigEndian: key.loadUnaligned(fromByteOffset: prefixBytes, as: UInt64.self))
        }
        var front: UInt64 = 0
        for offset in 0..<8 { front = unsafe front << 8 | UInt64(offset < left ? key[prefixBytes + offset] : 0) }
        return front
    }
}

// MARK: - Inserting

extension Memtable {
    /// Enters a linked entry at the place that was found for it. Writer's thread.
    func enter(_ entry: UInt32, at place: Place) {
        let (leaf, slot) = (place.leaf, place.slot)
        if slotCount(leaf) < Self.slotsMax { return put(entry, child: 0, into: leaf, at: slot) }
        let (left, right) = split(leaf, at: slot, entry)
        guard let right else { return }
        if slot <= Self.slotsMax / 2 {
            put(entry, child: 0, into: left, at: slot)
        } else {
            put(entry, child: 0, into: right, at: slot - Self.slotsMax / 2)
        }
    }

    /// Makes a full leaf into two.
    ///
    /// If the entry comes after all others it gets a new leaf to itself: ascending keys leave full nodes.
    /// - Returns: the leaves; no right one if the entry has been entered there.
    private func split(_ leaf: UInt32, at slot: Int, _ entry: UInt32) -> (left: UInt32, right: UInt32?) {
        let isRising = slot == Self.slotsMax
        let middle = isRising ? Self.slotsMax : Self.slotsMax / 2
        let separator = isRising ? entry : self.entry(leaf, middle)
        let right = makeNode(level: 0, low: separator, high: high(leaf))
        if isRising {
            put(entry, child: 0, into: right, at: 0)
        } else {
            move(from: middle, of: leaf, to: right)
        }
        addChild(right, behind: separator, level: 1)
        narrow(leaf, to: middle, below: separator)
        return (leaf, isRising ? nil : right)
    }

    /// Enters a node in its parent, after the one on the writer's path.
    private func addChild(_ added: UInt32, behind separator: UInt32, level: Int) {
        if level > self.level(root) { return addRoot(added, behind: separator, level: level) }
        let step = unsafe path[level]
        let (node, slot) = (step.node, Int(step.slot) + 1)
        if slotCount(node) < Self.slotsMax { return put(separator, child: added, into: node, at: slot) }
        let isRising = slot == Self.slotsMax
        let middle = isRising ? Self.slotsMax : Self.slotsMax / 2
        let promoted = isRising ? separator : entry(node, middle)
        let right = makeNode(level: level, low: promoted, high: high(node))
        if isRising {
            put(separator, child: added, into: right, at: 0)
        } else {
            move(from: middle, of: node, to: right)
            if slot > middle { put(separator, child: added, into: right, at: slot - middle) }
        }
        addChild(right, behind: promoted, level: level + 1)
        narrow(node, to: middle, below: promoted)
        if !isRising, slot <= middle { put(separator, child: added, into: node, at: slot) }
    }

    private func addRoot(_ added: UInt32, behind separator: UInt32, level: Int) {
        precondition(level < Self.levelsMax, "the memtable's search tree is too high")
        let old = root
        let new = makeNode(level: level, low: Self.head, high: 0)
        put(Self.head, child: old, into: new, at: 0)
        put(separator, child: added, into: new, at: 1)
        unsafe rootPointer.pointee.store(new, ordering: .releasing)
    }

    /// Puts an entry, and in inner nodes the child after it, into a slot; later slots move up.
    private func put(_ entry: UInt32, child: UInt32, into node: UInt32, at slot: Int) {
        let isInner = level(node) > 0
        let count = slotCount(node)
        var position = count
        while position > slot {
            copySlot(position - 1, of: node, to: position, of: node, isInner)
            position -= 1
        }
        if isInner { unsafe childPointer(node, slot).pointee.store(child, ordering: .releasing) }
        unsafe entryPointer(node, slot).pointee.store(entry, ordering: .releasing)
        let front = unsafe Self.front(of: key(entry), behind: prefixBytes(node))
        unsafe frontPointer(node, slot).pointee.store(front, ordering: .relaxed)
        setShape(node, count: count + 1, prefixBytes: prefixBytes(node))
    }

    @inline(__always)
    private func copySlot(_ slot: Int, of node: UInt32, to newSlot: Int, of newNode: UInt32, _ isInner: Bool) {
        if isInner { unsafe childPointer(newNode, newSlot).pointee.store(child(node, slot), ordering: .releasing) }
        unsafe entryPointer(newNode, newSlot).pointee.store(entry(node, slot), ordering: .releasing)
        unsafe frontPointer(newNode, newSlot).pointee.store(front(node, slot), ordering: .relaxed)
    }

    /// Copies the slots from `first` on to a new node.
    private func move(from first: Int, of node: UInt32, to right: UInt32) {
        let isInner = level(node) > 0
        let count = slotCount(node)
        for slot in first..<count { copySlot(slot, of: node, to: slot - first, of: right, isInner) }
        let prefixBytes = prefixBytes(right)
        setShape(right, count: count - first, prefixBytes: self.prefixBytes(node))
        setPrefix(of: right, prefixBytes)
    }

    /// Truncates a node to `count` slots; its new fence is nearer, so that fronts may begin later.
    private func narrow(_ node: UInt32, to count: Int, below fence: UInt32) {
        unsafe (base + Int(node) * 8).storeBytes(of: fence, toByteOffset: NodeField.high, as: UInt32.self)
        setShape(node, count: count, prefixBytes: prefixBytes(node))
        setPrefix(of: node, commonBytes(low(node), fence))
    }

    /// Computes fronts again, after so many bytes.
    private func setPrefix(of node: UInt32, _ prefixBytes: Int) {
        if prefixBytes == self.prefixBytes(node) { return }
        let count = slotCount(node)
        for slot in 0..<count {
            let front = unsafe Self.front(of: key(entry(node, slot)), behind: prefixBytes)
            unsafe frontPointer(node, slot).pointee.store(front, ordering: .relaxed)
        }
        setShape(node, count: count, prefixBytes: prefixBytes)
    }

    /// How many bytes all keys between two fences begin with.
    private func commonBytes(_ low: UInt32, _ high: UInt32) -> Int {
        if low == Self.head || high == 0 { return 0 }
        let (left, right) = unsafe (key(low), key(high))
        let count = min(left.count, right.count)
        var common = 0
        while common < count, unsafe left[common] == right[common] { common += 1 }
        return common
    }
}

// MARK: - Nodes

extension Memtable {
    /// One step of the writer's path: the slot through which it went down.
    private struct PathStep {
        var node: UInt32
        var slot: UInt32
    }

    /// The writer's path of the last `place`, by level.
    private var path: UnsafeMutablePointer<PathStep> {
        unsafe (base + Field.path).assumingMemoryBound(to: PathStep.self)
    }

    private var rootPointer: UnsafeMutablePointer<Atomic<UInt32>> {
        unsafe (base + Field.root).assumingMemoryBound(to: Atomic<UInt32>.self)
    }

    private var root: UInt32 { unsafe rootPointer.pointee.load(ordering: .acquiring) }

    /// A node without slots.
    private func makeNode(level: Int, low: UInt32, high: UInt32) -> UInt32 {
        let node = allocate(level == 0 ? Self.leafBytes : Self.innerBytes, aligned: 64)
        let start = unsafe base + Int(node) * 8
        unsafe start.storeBytes(of: UInt8(level), as: UInt8.self)
        unsafe start.storeBytes(of: low, toByteOffset: NodeField.low, as: UInt32.self)
        unsafe start.storeBytes(of: high, toByteOffset: NodeField.high, as: UInt32.self)
        setShape(node, count: 0, prefixBytes: commonBytes(low, high))
        return node
    }

    @inline(__always)
    private func level(_ node: UInt32) -> Int { unsafe Int((base + Int(node) * 8).load(as: UInt8.self)) }

    /// Never changes.
    @inline(__always)
    private func low(_ node: UInt32) -> UInt32 {
        unsafe (base + Int(node) * 8).load(fromByteOffset: NodeField.low, as: UInt32.self)
    }

    /// Writer's thread.
    private func high(_ node: UInt32) -> UInt32 {
        unsafe (base + Int(node) * 8).load(fromByteOffset: NodeField.high, as: UInt32.self)
    }

    @inline(__always)
    private func shapePointer(_ node: UInt32) -> UnsafeMutablePointer<Atomic<UInt32>> {
        unsafe (base + Int(node) * 8 + NodeField.shape).assumingMemoryBound(to: Atomic<UInt32>.self)
    }

    private func slotCount(_ node: UInt32) -> Int {
        unsafe Int(shapePointer(node).pointee.load(ordering: .acquiring) & 0xFFFF)
    }

    private func prefixBytes(_ node: UInt32) -> Int {
        unsafe Int(shapePointer(node).pointee.load(ordering: .relaxed) >> 16)
    }

    private func setShape(_ node: UInt32, count: Int, prefixBytes: Int) {
        unsafe shapePointer(node).pointee.store(UInt32(count | prefixBytes << 16), ordering: .releasing)
    }

    @inline(__always)
    private func frontPointer(_ node: UInt32, _ slot: Int) -> UnsafeMutablePointer<Atomic<UInt64>> {
        unsafe (base + Int(node) * 8 + NodeField.fronts + 8 * slot).assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    @inline(__always)
    private func front(_ node: UInt32, _ slot: Int) -> UInt64 {
        unsafe frontPointer(node, slot).pointee.load(ordering: .relaxed)
    }

    @inline(__always)
    private func entryPointer(_ node: UInt32, _ slot: Int) -> UnsafeMutablePointer<Atomic<UInt32>> {
        unsafe (base + Int(node) * 8 + NodeField.entries + 4 * slot).assumingMemoryBound(to: Atomic<UInt32>.self)
    }

    @inline(__always)
    private func entry(_ node: UInt32, _ slot: Int) -> UInt32 {
        unsafe entryPointer(node, slot).pointee.load(ordering: .acquiring)
    }

    @inline(__always)
    private func childPointer(_ node: UInt32, _ slot: Int) -> UnsafeMutablePointer<Atomic<UInt32>> {
        unsafe (base + Int(node) * 8 + NodeField.children + 4 * slot).assumingMemoryBound(to: Atomic<UInt32>.self)
    }

    @inline(__always)
    private func child(_ node: UInt32, _ slot: Int) -> UInt32 {
        unsafe childPointer(node, slot).pointee.load(ordering: .acquiring)
    }
}
