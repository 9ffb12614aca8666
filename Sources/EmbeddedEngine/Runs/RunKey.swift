/// The key of an entry of a run, put together from the first key of its block and its suffix.
///
/// The bytes that the key shares with the first key stay in the buffer while the entries are of the same block.
@safe
struct RunKey {
    /// Bytes of memory for a key, and for the key after it.
    static let bufferBytes = 512

    private let buffer: UnsafeMutableRawPointer
    private var byteCount = 0
    /// The block of the key, and how many of its first bytes are those of the block's first key.
    private var block: UnsafeRawPointer?
    private var shared = 0

    /// - Parameter buffer: `bufferBytes` of memory, which outlive the key.
    init(buffer: UnsafeMutableRawPointer) {
        unsafe self.buffer = unsafe buffer
        unsafe block = nil
    }

    /// Valid until the next change.
    @inline(__always)
    var bytes: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(start: buffer, count: byteCount) }

    /// Takes the key of the entry at a position.
    ///
    /// - Returns: whether the entry is in another block than the one before.
    @inline(__always)
    mutating func take(_ entry: Block.Entry, at position: borrowing RunPosition) -> Bool {
        let start = unsafe position.blockStart
        let isSameBlock = unsafe start == block
        let known = isSameBlock ? shared : 0
        let wanted = unsafe entry.shared
        if wanted > known {
            // Fewer only where a page is zeros.
            let first = unsafe position.firstKey
            let count = max(0, min(wanted, first.count) - known)
            unsafe (buffer + known).copyMemory(from: first.baseAddress! + known, byteCount: count)
        }
        let suffix = unsafe entry.suffix
        if let bytes = suffix.baseAddress { unsafe (buffer + wanted).copyMemory(from: bytes, byteCount: suffix.count) }
        byteCount = wanted + suffix.count
        // The first entry of a block has no shared prefix by its format, although its whole key is the first key.
        shared = wanted
        unsafe block = start
        return !isSameBlock
    }

    /// Becomes a copy of `key`.
    mutating func set(_ key: UnsafeRawBufferPointer) {
        if key.count > 0 { unsafe buffer.copyMemory(from: key.baseAddress!, byteCount: key.count) }
        byteCount = key.count
        unsafe block = nil
    }

    /// The key after this one: no other key is between them. Valid until the next change.
    var successor: UnsafeRawBufferPointer {
        unsafe buffer.storeBytes(of: 0, toByteOffset: byteCount, as: UInt8.self)
        return unsafe UnsafeRawBufferPointer(start: buffer, count: byteCount + 1)
    }
}
