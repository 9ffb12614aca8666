internal import Basics
internal import Glibc

/// Sorts entries of a memtable by key, and for one key the newest version first. Keeps its memory.
///
/// A radix sort from the first byte on that skips what the keys of a part have in common (McIlroy, Bostic and McIlroy
/// 1993), with eight bytes of each key next to the number of its entry (Ng and Kakehi 2007), so that most steps touch
/// no entry. Small parts are sorted by insertion.
@safe
struct BatchSort: ~Copyable {
    private struct Item {
        /// Eight bytes of the key, from the depth of the part on.
        var front: UInt64
        var entry: UInt32
    }

    private var items: UnsafeMutablePointer<Item>
    private var spare: UnsafeMutablePointer<Item>
    private var capacity = 1024
    private var hasDuplicates = false

    private static let smallCount = 16
    /// Parts within parts; what is deeper is sorted by comparisons, so that no keys exhaust the stack.
    private static let levelsMax = 48

    init() {
        unsafe items = .allocate(capacity: capacity)
        unsafe spare = .allocate(capacity: capacity)
    }

    deinit {
        unsafe items.deallocate()
        unsafe spare.deallocate()
    }

    /// Sorts the entries. Of several with the same key and version the last one stays.
    /// - Returns: how many are left; `copy` gives their numbers.
    mutating func sort(_ entries: Span<UInt32>, of memtable: Memtable) -> Int {
        reserve(entries.count)
        for index in entries.indices {
            let entry = entries[index]
            unsafe items[index] = Item(front: Memtable.front(of: memtable.key(entry), behind: 0), entry: entry)
        }
        hasDuplicates = false
        sort(0, entries.count, depth: 0, level: 0, memtable)
        return hasDuplicates ? removeDuplicates(entries.count, memtable) : entries.count
    }

    func copy(_ count: Int, to entries: UnsafeMutablePointer<UInt32>) {
        for index in 0..<count { unsafe entries[index] = items[index].entry }
    }

    private mutating func reserve(_ count: Int) {
        guard count > capacity else { return }
        unsafe items.deallocate()
        unsafe spare.deallocate()
        capacity = count
        unsafe items = .allocate(capacity: capacity)
        unsafe spare = .allocate(capacity: capacity)
    }

    /// Sorts a part, whose keys are alike up to `depth`.
    private mutating func sort(_ first: Int, _ end: Int, depth: Int, level: Int, _ memtable: Memtable) {
        var (first, depth) = (first, depth)
        while end - first > Self.smallCount && level < Self.levelsMax {
            let front = unsafe items[first].front
            var difference: UInt64 = 0
            for index in first..<end { difference |= unsafe items[index].front ^ front }
            if difference == 0 {
                first = passEnded(first, end, depth, memtable)
                depth += 8
                for index in first..<end {
                    unsafe items[index].front = Memtable.front(of: memtable.key(items[index].entry), behind: depth)
                }
                continue
            }
            let shift = UInt64(63 - difference.leadingZeroBitCount) & ~7
            let bounds = distribute(first, end, by: shift)
            var start = first
            for byte in 0..<256 {
                let next = first + Int(bounds[byte])
                if next - start > 1 { sort(start, next, depth: depth, level: level + 1, memtable) }
                start = next
            }
            return
        }
        if end - first <= Self.smallCount {
            insertionSort(first, end, depth, memtable)
        } else {
            compareSort(first, end, depth, memtable)
        }
    }

    /// Orders a part by one byte of the fronts.
    /// - Returns: the end of the items with each byte, from `first` on.
    private mutating func distribute(_ first: Int, _ end: Int, by shift: UInt64) -> InlineArray<256, UInt32> {
        var places = InlineArray<256, UInt32>(repeating: 0)
        for index in first..<end {
            let byte = unsafe Int(items[index].front &>> shift & 0xFF)
            places[byte] &+= 1
        }
        var sum: UInt32 = 0
        for byte in 0..<256 {
            let count = places[byte]
            places[byte] = sum
            sum &+= count
        }
        for index in first..<end {
            let item = unsafe items[index]
            let byte = Int(item.front &>> shift & 0xFF)
            unsafe spare[Int(places[byte])] = item
            places[byte] &+= 1
        }
        unsafe (items + first).update(from: spare, count: end - first)
        return places
    }

    /// Puts the entries of a part whose keys end within the front at its beginning, and sorts them: each is a prefix of
    /// all longer keys.
    /// - Returns: where the others begin.
    private mutating func passEnded(_ first: Int, _ end: Int, _ depth: Int, _ memtable: Memtable) -> Int {
        var place = first
        for index in first..<end where unsafe memtable.key(items[index].entry).count <= depth + 8 {
            let item = unsafe items[index]
            unsafe items[index] = items[place]
            unsafe items[place] = item
            place += 1
        }
        if place > first { compareSort(first, place, depth, memtable) }
        return place
    }

    private mutating func insertionSort(_ first: Int, _ end: Int, _ depth: Int, _ memtable: Memtable) {
        for index in first..<end {
            let item = unsafe items[index]
            var place = index
            while place > first, unsafe isBefore(item, items[place - 1], depth, memtable) {
                unsafe items[place] = items[place - 1]
                place -= 1
            }
            unsafe items[place] = item
        }
    }

    private mutating func compareSort(_ first: Int, _ end: Int, _ depth: Int, _ memtable: Memtable) {
        var part = unsafe UnsafeMutableBufferPointer(start: items + first, count: end - first)
        unsafe part.sort { isBefore($0, $1, depth, memtable) }
    }

    /// The order of two items of a part. Among equal keys and versions the entry that was made later comes first.
    @inline(__always)
    private mutating func isBefore(_ left: Item, _ right: Item, _ depth: Int, _ memtable: Memtable) -> Bool {
        if left.front != right.front { return left.front < right.front }
        let (leftKey, rightKey) = unsafe (memtable.key(left.entry), memtable.key(right.entry))
        let common = min(leftKey.count, rightKey.count)
        if common > depth {
            let order = unsafe memcmp(leftKey.baseAddress! + depth, rightKey.baseAddress! + depth, common - depth)
            if order != 0 { return order < 0 }
        }
        if leftKey.count != rightKey.count { return leftKey.count < rightKey.count }
        let (leftVersion, rightVersion) = (memtable.version(left.entry), memtable.version(right.entry))
        if leftVersion != rightVersion { return leftVersion > rightVersion }
        if left.entry != right.entry { hasDuplicates = true }
        return left.entry > right.entry
    }

    /// Leaves out what has the key and version of the item before.
    private mutating func removeDuplicates(_ count: Int, _ memtable: Memtable) -> Int {
        var kept = 1
        for index in 1..<count {
            let (entry, last) = unsafe (items[index].entry, items[kept - 1].entry)
            if memtable.version(entry) == memtable.version(last),
                unsafe compareBytes(memtable.key(entry), memtable.key(last)) == 0
            {
                continue
            }
            unsafe items[kept] = items[index]
            kept += 1
        }
        return kept
    }
}
