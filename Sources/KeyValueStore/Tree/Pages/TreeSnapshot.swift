// One committed state of the tree: its pages, checked before they are used, and the search in them.
//
// What makes an answer right is checked in three places:
//
//   - a page by itself, once (`TreePageCheck`): its form, the order of its keys, and the sums of all entries in it;
//   - the path to it: a key that is not found at an edge of a leaf is searched in the next leaf too, and the keys of
//     all pages on the path must lie in the ranges that the pages above give (`PageCursor`): a damaged key or number in
//     a branch page leads to the wrong leaf;
//   - that it is not free: a damaged number in a branch page may lead to an older copy of the page.
//
// So a key is reported as absent only between two undamaged neighbours.

/// The databases in a tree.
enum PageKind: UInt64 {
    /// LMDB's: pages that are not in use, by transaction.
    case freeList
    /// LMDB's: the records of the databases below.
    case directory
    case main
    case history
    case meta
    /// Before format 2: without sums.
    case unsummedMain
    case unsummedHistory
    case unsummedMeta
}

/// Where a database begins.
struct DatabaseRoot {
    let page: UInt64
    let depth: Int
    let kind: PageKind

    init(_ record: DatabaseRecord, _ kind: PageKind) {
        page = record.root
        depth = record.depth
        self.kind = kind
    }
}

/// A committed state. Valid while a read transaction of it is open, or before the next write transaction ends.
/// Plain numbers and addresses: copying one counts no references.
struct TreeSnapshot {
    let pages: TreePages
    let transaction: UInt64
    let pageCount: UInt64
    let main: DatabaseRoot
    let history: DatabaseRoot

    /// A state without any database, to look for them.
    init(_ pages: TreePages, _ meta: MetaPage) {
        self.pages = pages
        transaction = meta.transaction
        pageCount = meta.pageCount
        main = DatabaseRoot(meta.directory, .directory)
        history = main
    }

    init(_ other: TreeSnapshot, main: DatabaseRoot, history: DatabaseRoot) {
        pages = other.pages
        transaction = other.transaction
        pageCount = other.pageCount
        self.main = main
        self.history = history
    }

    /// A branch page or a leaf, checked.
    /// - Throws: `corrupt`.
    @inline(__always)
    func page(_ number: UInt64, isLeaf: Bool, _ kind: PageKind) throws(StorageError) -> TreePage {
        if number < pageCount, pages.isChecked(number, as: PageMark(kind, isLeaf ? .leaf : .branch)) {
            return pages[number]
        }
        try check(number, isLeaf: isLeaf, kind)
        return pages[number]
    }

    @inline(never)
    private func check(_ number: UInt64, isLeaf: Bool, _ kind: PageKind) throws(StorageError) {
        try checkUse(number, count: 1)
        do throws(PageProblem) {
            let check = TreePageCheck(
                pages[number], number: number, pageBytes: pages.pageBytes, pageCount: pageCount, kind: kind)
            try check.run(isLeaf: isLeaf)
        } catch {
            throw pages.damaged(number, error.text)
        }
        pages.noteChecked(number, as: PageMark(kind, isLeaf ? .leaf : .branch), in: transaction)
    }

    /// Makes sure that pages are there and in use.
    private func checkUse(_ number: UInt64, count: Int) throws(StorageError) {
        guard number > 1, number < pageCount, UInt64(count) <= pageCount - number else {
            throw pages.damaged(number, "is referred to, and the tree has \(pageCount) pages")
        }
        try pages.checkPresence(number, count: count)
        if pages.isFree(number, in: transaction) { throw pages.damaged(number, "is in use and free") }
    }

    /// The data of a node in a checked leaf.
    /// - Throws: `corrupt`.
    @inline(__always)
    func data(_ node: TreeNode, _ kind: PageKind) throws(StorageError) -> UnsafeRawBufferPointer {
        if !node.isLarge { return unsafe node.inlineData }
        return unsafe try largeData(node, kind)
    }

    private func largeData(_ node: TreeNode, _ kind: PageKind) throws(StorageError) -> UnsafeRawBufferPointer {
        let number = node.overflowPage
        let page = number < pageCount ? pages[number] : pages[0]
        let data = unsafe UnsafeRawBufferPointer(start: page.start + PageFormat.headerBytes, count: node.dataCount)
        if number < pageCount, pages.isChecked(number, as: PageMark(kind, .overflow)) { return unsafe data }
        // LMDB shortens lists of free pages in place; it writes everything else once.
        let needed = (PageFormat.headerBytes + node.dataCount + pages.pageBytes - 1) / pages.pageBytes
        try checkUse(number, count: needed)
        guard page.number == number, page.flags == PageFormat.overflow, page.overflowCount >= needed,
            kind == .freeList || page.overflowCount == needed, UInt64(page.overflowCount) <= pageCount - number
        else { throw pages.damaged(number, "is not an overflow page of \(needed) pages") }
        guard unsafe EntrySum.isRight(key: node.key, data: data, kind) else {
            throw pages.damaged(number, "holds an entry whose checksum is wrong")
        }
        pages.noteChecked(number, as: PageMark(kind, .overflow), in: transaction)
        return unsafe data
    }
}

// MARK: - Searching

extension TreeSnapshot {
    /// The first node from `first` on whose key is not below `key`, and whether it is equal.
    @inline(__always)
    static func search<Order: KeyOrder>(
        _ page: TreePage, _ key: UnsafeRawBufferPointer, from first: Int, _ order: Order.Type
    ) -> (index: Int, isEqual: Bool) {
        var low = first
        var high = page.count
        while low < high {
            let middle = (low + high) >> 1
            let order = unsafe Order.compare(page.key(middle), key)
            if order == 0 { return (middle, true) }
            if order < 0 { low = middle + 1 } else { high = middle }
        }
        return (low, false)
    }

    /// The node of a branch page below which a key belongs.
    @inline(__always)
    static func childIndex<Order: KeyOrder>(
        _ page: TreePage, _ key: UnsafeRawBufferPointer, _ order: Order.Type
    ) -> Int {
        let (index, isEqual) = unsafe search(page, key, from: 1, order)
        return isEqual ? index : index - 1
    }

    /// The data of a key, or nil if the key is not there.
    /// - Throws: `corrupt`.
    @inline(__always)
    func find<Order: KeyOrder>(
        _ key: UnsafeRawBufferPointer, in database: DatabaseRoot, _ order: Order.Type
    ) throws(StorageError) -> UnsafeRawBufferPointer? {
        if database.depth == 0 { return nil }
        var number = database.page
        for _ in 1..<database.depth {
            let page = try page(number, isLeaf: false, database.kind)
            number = unsafe page.node(Self.childIndex(page, key, order)).child
        }
        let leaf = try page(number, isLeaf: true, database.kind)
        let (index, isEqual) = unsafe Self.search(leaf, key, from: 0, order)
        if isEqual { return unsafe try data(leaf.node(index), database.kind) }
        if index == 0 || index == leaf.count || leaf.node(index - 1).isLarge || leaf.node(index).isLarge {
            unsafe try proveAbsence(key, in: database, order)
        }
        return nil
    }

    /// Makes sure that a key is not there, where its leaf alone cannot tell.
    @inline(never)
    private func proveAbsence<Order: KeyOrder>(
        _ key: UnsafeRawBufferPointer, in database: DatabaseRoot, _ order: Order.Type
    ) throws(StorageError) {
        var cursor = PageCursor<Order>(self, database)
        _ = unsafe try cursor.seek(key)
    }
}
