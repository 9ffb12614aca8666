// Checking a branch page or a leaf by itself: its form, the order of its keys, and the sums of the entries in it.
//
// LMDB keeps the nodes of a page without gaps between them. So a node that is lost, doubled or of a wrong length shows,
// whichever byte is damaged: nothing on a page stays unchecked but the space between the offsets and the nodes, which
// holds nothing, and the keys of branch pages, which are checked against each other and against the pages below as
// these are used.

/// What is wrong with a page, as the end of a sentence.
struct PageProblem: Error {
    let text: String

    init(_ text: String) { self.text = text }
}

struct TreePageCheck {
    private let page: TreePage
    private let number: UInt64
    private let pageBytes: Int
    private let pageCount: UInt64
    private let kind: PageKind

    /// Of a page that is in the map, to be checked as one of `kind` in a tree of `pageCount` pages.
    init(_ page: TreePage, number: UInt64, pageBytes: Int, pageCount: UInt64, kind: PageKind) {
        self.page = page
        self.number = number
        self.pageBytes = pageBytes
        self.pageCount = pageCount
        self.kind = kind
    }

    func run(isLeaf: Bool) throws(PageProblem) {
        guard page.number == number else { throw PageProblem("has the number of another") }
        guard page.flags == (isLeaf ? PageFormat.leaf : PageFormat.branch) else {
            throw PageProblem(isLeaf ? "is not a leaf" : "is not a branch page")
        }
        guard page.lower >= PageFormat.headerBytes, page.lower & 1 == 0, page.lower <= page.upper, page.upper & 1 == 0,
            page.upper <= pageBytes
        else { throw PageProblem("has a damaged header") }
        // LMDB leaves branch pages of the free list with one node at times.
        guard page.count >= (isLeaf || kind == .freeList ? 1 : 2) else { throw PageProblem("has too few entries") }
        try checkTiling(isLeaf: isLeaf)
        for index in 0..<page.count {
            if isLeaf { try checkEntry(page.node(index)) } else { try checkChild(page.node(index)) }
        }
        switch kind {
        case .freeList: try checkOrder(isLeaf: isLeaf, NumberOrder.self)
        case .history, .unsummedHistory: try checkOrder(isLeaf: isLeaf, HistoryOrder.self)
        case .directory, .main, .meta, .unsummedMain, .unsummedMeta: try checkOrder(isLeaf: isLeaf, ByteOrder.self)
        }
    }

    /// The nodes reach from `upper` to the end of the page, with no gap and none over another.
    ///
    /// One begins at `upper`, and where one ends another begins or the page ends: so there is no gap. Together they are
    /// as long as that part of the page: so none lies over another.
    private func checkTiling(isLeaf: Bool) throws(PageProblem) {
        let isTiled = unsafe withUnsafeTemporaryAllocation(of: UInt64.self, capacity: pageBytes / 128) { starts in
            // A bit for each even offset, set where a node begins.
            unsafe starts.initialize(repeating: 0)
            for index in 0..<page.count {
                let offset = page.nodeOffset(index)
                guard offset & 1 == 0, offset >= page.upper, offset <= pageBytes - PageFormat.nodeHeaderBytes else {
                    return false
                }
                unsafe starts[offset >> 7] |= 1 << UInt64(offset >> 1 & 63)
            }
            func isStart(_ offset: Int) -> Bool { unsafe starts[offset >> 7] >> UInt64(offset >> 1 & 63) & 1 == 1 }
            var bytesLeft = pageBytes - page.upper
            guard bytesLeft > 0, isStart(page.upper) else { return false }
            for index in 0..<page.count {
                let bytes = (byteCount(of: page.node(index), isLeaf: isLeaf) + 1) & ~1
                let end = page.nodeOffset(index) + bytes
                guard end == pageBytes || end < pageBytes && isStart(end) else { return false }
                bytesLeft -= bytes
            }
            return bytesLeft == 0
        }
        if !isTiled { throw PageProblem("has entries that overlap, or lacks some") }
    }

    private func byteCount(of node: TreeNode, isLeaf: Bool) -> Int {
        let header = PageFormat.nodeHeaderBytes + node.keyCount
        if !isLeaf { return header }
        return header + (node.isLarge ? 8 : node.dataCount)
    }

    private func checkChild(_ node: TreeNode) throws(PageProblem) {
        guard node.child > 1, node.child < pageCount else {
            throw PageProblem("refers to page \(node.child), and the tree has \(pageCount) pages")
        }
        guard node.keyCount <= PageFormat.keyBytesMax else { throw PageProblem("has a key that is too long") }
    }

    private func checkEntry(_ node: TreeNode) throws(PageProblem) {
        let flags = kind == .directory ? PageFormat.isDatabase : node.flags & PageFormat.isLarge
        guard node.flags == flags, isKeyPossible(node.keyCount) else { throw PageProblem("has a damaged entry") }
        if node.isLarge {
            guard kind == .freeList || node.dataCount <= pageBytes + EngineLimits.valueBytesMax else {
                throw PageProblem("has a damaged entry")
            }
        } else if unsafe !EntrySum.isRight(key: node.key, data: node.inlineData, kind) {
            throw PageProblem("has an entry whose checksum is wrong")
        }
    }

    private func isKeyPossible(_ count: Int) -> Bool {
        switch kind {
        case .freeList: count == 8
        case .history, .unsummedHistory: count > HistoryEntry.keySuffixBytes && count <= PageFormat.keyBytesMax
        case .directory, .main, .meta, .unsummedMain, .unsummedMeta: count > 0 && count <= PageFormat.keyBytesMax
        }
    }

    private func checkOrder<Order: KeyOrder>(isLeaf: Bool, _ order: Order.Type) throws(PageProblem) {
        // The first key of a branch page has no meaning; the others are those of leaves, maybe of entries gone by.
        let first = isLeaf ? 0 : 1
        if !isLeaf {
            for index in first..<page.count where !isKeyPossible(page.node(index).keyCount) {
                throw PageProblem("has a damaged key")
            }
        }
        for index in (first + 1)..<max(first + 1, page.count)
        where unsafe Order.compare(page.key(index - 1), page.key(index)) >= 0 {
            throw PageProblem("has keys out of order")
        }
    }
}
