// How keys and values lie in the tree. On-disk constants: never change one without a new format number.
//
// `main`      key                    → sum (4 bytes), version (8), sum of a large value (4), value
// `history`   key, ~version (8, big) → sum (4), superseded (8), version (8), sum of a large value (4), value
// `meta`      "state"                → `TreeState`
//
// All little-endian, unless said otherwise. Only values of more than `EntrySum.valueBytesMax` bytes have a separate
// sum.
//
// A history entry says: the key had this value from `version` on, and until just before `superseded`, when it was
// overwritten or deleted. So a read at v takes the value in `main` if its version is at most v, and else the entry of
// `history` with the highest version that is at most v, unless that one was superseded by v too (then the key was
// absent). Deletions need no entries.
//
// `history` is ordered by a special function: by key, and for one key newest first. Plain byte order will not do: the
// version after a short key would be compared with the next bytes of a longer key.

/// An entry of `main`: the value after its version.
enum MainEntry {
    /// Sum and version.
    static let fixedBytes = 12

    @inline(__always)
    static func version(_ entry: UnsafeRawBufferPointer) -> UInt64 {
        unsafe entry.word(at: 4)
    }

    @inline(__always)
    static func value(_ entry: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let start = EntrySum.valueStart(entry.count, headerBytes: fixedBytes)
        return unsafe UnsafeRawBufferPointer(start: entry.baseAddress! + start, count: entry.count - start)
    }

}

/// An entry of `history`.
enum HistoryEntry {
    /// Sum, superseded and version.
    static let fixedBytes = 20
    static let keySuffixBytes = 8

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

    /// The inverted version that a history key ends with.
    static func invertedVersion(_ key: UnsafeRawBufferPointer) -> UInt64 {
        unsafe UInt64(bigEndian: key.loadUnaligned(fromByteOffset: key.count - keySuffixBytes, as: UInt64.self))
    }

    /// The user's key in a history key, which is at least `keySuffixBytes` long.
    static func userKey(_ key: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(rebasing: key[..<(key.count - keySuffixBytes)])
    }

}

/// What the tree says about itself: one entry of `meta`, written in each transaction of a checkpoint. Checked when it
/// is read.
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
