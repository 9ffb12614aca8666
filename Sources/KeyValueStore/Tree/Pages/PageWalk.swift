// All pages of a tree: what `hearth check` verifies.

/// Walks the databases of a state and notes what is wrong with their pages.
struct PageWalk: ~Copyable {
    private let tree: TreeSnapshot
    private let note: (String) -> Void
    /// One bit a page: it has been met.
    private var isMet: [UInt64]
    private var counts = Counts()

    private struct Counts {
        var branchPages: UInt64 = 0
        var leafPages: UInt64 = 0
        var overflowPages: UInt64 = 0
        var entries: UInt64 = 0
    }

    init(_ tree: TreeSnapshot, note: @escaping (String) -> Void) {
        self.tree = tree
        self.note = note
        isMet = Array(repeating: 0, count: Int(tree.pageCount / 64) + 1)
        isMet[0] = 3  // The meta pages.
    }

    /// Walks a database.
    mutating func walk<Order: KeyOrder>(_ record: DatabaseRecord, _ kind: PageKind, name: String, _ order: Order.Type) {
        counts = Counts()
        if record.depth > 0 { unsafe walk(record.root, levels: record.depth, lower: nil, upper: nil, kind, order) }
        let isRight =
            counts.branchPages == record.branchPages && counts.leafPages == record.leafPages
            && counts.overflowPages == record.overflowPages && counts.entries == record.entries
        if !isRight {
            let pages = counts.branchPages + counts.leafPages + counts.overflowPages
            let countedPages = record.branchPages + record.leafPages + record.overflowPages
            note(
                "\(name): \(counts.entries) entries are on \(pages) pages, "
                    + "\(record.entries) on \(countedPages) are counted")
        }
    }

    private mutating func walk<Order: KeyOrder>(
        _ number: UInt64, levels: Int, lower: UnsafeRawBufferPointer?, upper: UnsafeRawBufferPointer?, _ kind: PageKind,
        _ order: Order.Type
    ) {
        do throws(StorageError) {
            try meet(number, count: 1)
            let page = try tree.page(number, isLeaf: levels == 1, kind)
            let first = levels == 1 ? 0 : 1
            guard unsafe page.lies(from: lower, to: upper, first, order) else {
                throw tree.pages.damaged(number, "has keys that belong elsewhere, or a page above it is damaged")
            }
            if levels == 1 { return walkLeaf(page, kind) }
            counts.branchPages += 1
            for index in 0..<page.count {
                let low = unsafe index > 0 ? page.key(index) : lower
                let high = unsafe index + 1 < page.count ? page.key(index + 1) : upper
                unsafe walk(page.node(index).child, levels: levels - 1, lower: low, upper: high, kind, order)
            }
        } catch {
            note(error.description)
        }
    }

    private mutating func walkLeaf(_ page: TreePage, _ kind: PageKind) {
        counts.leafPages += 1
        counts.entries += UInt64(page.count)
        for index in 0..<page.count where page.node(index).isLarge {
            do throws(StorageError) {
                unsafe _ = try tree.data(page.node(index), kind)
                let number = page.node(index).overflowPage
                let count = tree.pages[number].overflowCount
                try meet(number, count: count)
                counts.overflowPages += UInt64(count)
            } catch {
                note(error.description)
            }
        }
    }

    /// Notes the pages of the free list, which has been walked.
    mutating func meetFreePages(_ freeList: DatabaseRecord) {
        do throws(StorageError) {
            var free: [UInt64] = []
            try tree.forEachFreePage(freeList) { number throws(StorageError) in free.append(number) }
            for number in free { try meet(number, count: 1) }
        } catch {
            note(error.description)
        }
    }

    /// Each page is met once.
    private mutating func meet(_ number: UInt64, count: Int) throws(StorageError) {
        guard number < tree.pageCount, UInt64(count) <= tree.pageCount - number else {
            throw tree.pages.damaged(number, "is referred to, and the tree has \(tree.pageCount) pages")
        }
        for number in Int(number)..<(Int(number) + count) {
            let bit = UInt64(1) << UInt64(number & 63)
            if isMet[number >> 6] & bit != 0 {
                throw tree.pages.damaged(UInt64(number), "is used twice, or in use and free")
            }
            isMet[number >> 6] |= bit
        }
    }

    /// Notes pages that were never met: they are neither in use nor free.
    consuming func finish() {
        let met = isMet.reduce(0) { $0 + $1.nonzeroBitCount }
        if met != tree.pageCount { note("the tree has \(tree.pageCount) pages, but \(met) are in use or free") }
    }
}
