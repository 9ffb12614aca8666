// The filter of a run file: shows with one cache miss that a key is absent.
//
// A Bloom filter in lines of 64 bytes (Putze et al. 2007): a key has six bits in one line. With ten bits a key, one
// absent key of a hundred passes. The lines are in pages, each with a checksum, because a flipped bit would hide a key:
//
//      page    63 lines of 64 bytes │ checksum (8 bytes) │ zeros (56)

internal import CPrefetch
internal import CXXHash

enum RunFilter {
    static let pageBytes = 4096
    static let linesPerPage = 63
    static let lineBytes = 64
    static let bitsPerKey = 10

    /// The hash of a key, the same as that of `Memtable`.
    static func hash(_ key: UnsafeRawBufferPointer) -> UInt64 {
        unsafe XXH3_64bits(key.baseAddress, key.count)
    }

    /// Pages for so many keys.
    static func pageCount(keys: Int) -> Int {
        let lines = (keys * bitsPerKey + lineBytes * 8 - 1) / (lineBytes * 8)
        return max(1, (lines + linesPerPage - 1) / linesPerPage)
    }

    /// The line of a hash, as its page and the byte in the page.
    @inline(__always)
    static func place(_ hash: UInt64, pageCount: Int) -> (page: Int, byte: Int) {
        let lines = UInt64(pageCount &* linesPerPage)
        let line = Int(truncatingIfNeeded: (hash &>> 32) &* lines &>> 32)
        return (line / linesPerPage, line % linesPerPage &* lineBytes)
    }

    /// Builds the pages for keys with these hashes.
    /// - Returns: their number.
    static func build(
        _ hashes: UnsafeBufferPointer<UInt64>, identity: UInt64, offset: Int, into pages: ByteBuffer
    ) -> Int {
        let pageCount = pageCount(keys: hashes.count)
        pages.reserve(pageCount * pageBytes, keeping: 0)
        let start = unsafe pages.start
        unsafe start.initializeMemory(as: UInt8.self, repeating: 0, count: pageCount * pageBytes)
        for index in 0..<hashes.count {
            let hash = unsafe hashes[index]
            let place = place(hash, pageCount: pageCount)
            unsafe set(hash, start + place.page * pageBytes + place.byte)
        }
        for page in 0..<pageCount {
            let bytes = unsafe start + page * pageBytes
            let sum = unsafe RunFormat.sum(
                bytes, linesPerPage * lineBytes, identity: identity, offset: offset + page * pageBytes)
            unsafe bytes.storeBytes(of: sum, toByteOffset: linesPerPage * lineBytes, as: UInt64.self)
        }
        return pageCount
    }

    private static func set(_ hash: UInt64, _ line: UnsafeMutableRawPointer) {
        var bits = hash &* 0x9E37_79B9_7F4A_7C15
        for _ in 0..<6 {
            let bit = Int(bits &>> 55)
            let word = unsafe line + (bit &>> 6) * 8
            unsafe word.storeBytes(of: word.load(as: UInt64.self) | 1 &<< UInt64(bit & 63), as: UInt64.self)
            bits &<<= 9
        }
    }

    /// Whether a line has all bits of a hash.
    @inline(__always)
    static func mayContain(_ hash: UInt64, _ line: UnsafeRawPointer) -> Bool {
        var bits = hash &* 0x9E37_79B9_7F4A_7C15
        for _ in 0..<6 {
            let bit = Int(bits &>> 55)
            let word = unsafe line.load(fromByteOffset: (bit &>> 6) &* 8, as: UInt64.self)
            if word & 1 &<< UInt64(bit & 63) == 0 { return false }
            bits &<<= 9
        }
        return true
    }
}
