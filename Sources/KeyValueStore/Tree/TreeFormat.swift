// How keys and values lie in the tree. On-disk constants: never change one without a new format number.
//
// `main`      key                    → sum (4 bytes), version (8), sum of a large value (4), value
// `history`   key, ~version (8, big) → sum (4), superseded (8), version (8), sum of a large value (4), value
// `meta`      "state"                → `TreeState`
//
// All little-endian, unless said otherwise. Only values of more than `EntrySum.valueBytesMax` bytes have a separate
// sum.
//
// A history entry says: the key had this value from `version` on, and until just before `superseded`, when it was overwritten
// or deleted. So a read at v takes the value in `main` if its version is at most v, and else the entry of `history` with the highest
// version that is at most v, unless that one was superseded by v too (then the key was absent). Deletions need no
// entries.
//
// `history` is ordered by a special function: by key, and for one key newest first. Plain byte order will not do: the
// version after a short key would be compared with the next bytes of a longer key.

internal import CLMDB

/// An entry of `main`: the value after its version.
enum MainEntry {
    /// Sum and version.
    static let fixedBytes = 12

    /// Bytes of the entry of a value.
    static func byteCount(valueBytes: Int) -> Int {
        EntrySum.entryBytes(valueBytes: valueBytes, headerBytes: fixedBytes)
    }

    @inline(__always)
    static func version(_ entry: UnsafeRawBufferPointer) -> UInt64 {
        unsafe entry.word(at: 4)
    }

    @inline(__always)
    static func value(_ entry: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let start = EntrySum.valueStart(entry.count, headerBytes: fixedBytes)
        return unsafe UnsafeRawBufferPointer(start: entry.baseAddress! + start, count: entry.count - start)
    }

    /// Writes an entry into memory of `byteCount(valueBytes:)` bytes.
    static func write(
        _ entry: UnsafeMutableRawPointer, keyHash: UInt64, version: UInt64, _ value: UnsafeRawBufferPointer
    ) {
        unsafe entry.storeBytes(of: version.littleEndian, toByteOffset: 4, as: UInt64.self)
        let count = byteCount(valueBytes: value.count)
        unsafe EntrySum.seal(entry, count, headerBytes: fixedBytes, value: value, keyHash: keyHash)
    }
}

/// An entry of `history`.
enum HistoryEntry {
    /// Sum, superseded and version.
    static let fixedBytes = 20
    static let keySuffixBytes = 8

    /// Bytes of the entry of a value.
    static func byteCount(valueBytes: Int) -> Int {
        EntrySum.entryBytes(valueBytes: valueBytes, headerBytes: fixedBytes)
    }

    static func superseded(_ entry: UnsafeRawBufferPointer) -> UInt64 {
        unsafe entry.word(at: 4)
    }

    static func version(_ entry: UnsafeRawBufferPointer) -> UInt64 {
        unsafe entry.word(at: 12)
    }

    static func value(_ entry: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let start = EntrySum.valueStart(entry.count, headerBytes: fixedBytes)
        return unsafe UnsafeRawBufferPointer(start: entry.baseAddress! + start, count: entry.count - start)
    }

    /// Writes an entry into memory of `byteCount(valueBytes:)` bytes. The hash is that of the history key.
    static func write(
        _ entry: UnsafeMutableRawPointer, keyHash: UInt64, version: UInt64, superseded: UInt64,
        _ value: UnsafeRawBufferPointer
    ) {
        unsafe entry.storeBytes(of: superseded.littleEndian, toByteOffset: 4, as: UInt64.self)
        unsafe entry.storeBytes(of: version.littleEndian, toByteOffset: 12, as: UInt64.self)
        let count = byteCount(valueBytes: value.count)
        unsafe EntrySum.seal(entry, count, headerBytes: fixedBytes, value: value, keyHash: ~keyHash)
    }

    /// The inverted version that a history key ends with.
    static func invertedVersion(_ key: UnsafeRawBufferPointer) -> UInt64 {
        unsafe UInt64(bigEndian: key.loadUnaligned(fromByteOffset: key.count - keySuffixBytes, as: UInt64.self))
    }

    /// The user's key in a history key, which is at least `keySuffixBytes` long.
    static func userKey(_ key: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(rebasing: key[..<(key.count - keySuffixBytes)])
    }

    /// Writes the history key of `key` at `version` into `buffer`, which has room for it, and answers the part written.
    static func makeKey(
        _ key: UnsafeRawBufferPointer, version: UInt64, in buffer: UnsafeMutableRawPointer
    ) -> UnsafeRawBufferPointer {
        if let start = key.baseAddress { unsafe buffer.copyMemory(from: start, byteCount: key.count) }
        unsafe (buffer + key.count).storeBytes(of: (~version).bigEndian, as: UInt64.self)
        return unsafe UnsafeRawBufferPointer(start: buffer, count: key.count + keySuffixBytes)
    }
}

/// Orders history keys by user key, then newest first. Installed into LMDB; tolerates keys too short to be ours.
func compareHistoryKeys(_ left: UnsafePointer<MDB_val>?, _ right: UnsafePointer<MDB_val>?) -> Int32 {
    guard let left = unsafe left, let right = unsafe right else { return 0 }
    let leftKey = unsafe UnsafeRawBufferPointer(left.pointee)
    let rightKey = unsafe UnsafeRawBufferPointer(right.pointee)
    let suffix = HistoryEntry.keySuffixBytes
    guard leftKey.count >= suffix, rightKey.count >= suffix else {
        return unsafe Int32(clamping: compareBytes(leftKey, rightKey))
    }
    let order = unsafe compareBytes(HistoryEntry.userKey(leftKey), HistoryEntry.userKey(rightKey))
    if order != 0 { return order < 0 ? -1 : 1 }
    let leftVersion = unsafe UnsafeRawBufferPointer(rebasing: leftKey[(leftKey.count - suffix)...])
    let rightVersion = unsafe UnsafeRawBufferPointer(rebasing: rightKey[(rightKey.count - suffix)...])
    return unsafe Int32(clamping: compareBytes(leftVersion, rightVersion))
}

extension UnsafeRawBufferPointer {
    /// The bytes that LMDB lends.
    init(_ value: MDB_val) {
        unsafe self.init(start: value.mv_data, count: value.mv_size)
    }
}

extension MDB_val {
    /// Lends bytes to LMDB, which does not write to keys and values given to it.
    init(_ bytes: UnsafeRawBufferPointer) {
        unsafe self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
    }
}

/// What the tree says about itself: one entry of `meta`, written in each transaction of a checkpoint.
struct TreeState: Equatable {
    /// Every commit up to here is in the tree.
    var checkpoint = CommitVersion.zero
    /// Nothing in the tree is newer. Above `checkpoint` only after a crash in the middle of a checkpoint.
    var newest = CommitVersion.zero
    /// Where the log continues the tree: the first segment with commits after `checkpoint`. 0: in whichever comes
    /// first.
    var firstSegment: UInt64 = 0
    /// History superseded up to here may be gone.
    var horizon = CommitVersion.zero

    /// The four fields, and the XXH3-64 of their bytes.
    static let byteCount = 40

    func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        func append(_ field: UInt64) {
            for shift in stride(from: UInt64(0), to: 64, by: 8) {
                bytes.append(UInt8(truncatingIfNeeded: field >> shift))
            }
        }
        for field in [checkpoint.microseconds, newest.microseconds, firstSegment, horizon.microseconds] {
            append(field)
        }
        append(unsafe bytes.withUnsafeBytes { unsafe EntrySum.hash(key: $0) })
        return bytes
    }

    init() {}

    /// Nil if the bytes are not a state.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.byteCount else { return nil }
        let fields = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<Self.unsummedByteCount])
        guard unsafe bytes.word(at: Self.unsummedByteCount) == EntrySum.hash(key: fields) else { return nil }
        unsafe self.init(unsummed: fields)
    }

    static let unsummedByteCount = 32

    /// The state in a tree before format 2, which has no sum.
    init?(unsummed bytes: UnsafeRawBufferPointer) {
        guard bytes.count == Self.unsummedByteCount else { return nil }
        checkpoint = CommitVersion(microseconds: unsafe bytes.word(at: 0))
        newest = CommitVersion(microseconds: unsafe bytes.word(at: 8))
        firstSegment = unsafe bytes.word(at: 16)
        horizon = CommitVersion(microseconds: unsafe bytes.word(at: 24))
    }
}
