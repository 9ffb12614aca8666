// The hash index of a run file: leads from a key to its newest entry, or shows that it is absent, with one cache miss.
//
// It has the keys that are read one by one, which are all except those of `EngineOptions.scannedSpaces`. A line of 64
// bytes has eight slots, which fill from the first to the last. A key goes to the line that its hash names, or to the
// next one with an empty slot. The lines are in pages, each with a checksum, because a flipped bit would hide a key:
//
//      page    63 lines of 64 bytes │ checksum (8 bytes) │ zeros (56)
//      slot    tag: the low 12 bits of the hash │ length of the prefix that the key shares with the first key of its
//              block, at most 255, 8 bits │ offset of the entry in its block, 13 bits │ offset of the block in the
//              file, divided by 8, 31 bits. Zero: empty
//
// The tag excludes all but one in 4,096 of the other keys; the key of the entry decides.
//
// Clients choose keys. The hash has a seed that they do not know, so that they cannot choose keys of one line. And
// whatever the hashes are, a key is at most `linesMax` lines from its own: one that finds no empty slot there is left
// out. Where a search meets so many full lines, it continues in the index of blocks.

internal import Basics
internal import CXXHash

enum RunHashIndex {
    static let pageBytes = 4096
    static let linesPerPage = 63
    static let lineBytes = 64
    static let slotsPerLine = 8
    /// Slots of a line that are filled on average. One line of 15 is full then, and a search continues in the next.
    static let slotsFilled = 5
    /// Lines in which a key may be.
    static let linesMax = 32

    /// The hash of a key, for the hash indexes and the filters of memtables of a store.
    /// - Parameter seed: `Manifest.hashSeed` of the store.
    @inline(__always)
    static func hash(_ key: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        unsafe XXH3_64bits_withSeed(key.baseAddress, key.count, seed)
    }

    /// Pages for so many keys.
    static func pageCount(keys: Int) -> Int {
        (keys + slotsFilled * linesPerPage - 1) / (slotsFilled * linesPerPage)
    }

    /// The first line in which a hash is sought.
    @inline(__always)
    static func line(_ hash: UInt64, lineCount: Int) -> Int {
        Int(truncatingIfNeeded: ((hash &>> 32) &* UInt64(lineCount)) &>> 32)
    }

    /// The offset of a line from the first page.
    @inline(__always)
    static func offset(ofLine line: Int) -> Int {
        line / linesPerPage &* pageBytes &+ line % linesPerPage &* lineBytes
    }

    /// A key of the index: its hash, and where its newest entry is.
    struct Place {
        let hash: UInt64
        let slot: UInt64

        /// - Parameters:
        ///   - block: the offset of the block in the file: a multiple of `RunFormat.alignment`, below 16 GiB.
        ///   - entry: the slot of the entry in the block.
        init(hash: UInt64, block: Int, entry: UInt32) {
            self.hash = hash
            let place = UInt64(entry & 0xFFFF) << 20 | UInt64(entry >> 16 & 0xFF) << 12
            slot = hash & 0xFFF | place | UInt64(block / RunFormat.alignment) << 33
        }

        /// The place of an entry in a document file.
        /// - Parameters:
        ///   - page: the offset of the leaf.
        ///   - node: the offset of the node in the leaf, which needs two bits more than that of an entry in a block.
        init(hash: UInt64, page: Int, node: Int) {
            self.init(hash: hash, block: page, entry: UInt32(node & 0x1FFF) | UInt32(node >> 13) << 16)
        }
    }

    @inline(__always)
    static func hasTag(_ slot: UInt64, of hash: UInt64) -> Bool { (slot ^ hash) & 0xFFF == 0 }

    @inline(__always)
    static func block(_ slot: UInt64) -> Int { Int(slot &>> 33) &* RunFormat.alignment }

    /// The offset of the entry in its block, and the length of the shared prefix or 255.
    @inline(__always)
    static func entry(_ slot: UInt64) -> (offset: Int, shared: Int) {
        (Int(slot &>> 20 & 0x1FFF), Int(slot &>> 12 & 0xFF))
    }

    /// The offset of a node in its leaf.
    @inline(__always)
    static func node(_ slot: UInt64) -> Int {
        let place = entry(slot)
        return place.offset | place.shared &<< 13
    }

    /// Builds the pages for keys in these places, for an offset of the file.
    /// - Returns: their number; 0 for no keys.
    static func build(
        _ places: UnsafeBufferPointer<Place>, identity: UInt64, offset: Int, into pages: HeapBuffer
    ) -> Int {
        let pageCount = pageCount(keys: places.count)
        pages.reserve(pageCount * pageBytes, keeping: 0)
        let start = unsafe pages.start
        unsafe start.initializeMemory(as: UInt8.self, repeating: 0, count: pageCount * pageBytes)
        for index in 0..<places.count { unsafe insert(places[index], start, lineCount: pageCount * linesPerPage) }
        for page in 0..<pageCount {
            let bytes = unsafe start + page * pageBytes
            let sum = unsafe RunFormat.sum(
                bytes, linesPerPage * lineBytes, identity: identity, offset: offset + page * pageBytes)
            unsafe bytes.storeBytes(of: sum.littleEndian, toByteOffset: linesPerPage * lineBytes, as: UInt64.self)
        }
        return pageCount
    }

    /// Puts a key into the first empty slot from its line on, if there is one in `linesMax` lines.
    private static func insert(_ place: Place, _ start: UnsafeMutableRawPointer, lineCount: Int) {
        var line = line(place.hash, lineCount: lineCount)
        for _ in 0..<min(linesMax, lineCount) {
            let slots = unsafe start + offset(ofLine: line)
            for slot in 0..<slotsPerLine where unsafe slots.load(fromByteOffset: slot * 8, as: UInt64.self) == 0 {
                return unsafe slots.storeBytes(of: place.slot.littleEndian, toByteOffset: slot * 8, as: UInt64.self)
            }
            line = line + 1 == lineCount ? 0 : line + 1
        }
    }
}
