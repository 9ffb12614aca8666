// The layout of a document file: an LMDB file, and the file beside it that says what is in it. On-disk constants: never
// change one without a new format number.
//
//      ….mdb       an LMDB file with one unnamed database, written once by liblmdb in the order of keys
//        key       key of the entry, then, unless its space keeps the latest value only, the version: the complement of
//                  its bits, big-endian (8), so that the newest comes first
//        value     checksum (4)   version (8)   1, or 0 for a tombstone (1)   contents
//      ….side      ┌─────────────────┬─────────────────┬────────────┬────────┐
//                  │ table of leaves │ records of pages │ hash index │ footer │
//                  └─────────────────┴─────────────────┴────────────┴────────┘
//        table     of each leaf, in the order of keys, its offset / 8 (4)
//        records   pages of 4 KiB: checksum (8), then of each page of the LMDB file its sum (8) and its number
//                  among the leaves (4). The last page is as long as its records
//        footer    as in a file of entries (``RunFooter``)
//
// LMDB has no checksums and trusts its pages. The sums make up for that: a page is compared with its sum before the
// first use. They are XXH3-64, seeded with the file's identity and the offset of the page. The checksum in a value is
// the low half of the XXH3-64 of what follows it, seeded with the XXH3-64 of the LMDB key: with it a value can be
// trusted also without the side file.

internal import Basics
internal import CXXHash
internal import FileSystem
internal import Storage

enum DocumentFormat {
    /// Bytes of a value before its contents.
    static let headerBytes = 13
    /// Where they are in the header.
    static let versionOffset = 4
    static let kindOffset = 12
    /// Bytes of the version in a key.
    static let versionBytes = 8
    /// Bytes that one transaction writes.
    static let transactionBytes = 8 << 20
    /// The bound of a file, as slots of the hash index reach so far.
    static let fileBytesMax = 16 << 30
    /// Values with fewer bytes lie on the page of their key: larger nodes than half a page go to overflow pages.
    static let apartBytesMin = 1024

    /// Records of pages of the LMDB file.
    static let recordBytes = 12
    static let recordsPageBytes = 4096
    static let recordsPerPage = (recordsPageBytes - 8) / recordBytes
    /// In place of the number of a leaf.
    static let noLeaf = UInt32.max

    /// Bytes of the records of so many pages.
    static func recordsBytes(pages: Int) -> Int {
        let last = pages % recordsPerPage
        return pages / recordsPerPage * recordsPageBytes + (last == 0 ? 0 : 8 + last * recordBytes)
    }

    /// The checksum of a value.
    /// - Parameters:
    ///   - key: as LMDB has it.
    ///   - data: what follows the checksum.
    static func sum(_ key: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer) -> UInt32 {
        let seed = unsafe XXH3_64bits(key.baseAddress, key.count)
        return unsafe UInt32(truncatingIfNeeded: XXH3_64bits_withSeed(data.baseAddress, data.count, seed))
    }
}

/// What the footer of a side file says about its LMDB file.
struct DocumentFooter: Equatable {
    var pageBytes: UInt64 = 0
    var pageCount: UInt64 = 0
    var root: UInt64 = 0
    /// Levels from the root to the leaves.
    var depth: UInt64 = 0
    var recordsOffset: UInt64 = 0
    /// Spaces whose keys have no version: a bit for each first byte below `EntrySpaces.lowest`.
    var latestOnlySpaces: UInt64 = 0

    static let fieldCount = 6

    var fields: [UInt64] { [pageBytes, pageCount, root, depth, recordsOffset, latestOnlySpaces] }

    init() {}

    init(fields: ArraySlice<UInt64>) {
        let fields = Array(fields)
        pageBytes = fields[0]
        pageCount = fields[1]
        root = fields[2]
        depth = fields[3]
        recordsOffset = fields[4]
        latestOnlySpaces = fields[5]
    }

    /// Whether the records are inside a side file of this size, and the root inside the LMDB file.
    func isPossible(sideBytes: Int) -> Bool {
        let isPage = (LMDBFormat.pageBytesMin...LMDBFormat.pageBytesMax).contains(Int(clamping: pageBytes))
        return isPage && pageBytes & (pageBytes - 1) == 0 && pageCount <= UInt64(sideBytes)
            && pageCount * pageBytes <= UInt64(DocumentFormat.fileBytesMax) && root < pageCount
            && (1...UInt64(LMDBFormat.depthMax)).contains(depth) && recordsOffset <= UInt64(sideBytes)
            && Int(recordsOffset) + DocumentFormat.recordsBytes(pages: Int(pageCount)) <= sideBytes
    }
}
