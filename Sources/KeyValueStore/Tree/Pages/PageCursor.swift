// Walking the pages of a database in order.

/// A place in a database, and the way to it from the root. Bytes that it lends stay valid as long as the snapshot.
@safe
struct PageCursor<Order: KeyOrder> {
    private struct Place {
        var page: TreePage
        var index: Int
    }

    private let tree: TreeSnapshot
    private let database: DatabaseRoot
    /// From the root to the leaf: the first `database.depth` are used.
    private var places: InlineArray<16, Place>
    /// Whether the cursor is at an entry.
    private(set) var isAtEntry = false

    init(_ tree: TreeSnapshot, _ database: DatabaseRoot) {
        self.tree = tree
        self.database = database
        places = InlineArray(repeating: Place(page: tree.pages[0], index: 0))
    }

    private var leafLevel: Int { database.depth - 1 }

    @inline(__always)
    private var leaf: TreePage { places[leafLevel].page }

    /// The key at which the cursor stands.
    @inline(__always)
    var key: UnsafeRawBufferPointer {
        let place = places[leafLevel]
        return unsafe place.page.key(place.index)
    }

    /// The data of the entry at which the cursor stands.
    /// - Throws: `corrupt`.
    @inline(__always)
    func data() throws(StorageError) -> UnsafeRawBufferPointer {
        let place = places[leafLevel]
        return unsafe try tree.data(place.page.node(place.index), database.kind)
    }

    // MARK: Moving

    /// Goes to the first entry whose key is not below `key`; answers whether it is equal.
    mutating func seek(_ key: UnsafeRawBufferPointer) throws(StorageError) -> Bool {
        isAtEntry = database.depth > 0
        guard isAtEntry else { return false }
        var number = database.page
        for level in 0..<leafLevel {
            let page = try tree.page(number, isLeaf: false, database.kind)
            let index = unsafe TreeSnapshot.childIndex(page, key, Order.self)
            places[level] = Place(page: page, index: index)
            number = page.node(index).child
        }
        let page = try tree.page(number, isLeaf: true, database.kind)
        let (index, isEqual) = unsafe TreeSnapshot.search(page, key, from: 0, Order.self)
        places[leafLevel] = Place(page: page, index: index)
        if !isEqual { unsafe try settleBesides(key) }
        return isEqual
    }

    /// Makes sure that nothing equal to `key` lies before the entry or beyond the leaf, and moves on from a leaf's end.
    private mutating func settleBesides(_ key: UnsafeRawBufferPointer) throws(StorageError) {
        let index = places[leafLevel].index
        let count = leaf.count
        // The keys of large entries are covered by a sum that lies with the value.
        if index > 0 { unsafe _ = try tree.data(leaf.node(index - 1), database.kind) }
        if index < count { unsafe _ = try tree.data(leaf.node(index), database.kind) }
        if index > 0 && index < count { return }
        try checkWay()
        if index == 0 {
            var before = self
            if try before.moveLeaf(.backward), unsafe Order.compare(before.key, key) >= 0 { throw before.misplaced() }
        } else {
            places[leafLevel].index = count - 1
            isAtEntry = try moveLeaf(.forward)
            if isAtEntry, unsafe Order.compare(self.key, key) <= 0 { throw misplaced() }
        }
    }

    /// Goes to the first entry, or the last.
    mutating func moveToEnd(_ end: ScanDirection) throws(StorageError) {
        isAtEntry = database.depth > 0
        guard isAtEntry else { return }
        try descend(to: database.page, level: 0, end)
        try checkWay()
    }

    /// Goes to the next entry in a direction.
    @inline(__always)
    mutating func step(_ direction: ScanDirection) throws(StorageError) {
        let index = places[leafLevel].index + (direction == .forward ? 1 : -1)
        if index >= 0 && index < leaf.count {
            places[leafLevel].index = index
        } else {
            isAtEntry = try moveLeaf(direction)
        }
    }

    /// Goes to the nearest entry of the next leaf; false, and no move, if this is the last.
    private mutating func moveLeaf(_ direction: ScanDirection) throws(StorageError) -> Bool {
        var level = leafLevel - 1
        while level >= 0, !canMove(level, direction) { level -= 1 }
        if level < 0 { return false }
        let from = leaf
        let edge = unsafe direction == .forward ? from.key(from.count - 1) : from.key(0)
        places[level].index += direction == .forward ? 1 : -1
        try descend(to: child(level), level: level + 1, direction == .forward ? .forward : .backward)
        try checkWay()
        let order = unsafe Order.compare(edge, key)
        if direction == .forward ? order >= 0 : order <= 0 { throw misplaced() }
        // A large entry at the edge is covered by a sum that lies with the value.
        unsafe _ = try data()
        return true
    }

    private func canMove(_ level: Int, _ direction: ScanDirection) -> Bool {
        let place = places[level]
        return direction == .forward ? place.index + 1 < place.page.count : place.index > 0
    }

    private func child(_ level: Int) -> UInt64 { places[level].page.node(places[level].index).child }

    /// Goes down from a page to its first entry (`forward`) or its last.
    private mutating func descend(
        to number: UInt64, level start: Int, _ end: ScanDirection
    ) throws(StorageError) {
        var number = number
        for level in start...leafLevel {
            let page = try tree.page(number, isLeaf: level == leafLevel, database.kind)
            let index = end == .forward ? 0 : page.count - 1
            places[level] = Place(page: page, index: index)
            if level < leafLevel { number = page.node(index).child }
        }
    }
}

// MARK: - Checking

extension PageCursor {
    /// Makes sure that the keys of each page on the way lie where the page above says.
    private func checkWay() throws(StorageError) {
        var lower: UnsafeRawBufferPointer?
        var upper: UnsafeRawBufferPointer?
        for level in 0...leafLevel {
            let page = places[level].page
            let first = level == leafLevel ? 0 : 1
            if unsafe !page.lies(from: lower, to: upper, first, Order.self) { throw misplaced(page) }
            let index = places[level].index
            if level < leafLevel {
                if index > 0 { unsafe lower = page.key(index) }
                if index + 1 < page.count { unsafe upper = page.key(index + 1) }
            }
        }
    }

    private func misplaced(_ page: TreePage? = nil) -> StorageError {
        tree.pages.damaged((page ?? leaf).number, "has keys that belong elsewhere, or a page above it is damaged")
    }

    /// The leaf at which the cursor is.
    var leafNumber: UInt64 { leaf.number }
}
