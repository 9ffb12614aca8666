// The layout of a file of a sorted run. On-disk constants: never change one without a new format number.
//
//      ┌─────────────┬───────────────┬───────────────┬──────────────┬────────┐
//      │ data blocks │ index, lowest │ table: offset │ hash index   │ footer │
//      │             │ level first   │ of each block │              │        │
//      └─────────────┴───────────────┴───────────────┴──────────────┴────────┘
//
// An entry is a key at a version, with a value or a tombstone. Entries are ordered by key, and for one key newest
// first. Blocks have numbers: data blocks first, in order, then the blocks of the index, and the root last. An entry of
// an index block has the key and version with which a block of the level below begins; its value is the number of that
// block (4 bytes). All integers are little-endian.
//
// Every byte is covered by an XXH3-64: blocks and pages of the hash index by their own, which are verified before the
// first use; the table and the footer by those in the footer, which are verified when the file is opened. All are
// seeded with the file's identity, a random number that the manifest has too, so an older file or a block of another
// file is not accepted.

internal import CXXHash
internal import Storage

/// Numbers of the format of run files.
enum RunFormat {
    /// A block is closed when its entries have this many bytes. A value may make it longer.
    static let blockBytes = 8192
    /// Blocks, the table and the hash index begin at multiples of this.
    static let alignment = 8
    /// Entries of a block: their offsets have 16 bits.
    static let blockEntriesMax = 8192
    static let levelsMax = 12

    /// The names of a file: its number in 16 hexadecimal digits. A file of documents has another one beside it, which
    /// is the last.
    static func fileNames(_ number: UInt64, _ kind: RunKind) -> [String] {
        let digits = String(number, radix: 16)
        let name = String(repeating: "0", count: 16 - digits.count) + digits
        return kind.endings.map { name + $0 }
    }

    /// The number and the kind of a file by its name, or nil.
    static func file(named name: String) -> (number: UInt64, kind: RunKind)? {
        for kind in [RunKind.entries, .documents] {
            for ending in kind.endings where name.hasSuffix(ending) && name.utf8.count == 16 + ending.utf8.count {
                guard let number = UInt64(name.prefix(16), radix: 16) else { return nil }
                return (number, kind)
            }
        }
        return nil
    }

    @inline(__always)
    static func align(_ offset: Int) -> Int { (offset + alignment - 1) & ~(alignment - 1) }

    /// The checksum of bytes at an offset of a file with this identity.
    static func sum(_ bytes: UnsafeRawPointer, _ count: Int, identity: UInt64, offset: Int) -> UInt64 {
        unsafe XXH3_64bits_withSeed(bytes, count, identity &+ UInt64(truncatingIfNeeded: offset))
    }
}

/// What a file of a run has, which decides its format.
enum RunKind: UInt64 {
    /// Index entries: they follow from the documents.
    case entries = 0
    /// Everything that does not follow from something else, in an LMDB file (``DocumentFormat``).
    case documents = 1

    init(of key: UnsafeRawBufferPointer) { self = unsafe key[0] < EntrySpaces.lowest ? .documents : .entries }

    /// Endings of the names of its files.
    fileprivate var endings: [String] { self == .entries ? [".run"] : [".mdb", ".side"] }
}

/// The header of a block.
///
///      0  checksum       8 bytes, of everything after it in the block
///      8  byte count     4 bytes: of the block, with header and slots
///     12  entries        2 bytes
///     14  version bytes  1 byte: the width of the versions
///     15  level          1 byte: 0 for data
///     16  entries
///         slots          4 bytes each, at the end
enum BlockField {
    static let byteCount = 8
    static let count = 12
    static let versionBytes = 14
    static let level = 15
    static let entries = 16
    static let slotBytes = 4
}

/// What a footer says about its file. The footer is at the end: the lowest key, the highest key, and these fields.
struct RunFooter: Equatable {
    /// Random; the seed of all checksums of the file.
    var identity: UInt64 = 0
    var entryCount: UInt64 = 0
    /// Entries without a value.
    var tombstoneCount: UInt64 = 0
    /// Entries with a newer one of the same key in the same run.
    var supersededCount: UInt64 = 0
    /// The lowest version by which one of these was superseded; the maximum if there are none.
    var oldestSuperseded: UInt64 = .max
    /// Bytes of keys and values.
    var contentBytes: UInt64 = 0
    var versionMin: UInt64 = .max
    var versionMax: UInt64 = 0
    var dataBlockCount: UInt64 = 0
    var blockCount: UInt64 = 0
    var tableOffset: UInt64 = 0
    var hashOffset: UInt64 = 0
    var hashPageCount: UInt64 = 0
    var tableSum: UInt64 = 0
    var lowestKeyBytes: UInt64 = 0
    var highestKeyBytes: UInt64 = 0
    /// The first bytes of keys that the hash index does not have: the lowest, and the highest in the bits above it. If
    /// the lowest is above the highest, the index has all keys.
    var scannedSpaces: UInt64 = 1
    /// The seed of the hash index: that of the store, which is secret.
    var hashSeed: UInt64 = 0
    /// What the LMDB file is, of which the file with this footer says what is in it; nil for a file of entries.
    var documents: DocumentFooter?
    /// The version of the file. Version 1 has a Bloom filter in place of the hash index and two fields less, version 2
    /// a hash index without a seed and one field less.
    private(set) var version = 3

    private static let magics: [UInt64] = [
        0x314E_5552_4854_5248,  // "HRTHRUN1"
        0x324E_5552_4854_5248,  // "HRTHRUN2"
        0x334E_5552_4854_5248,  // "HRTHRUN3"
    ]
    private static let documentsMagic: UInt64 = 0x3144_4953_4854_5248  // "HRTHSID1"

    /// Fields, magic and checksum of the shortest footer.
    static let fixedBytesMin = (16 + 2) * 8

    /// False for older versions, whose filter or index is not used: their keys are found by the index of blocks.
    var hasHashIndex: Bool { version == 3 }

    var fieldCount: Int { 15 + version + (documents == nil ? 0 : DocumentFooter.fieldCount) }

    /// The magic number, which is followed by the checksum.
    var magic: UInt64 { documents == nil ? Self.magics[version - 1] : Self.documentsMagic }

    /// Fields, magic and checksum.
    var fixedBytes: Int { (fieldCount + 2) * 8 }

    init() {}

    /// A footer without its fields; nil if no format has this magic number.
    init?(magic: UInt64) {
        if magic == Self.documentsMagic {
            documents = DocumentFooter()
            return
        }
        guard let index = Self.magics.firstIndex(of: magic) else { return nil }
        version = index + 1
    }

    var fields: [UInt64] {
        get {
            [
                identity, entryCount, tombstoneCount, supersededCount, oldestSuperseded, contentBytes, versionMin,
                versionMax, dataBlockCount, blockCount, tableOffset, hashOffset, hashPageCount, tableSum,
                lowestKeyBytes, highestKeyBytes, scannedSpaces, hashSeed,
            ] + (documents?.fields ?? [])
        }
        set {
            identity = newValue[0]
            entryCount = newValue[1]
            tombstoneCount = newValue[2]
            supersededCount = newValue[3]
            oldestSuperseded = newValue[4]
            contentBytes = newValue[5]
            versionMin = newValue[6]
            versionMax = newValue[7]
            dataBlockCount = newValue[8]
            blockCount = newValue[9]
            tableOffset = newValue[10]
            hashOffset = newValue[11]
            hashPageCount = newValue[12]
            tableSum = newValue[13]
            lowestKeyBytes = newValue[14]
            highestKeyBytes = newValue[15]
            scannedSpaces = hasHashIndex ? newValue[16] : 0xFF00
            hashSeed = hasHashIndex ? newValue[17] : 0
            if !hasHashIndex { hashPageCount = 0 }
            if documents != nil { documents = DocumentFooter(fields: newValue[18...]) }
        }
    }

    /// Whether all parts are inside a file of this size.
    func isPossible(byteCount: Int) -> Bool {
        let size = UInt64(byteCount)
        if let documents {
            return documents.isPossible(sideBytes: byteCount) && dataBlockCount > 0 && dataBlockCount == blockCount
                && blockCount <= documents.pageCount && tableOffset <= size && tableOffset + 4 * blockCount <= size
                && hashOffset <= size && hashPageCount <= size
                && hashOffset + hashPageCount * UInt64(RunHashIndex.pageBytes) <= size
        }
        let fits = [tableOffset, hashOffset, blockCount, dataBlockCount, hashPageCount].allSatisfy { $0 <= size }
        return fits && dataBlockCount <= blockCount && tableOffset + 4 * blockCount <= size
            && hashOffset + hashPageCount * UInt64(RunHashIndex.pageBytes) <= size
            && tableOffset / UInt64(RunFormat.blockBytes) + blockCount - dataBlockCount + hashPageCount
                <= size / UInt64(RunHashIndex.pageBytes) + UInt64(2 * RunFormat.levelsMax)
    }

    /// Bytes of the whole footer.
    var byteCount: Int { Int(lowestKeyBytes + highestKeyBytes) + fixedBytes }
}

/// The number of bytes that versions of a file take, as differences from the lowest.
func versionWidth(from lowest: UInt64, to highest: UInt64) -> Int {
    guard highest > lowest else { return 0 }
    return (64 - (highest - lowest).leadingZeroBitCount + 7) / 8
}
