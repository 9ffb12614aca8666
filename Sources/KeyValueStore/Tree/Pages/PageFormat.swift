// How LMDB 0.9 lays out its pages (`mdb.c`: MDB_page, MDB_node, MDB_db), on little-endian machines of 64 bits.
//
//      page      0 number (8)   8 unused (2)   10 flags (2)   12 lower (2)   14 upper (2)   16 offsets of nodes, 2 each
//                lower: where the offsets end; upper: where the nodes begin; they fill the page from there to its end
//      overflow  the same, with the number of pages at 12 (4), and the data from 16 on
//      leaf      0 bytes of data (4)   4 flags (2)   6 bytes of key (2)   8 key, then data or an overflow page's number
//      branch    0 page below, 6 bytes                6 bytes of key (2)   8 key: none of the pages below is lower
//
// Nodes are 2-aligned. The first key of a branch page has no meaning. Databases with several values a key are not used.

enum PageFormat {
    static let headerBytes = 16
    static let nodeHeaderBytes = 8

    // Flags of a page.
    static let branch: UInt16 = 1
    static let leaf: UInt16 = 2
    static let overflow: UInt16 = 4
    static let meta: UInt16 = 8

    // Flags of a node in a leaf.
    /// The data lies on overflow pages.
    static let isLarge: UInt16 = 1
    /// The data is the record of a database.
    static let isDatabase: UInt16 = 2

    /// The root of an empty database.
    static let noPage = UInt64.max
    static let keyBytesMax = 511
    /// Levels of a tree. With two keys a page, more than any file has pages for is never reached.
    static let depthMax = 16
}

/// A page in the map. Nothing is checked: only `TreeSnapshot.page` hands out pages, after it has checked them.
@safe
struct TreePage {
    let start: UnsafeRawPointer

    var number: UInt64 { unsafe start.load(as: UInt64.self) }

    @inline(__always)
    var flags: UInt16 { unsafe start.load(fromByteOffset: 10, as: UInt16.self) }

    @inline(__always)
    var lower: Int { unsafe Int(start.load(fromByteOffset: 12, as: UInt16.self)) }

    var upper: Int { unsafe Int(start.load(fromByteOffset: 14, as: UInt16.self)) }

    /// Pages that the data of an overflow page takes.
    var overflowCount: Int { unsafe Int(start.load(fromByteOffset: 12, as: UInt32.self)) }

    /// Nodes on the page.
    @inline(__always)
    var count: Int { (lower - PageFormat.headerBytes) >> 1 }

    func nodeOffset(_ index: Int) -> Int {
        unsafe Int(start.load(fromByteOffset: PageFormat.headerBytes + 2 * index, as: UInt16.self))
    }

    @inline(__always)
    func node(_ index: Int) -> TreeNode { unsafe TreeNode(start: start + nodeOffset(index)) }

    /// The key of a node.
    @inline(__always)
    func key(_ index: Int) -> UnsafeRawBufferPointer { unsafe node(index).key }
}

extension TreePage {
    /// Whether the keys from `first` on lie in `lower..<upper`; nil leaves an end open.
    func lies<Order: KeyOrder>(
        from lower: UnsafeRawBufferPointer?, to upper: UnsafeRawBufferPointer?, _ first: Int, _ order: Order.Type
    ) -> Bool {
        if count <= first { return true }
        if let lower = unsafe lower, unsafe Order.compare(key(first), lower) < 0 { return false }
        if let upper = unsafe upper, unsafe Order.compare(key(count - 1), upper) >= 0 { return false }
        return true
    }
}

/// A node of a page in the map.
@safe
struct TreeNode {
    let start: UnsafeRawPointer

    @inline(__always)
    var flags: UInt16 { unsafe start.load(fromByteOffset: 4, as: UInt16.self) }

    @inline(__always)
    var isLarge: Bool { flags & PageFormat.isLarge != 0 }

    @inline(__always)
    var keyCount: Int { unsafe Int(start.load(fromByteOffset: 6, as: UInt16.self)) }

    @inline(__always)
    var key: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: start + PageFormat.nodeHeaderBytes, count: keyCount)
    }

    /// Bytes of data, in the leaf or on overflow pages.
    @inline(__always)
    var dataCount: Int { unsafe Int(start.loadUnaligned(as: UInt32.self)) }

    /// The data of a node that is not large.
    @inline(__always)
    var inlineData: UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: start + PageFormat.nodeHeaderBytes + keyCount, count: dataCount)
    }

    /// The first overflow page of a large node.
    var overflowPage: UInt64 {
        unsafe (start + PageFormat.nodeHeaderBytes + keyCount).loadUnaligned(as: UInt64.self)
    }

    /// The page that a node of a branch page leads to.
    @inline(__always)
    var child: UInt64 { unsafe UInt64(start.loadUnaligned(as: UInt32.self)) | UInt64(flags) << 32 }
}

/// What LMDB notes of a database: 48 bytes, in a meta page or in the directory of databases.
struct DatabaseRecord: Equatable {
    static let byteCount = 48

    let flags: UInt16
    let depth: Int
    let branchPages: UInt64
    let leafPages: UInt64
    let overflowPages: UInt64
    let entries: UInt64
    let root: UInt64

    /// Reads the 48 bytes at `start`.
    init(_ start: UnsafeRawPointer) {
        func word(_ offset: Int) -> UInt64 { unsafe start.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
        flags = unsafe start.loadUnaligned(fromByteOffset: 4, as: UInt16.self)
        depth = unsafe Int(start.loadUnaligned(fromByteOffset: 6, as: UInt16.self))
        branchPages = word(8)
        leafPages = word(16)
        overflowPages = word(24)
        entries = word(32)
        root = word(40)
    }

    /// Empty with no page, or some levels of a root among `pageCount` pages.
    func isPossible(pageCount: UInt64) -> Bool {
        if root == PageFormat.noPage {
            return depth == 0 && entries == 0 && branchPages + leafPages + overflowPages == 0
        }
        return root > 1 && root < pageCount && depth > 0 && depth <= PageFormat.depthMax
    }
}

/// How the keys of a database are ordered.
protocol KeyOrder {
    /// Below zero, zero or above, as `left` is below, equal to or above `right`.
    static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int
}

/// As unsigned bytes, a prefix first.
enum ByteOrder: KeyOrder {
    @inline(__always)
    static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
        unsafe compareBytes(left, right)
    }
}

/// By user key, then newest first; keys have at least `HistoryEntry.keySuffixBytes`.
enum HistoryOrder: KeyOrder {
    static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
        let order = unsafe compareBytes(HistoryEntry.userKey(left), HistoryEntry.userKey(right))
        if order != 0 { return order }
        let leftVersion = unsafe HistoryEntry.invertedVersion(left)
        let rightVersion = unsafe HistoryEntry.invertedVersion(right)
        return leftVersion < rightVersion ? -1 : leftVersion == rightVersion ? 0 : 1
    }
}

/// Keys of eight bytes as numbers: the free list, by transaction.
enum NumberOrder: KeyOrder {
    static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
        let leftNumber = unsafe left.loadUnaligned(as: UInt64.self)
        let rightNumber = unsafe right.loadUnaligned(as: UInt64.self)
        return leftNumber < rightNumber ? -1 : leftNumber == rightNumber ? 0 : 1
    }
}
