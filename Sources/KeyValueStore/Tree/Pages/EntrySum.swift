// The sums of entries: 32 bits of XXH3-64 over key, version and value.
//
// The hash is seeded with the hash of the key, so that an entry under another key is wrong; in `history` with its
// complement, so that one of the other database is. An entry with a value of more than `valueBytesMax` bytes has a sum
// of the value beside it, and the sum of the entry covers that.

internal import CXXHash

enum EntrySum {
    static let byteCount = 4
    /// A larger value has a separate sum. Less than what LMDB keeps in a leaf.
    static let valueBytesMax = 1024

    /// The sum of the bytes of an entry after its sum, without a large value.
    @inline(__always)
    static func sum(keyHash: UInt64, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
        unsafe UInt32(truncatingIfNeeded: XXH3_64bits_withSeed(bytes.baseAddress, bytes.count, keyHash))
    }

    /// The sum of a large value.
    static func sum(ofValue bytes: UnsafeRawBufferPointer) -> UInt32 {
        unsafe UInt32(truncatingIfNeeded: XXH3_64bits(bytes.baseAddress, bytes.count))
    }

    /// The hash that seeds the sum of a key's entry.
    static func hash(key: UnsafeRawBufferPointer) -> UInt64 {
        unsafe XXH3_64bits(key.baseAddress, key.count)
    }

    /// Whether an entry is what was written.
    static func isRight(key: UnsafeRawBufferPointer, data: UnsafeRawBufferPointer, _ kind: PageKind) -> Bool {
        switch kind {
        case .main: unsafe isRight(hash(key: key), data, headerBytes: MainEntry.fixedBytes)
        case .history: unsafe isRight(~hash(key: key), data, headerBytes: HistoryEntry.fixedBytes)
        case .meta: unsafe TreeState(data) != nil
        case .directory: data.count == DatabaseRecord.byteCount
        case .freeList: unsafe FreePages.isList(data)
        case .unsummedMain: data.count >= 8
        case .unsummedHistory: data.count >= 16
        // A tree that has been upgraded already is looked at as an old one to find that out.
        case .unsummedMeta: data.count == TreeState.unsummedByteCount || data.count == TreeState.byteCount
        }
    }

    private static func isRight(_ keyHash: UInt64, _ data: UnsafeRawBufferPointer, headerBytes: Int) -> Bool {
        guard data.count >= headerBytes else { return false }
        let valueStart = valueStart(data.count, headerBytes: headerBytes)
        let isLarge = valueStart > headerBytes
        let covered = unsafe UnsafeRawBufferPointer(rebasing: data[byteCount..<(isLarge ? valueStart : data.count)])
        guard unsafe data.loadUnaligned(as: UInt32.self) == sum(keyHash: keyHash, covered) else { return false }
        if !isLarge { return true }
        let value = unsafe UnsafeRawBufferPointer(rebasing: data[valueStart...])
        return unsafe data.loadUnaligned(fromByteOffset: headerBytes, as: UInt32.self) == sum(ofValue: value)
    }

    /// Where the value begins in an entry of `count` bytes.
    @inline(__always)
    static func valueStart(_ count: Int, headerBytes: Int) -> Int {
        count > headerBytes + valueBytesMax ? headerBytes + byteCount : headerBytes
    }
}
