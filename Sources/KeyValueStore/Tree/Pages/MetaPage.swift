// The two meta pages at the start of the tree's file: from where everything else is found.
//
//      0 page header (16)   16 magic (4)   20 version (4)   24 address (8)   32 map size (8)
//      40 free list: record of a database, whose first 4 bytes are the page size
//      88 directory of databases: the same
//      136 last page (8)    144 transaction (8)
//   1024 seal: magic (8), transaction (8), XXH3-64 (8) of bytes 0..<152 and of the records of `main`, `history` and
//        `meta`
//
// Transaction N is committed by writing meta page N mod 2. The seal is ours: it is written after LMDB's commit, where
// LMDB writes nothing. A process that ends between the two leaves the seal of an earlier transaction.

internal import CXXHash

/// What a meta page says.
struct MetaPage {
    static let byteCount = 152
    static let sealOffset = 1024
    static let sealBytes = 24
    /// Bytes to read of each page.
    static let readBytes = sealOffset + sealBytes

    private static let magic: UInt32 = 0xBEEF_C0DE
    private static let version: UInt32 = 1
    private static let sealMagic: UInt64 = 0x4C41_4553_4854_5248  // "HRTHSEAL"

    let pageBytes: Int
    let freeList: DatabaseRecord
    let directory: DatabaseRecord
    let pageCount: UInt64
    let transaction: UInt64
    /// The transaction of the seal, and its sum; nil if there is none.
    let seal: (transaction: UInt64, sum: UInt64)?

    /// Reads the meta page `number`, of which `readBytes` are at `start`; nil if it is not one.
    init?(_ start: UnsafeRawPointer, number: UInt64) {
        func word(_ offset: Int) -> UInt64 { unsafe start.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
        let page = unsafe TreePage(start: start)
        pageBytes = unsafe Int(start.loadUnaligned(fromByteOffset: 40, as: UInt32.self))
        freeList = unsafe DatabaseRecord(start + 40)
        directory = unsafe DatabaseRecord(start + 88)
        let lastPage = word(136)
        pageCount = lastPage &+ 1
        transaction = word(144)
        seal = word(Self.sealOffset) == Self.sealMagic ? (word(Self.sealOffset + 8), word(Self.sealOffset + 16)) : nil
        guard page.number == number, page.flags == PageFormat.meta, transaction == 0 || transaction & 1 == number,
            word(16) == UInt64(Self.version) << 32 | UInt64(Self.magic),
            pageBytes >= 4096, pageBytes <= 1 << 16, pageBytes & (pageBytes - 1) == 0,
            lastPage >= 1, lastPage < 1 << 47,
            freeList.isPossible(pageCount: pageCount), directory.isPossible(pageCount: pageCount)
        else { return nil }
    }

    /// The sum of a meta page, with which that of its seal begins.
    static func sum(_ start: UnsafeRawPointer) -> UInt64 { unsafe XXH3_64bits(start, byteCount) }

    /// The sum so far, with the record of a database added.
    static func sum(_ sum: UInt64, of record: UnsafeRawBufferPointer) -> UInt64 {
        unsafe XXH3_64bits_withSeed(record.baseAddress, record.count, sum)
    }

    /// The bytes of a seal.
    static func seal(transaction: UInt64, sum: UInt64) -> [UInt64] { [sealMagic, transaction, sum] }
}

/// Both meta pages of a file.
struct MetaPages {
    let newest: MetaPage

    /// Reads the meta pages at the start of a tree's file.
    /// - Throws: `corrupt`.
    init(_ file: File) throws(StorageError) {
        let size = try file.byteCount()
        let first = try Self.read(file, 0, at: 0)
        let second = try Self.read(file, 1, at: first.pageBytes)
        let newest = first.transaction > second.transaction ? first : second
        let older = first.transaction > second.transaction ? second : first
        guard first.pageBytes == second.pageBytes, newest.transaction > 0, newest.transaction == older.transaction + 1,
            newest.seal?.transaction ?? 0 <= newest.transaction, older.seal?.transaction ?? 0 <= older.transaction
        else {
            throw StorageError(.corrupt, "the meta pages of the tree do not go together", file: file.path, offset: 0)
        }
        guard size > 2 * newest.pageBytes else {
            throw StorageError(.corrupt, "the tree's file has been cut short", file: file.path, offset: size)
        }
        self.newest = newest
    }

    private static func read(_ file: File, _ number: UInt64, at offset: Int) throws(StorageError) -> MetaPage {
        let buffer = HeapBuffer(capacity: MetaPage.readBytes)
        let bytes = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer.all[..<MetaPage.readBytes])
        guard unsafe try file.read(into: bytes, at: offset) == MetaPage.readBytes else {
            throw StorageError(
                .corrupt, "the tree's file has been cut short", file: file.path, offset: try file.byteCount())
        }
        guard let page = unsafe MetaPage(UnsafeRawPointer(buffer.start), number: number) else {
            throw StorageError(.corrupt, "meta page \(number) of the tree is damaged", file: file.path, offset: offset)
        }
        return page
    }
}
