// How LMDB 0.9 lays out its pages (`mdb.c`: MDB_page, MDB_node, MDB_meta, MDB_db), on little-endian machines of 64
// bits.
//
//      page      0 number (8)   8 unused (2)   10 flags (2)   12 lower (2)   14 upper (2)   16 offsets of nodes, 2 each
//                lower: where the offsets end; upper: where the nodes begin
//      overflow  the same, with the number of pages at 12 (4), and the data from 16 on
//      leaf      0 bytes of data (4)   4 flags (2)   6 bytes of key (2)   8 key, then data or an overflow page's number
//      branch    0 page below, 6 bytes                6 bytes of key (2)   8 key: none of the pages below is lower
//      meta      16 magic (4)   20 version (4)   24 address (8)   32 map size (8)   40 page size (4)
//                88 the database: 94 levels (2)   128 root (8)         136 last page (8)   144 transaction (8)
//
// Nodes are 2-aligned. The first key of a branch page has no meaning. Transaction N writes meta page N mod 2.

internal import Basics
internal import FileSystem
internal import Storage

enum LMDBFormat {
    static let headerBytes = 16
    static let nodeHeaderBytes = 8
    static let metaBytes = 152
    static let pageBytesMin = 4096
    static let pageBytesMax = 32768
    static let keyBytesMax = 511
    static let magic: UInt32 = 0xBEEF_C0DE

    // Flags of a page.
    static let branch: UInt16 = 1
    static let leaf: UInt16 = 2
    static let meta: UInt16 = 8

    /// Flag of a node in a leaf: the data lies on overflow pages.
    static let isLarge: UInt16 = 1

    /// Levels of a tree. With two keys a page, more than any file has pages for is never reached.
    static let depthMax = 16
}

/// A page in a map, checked or not. Whatever its bytes are, what is lent lies on the page: it may be a page of zeros
/// (``MapFaults``).
@safe
struct LMDBPage {
    let start: UnsafeRawPointer
    let byteCount: Int

    @inline(__always)
    var flags: UInt16 { unsafe start.load(fromByteOffset: 10, as: UInt16.self) }

    /// Nodes on the page.
    @inline(__always)
    var count: Int {
        let lower = unsafe Int(start.load(fromByteOffset: 12, as: UInt16.self))
        return (min(max(lower, LMDBFormat.headerBytes), byteCount) &- LMDBFormat.headerBytes) &>> 1
    }

    @inline(__always)
    func nodeOffset(_ index: Int) -> Int {
        let offset = unsafe start.load(fromByteOffset: LMDBFormat.headerBytes &+ 2 &* index, as: UInt16.self)
        return Int(offset)
    }

    @inline(__always)
    func node(_ index: Int) -> LMDBNode { node(at: nodeOffset(index)) }

    @inline(__always)
    func node(at offset: Int) -> LMDBNode {
        unsafe LMDBNode(
            start: start + min(offset, byteCount &- LMDBFormat.nodeHeaderBytes), end: start + byteCount)
    }
}

/// A node of a page in a map; it ends where its page ends at the latest.
@safe
struct LMDBNode {
    let start: UnsafeRawPointer
    let end: UnsafeRawPointer

    @inline(__always)
    var isLarge: Bool {
        unsafe start.loadUnaligned(fromByteOffset: 4, as: UInt16.self) & LMDBFormat.isLarge != 0
    }

    @inline(__always)
    private var keyStart: UnsafeRawPointer { unsafe start + LMDBFormat.nodeHeaderBytes }

    @inline(__always)
    var key: UnsafeRawBufferPointer {
        let count = unsafe Int(start.loadUnaligned(fromByteOffset: 6, as: UInt16.self))
        return unsafe UnsafeRawBufferPointer(
            start: keyStart, count: min(count, LMDBFormat.keyBytesMax, end - keyStart))
    }

    /// Bytes of data, in the leaf or on overflow pages.
    @inline(__always)
    var dataCount: Int { unsafe Int(start.loadUnaligned(as: UInt32.self)) }

    /// The data of a node that is not large.
    @inline(__always)
    var inlineData: UnsafeRawBufferPointer {
        let data = unsafe keyStart + key.count
        return unsafe UnsafeRawBufferPointer(start: data, count: min(dataCount, end - data))
    }

    /// The first overflow page of a large node; 0 if the node has no room for it.
    var overflowPage: Int {
        let place = unsafe keyStart + key.count
        guard unsafe end - place >= 8 else { return 0 }
        return unsafe Int(truncatingIfNeeded: place.loadUnaligned(as: UInt64.self) & (1 << 48 - 1))
    }

    /// The page that a node of a branch page leads to.
    @inline(__always)
    var child: Int {
        let low = unsafe Int(start.loadUnaligned(as: UInt32.self))
        return unsafe low | Int(start.loadUnaligned(fromByteOffset: 4, as: UInt16.self)) << 32
    }
}

/// What the newer meta page of a file says.
struct LMDBMeta {
    let pageBytes: Int
    /// Levels from the root to the leaves.
    let depth: Int
    let root: Int

    /// Nil if the bytes are not those of a file with an entry.
    init?(_ base: UnsafeRawPointer, byteCount: Int) {
        guard byteCount >= LMDBFormat.metaBytes else { return nil }
        let size = unsafe Int(base.load(fromByteOffset: 40, as: UInt32.self))
        guard (LMDBFormat.pageBytesMin...LMDBFormat.pageBytesMax).contains(size), size & (size - 1) == 0,
            byteCount >= 2 * size
        else { return nil }
        func transaction(_ page: Int) -> UInt64 {
            unsafe base.load(fromByteOffset: page * size + 144, as: UInt64.self)
        }
        let newer = unsafe base + (transaction(1) > transaction(0) ? size : 0)
        guard unsafe newer.load(fromByteOffset: 16, as: UInt32.self) == LMDBFormat.magic else { return nil }
        pageBytes = size
        depth = unsafe Int(newer.load(fromByteOffset: 94, as: UInt16.self))
        root = unsafe Int(truncatingIfNeeded: newer.load(fromByteOffset: 128, as: UInt64.self))
        guard (1...LMDBFormat.depthMax).contains(depth), (2..<(byteCount / size)).contains(root) else { return nil }
    }
}
