// The log: how a commit group lies on disk, and how recovery distinguishes a torn tail from corruption.
//
// The log is a row of segment files of a fixed size, `log/<sequence, 16 hex digits>.log`. A segment is filled with
// zeros and synced before its first use, so that writing a group changes no metadata and a sync is one flush; a segment
// whose commits are in the runs is recycled under a new sequence. All integers are little-endian. On-disk constants:
// never change one without a new format number.
//
//      segment  ┌────────────────┬─────────┬─────────┬─────────┬── ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ──┐
//               │ header, 4096 B │ frame   │ frame   │ frame   │ zeros, or frames of an   │
//               │                │         │         │         │ earlier life             │
//               └────────────────┴─────────┴─────────┴─────────┴── ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ──┘
//      header   0 magic "HEARTHLG"   8 format (4)  12 zero (4)  16 sequence (8)  24 nonce (8)  32 segment bytes (8)
//               40 XXH3-64 of bytes 0..<40
//      frame    0 XXH3-64, seeded with the nonce, of all that follows in the frame
//               8 magic (4)  12 records (4)  16 nonce (8)  24 offset of the frame in the segment (8)
//               32 previous version (8)  40 last version (8)  48 payload bytes (8)
//               56 payload: for each record  version (8), length (4), bytes      then zeros up to a multiple of 8
//
// A frame is one commit group; it is written whole and synced before the next one is begun. Its `previous version` is
// the last version of the frame before it: frames form a chain, across segments too. A segment may end early (the next
// frame did not fit).
//
// The nonce is random and new in each life of a segment. It keeps apart frames of different lives, and makes it
// impossible to smuggle in a frame inside a document: a frame with the right nonce was written by the engine, on
// purpose, here.
//
// So after the last good frame there can be, without any damage: nothing, frames of an earlier life, or one torn frame.
// A good frame of this life after a bad one, or after a gap in the chain, means that synced data was lost. That is
// corruption; the engine refuses to open and names file and offset. (A flipped bit in the very last frame looks like a
// torn write.)

internal import CXXHash

enum LogFormat {
    /// Also the unit of writing: whole pages, so that the kernel never has to read one first.
    static let pageBytes = 4096
    static let version: UInt32 = 1

    static let segmentMagic: UInt64 = 0x474C_4854_5241_4548  // "HEARTHLG"
    static let segmentHeaderBytes = 48

    static let frameMagic: UInt32 = 0x4D52_4648  // "HFRM"
    static let frameHeaderBytes = 56
    static let recordHeaderBytes = 12

    /// Where the frames of a segment begin.
    static let framesStart = pageBytes

    static func roundedToWord(_ bytes: Int) -> Int { (bytes + 7) & ~7 }
    static func roundedToPage(_ bytes: Int) -> Int { (bytes + pageBytes - 1) & ~(pageBytes - 1) }

    static func fileName(sequence: UInt64) -> String {
        let digits = String(sequence, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits + ".log"
    }

    /// The sequence in a segment's name; nil for other names.
    static func sequence(fileName: String) -> UInt64? {
        guard fileName.utf8.count == 20, fileName.hasSuffix(".log") else { return nil }
        guard let sequence = UInt64(fileName.dropLast(4), radix: 16) else { return nil }
        return Self.fileName(sequence: sequence) == fileName ? sequence : nil
    }
}

/// The header of a segment.
struct SegmentHeader: Equatable {
    var sequence: UInt64
    var nonce: UInt64
    var byteCount: Int

    /// Writes the header into the first `LogFormat.segmentHeaderBytes` of `page`.
    func encode(into page: UnsafeMutableRawBufferPointer) {
        unsafe page.storeBytes(of: LogFormat.segmentMagic.littleEndian, as: UInt64.self)
        unsafe page.storeBytes(of: LogFormat.version.littleEndian, toByteOffset: 8, as: UInt32.self)
        unsafe page.storeBytes(of: 0, toByteOffset: 12, as: UInt32.self)
        unsafe page.storeBytes(of: sequence.littleEndian, toByteOffset: 16, as: UInt64.self)
        unsafe page.storeBytes(of: nonce.littleEndian, toByteOffset: 24, as: UInt64.self)
        unsafe page.storeBytes(of: UInt64(byteCount).littleEndian, toByteOffset: 32, as: UInt64.self)
        unsafe page.storeBytes(of: XXH3_64bits(page.baseAddress, 40).littleEndian, toByteOffset: 40, as: UInt64.self)
    }

    init(sequence: UInt64, nonce: UInt64, byteCount: Int) {
        self.sequence = sequence
        self.nonce = nonce
        self.byteCount = byteCount
    }

    /// Nil if the bytes are not a whole header of this format.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= LogFormat.segmentHeaderBytes,
            unsafe bytes.word(at: 0) == LogFormat.segmentMagic,
            unsafe bytes.word(at: 40) == XXH3_64bits(bytes.baseAddress, 40),
            unsafe UInt32(truncatingIfNeeded: bytes.word(at: 8)) == LogFormat.version,
            let byteCount = unsafe Int(exactly: bytes.word(at: 32))
        else { return nil }
        sequence = unsafe bytes.word(at: 16)
        nonce = unsafe bytes.word(at: 24)
        self.byteCount = byteCount
    }
}

/// The header of a frame.
struct LogFrameHeader: Equatable {
    var recordCount: Int
    var nonce: UInt64
    var offset: Int
    var previousVersion: UInt64
    var lastVersion: UInt64
    var payloadBytes: Int

    /// Bytes of the whole frame.
    var frameBytes: Int { LogFormat.roundedToWord(LogFormat.frameHeaderBytes + payloadBytes) }

    init(
        recordCount: Int, nonce: UInt64, offset: Int, previousVersion: UInt64, lastVersion: UInt64, payloadBytes: Int
    ) {
        self.recordCount = recordCount
        self.nonce = nonce
        self.offset = offset
        self.previousVersion = previousVersion
        self.lastVersion = lastVersion
        self.payloadBytes = payloadBytes
    }

    /// Writes the header at the start of a frame whose payload is in place, pads the frame and sums it.
    func seal(_ frame: UnsafeMutableRawPointer) {
        unsafe frame.storeBytes(of: LogFormat.frameMagic.littleEndian, toByteOffset: 8, as: UInt32.self)
        unsafe frame.storeBytes(of: UInt32(recordCount).littleEndian, toByteOffset: 12, as: UInt32.self)
        unsafe frame.storeBytes(of: nonce.littleEndian, toByteOffset: 16, as: UInt64.self)
        unsafe frame.storeBytes(of: UInt64(offset).littleEndian, toByteOffset: 24, as: UInt64.self)
        unsafe frame.storeBytes(of: previousVersion.littleEndian, toByteOffset: 32, as: UInt64.self)
        unsafe frame.storeBytes(of: lastVersion.littleEndian, toByteOffset: 40, as: UInt64.self)
        unsafe frame.storeBytes(of: UInt64(payloadBytes).littleEndian, toByteOffset: 48, as: UInt64.self)
        let used = LogFormat.frameHeaderBytes + payloadBytes
        unsafe (frame + used).initializeMemory(as: UInt8.self, repeating: 0, count: frameBytes - used)
        let sum = unsafe XXH3_64bits_withSeed(frame + 8, frameBytes - 8, nonce)
        unsafe frame.storeBytes(of: sum.littleEndian, as: UInt64.self)
    }

    /// The header of the frame at `offset` of a segment, if a whole and undamaged frame of the segment's life is there.
    init?(segment: UnsafeRawBufferPointer, at offset: Int, nonce: UInt64) {
        guard offset >= 0, offset <= segment.count - LogFormat.frameHeaderBytes else { return nil }
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: segment[offset...])
        unsafe self.init(unverified: bytes, at: offset, nonce: nonce, bytesLeft: bytes.count)
        guard unsafe isWhole(bytes) else { return nil }
    }

    /// The header that `bytes` begin with, if it is one of a frame at `offset` of the segment's life. Its sum is not
    /// verified.
    /// - Parameters:
    ///   - bytes: at least `LogFormat.frameHeaderBytes`.
    ///   - bytesLeft: of the segment from `offset` on; a larger frame is not accepted.
    init?(unverified bytes: UnsafeRawBufferPointer, at offset: Int, nonce: UInt64, bytesLeft: Int) {
        guard unsafe UInt32(truncatingIfNeeded: bytes.word(at: 8)) == LogFormat.frameMagic,
            unsafe bytes.word(at: 16) == nonce,
            unsafe bytes.word(at: 24) == UInt64(offset),
            let payloadBytes = unsafe Int(exactly: bytes.word(at: 48)),
            payloadBytes <= bytesLeft - LogFormat.frameHeaderBytes
        else { return nil }
        recordCount = unsafe Int(bytes.word(at: 8) >> 32)
        self.nonce = nonce
        self.offset = offset
        previousVersion = unsafe bytes.word(at: 32)
        lastVersion = unsafe bytes.word(at: 40)
        self.payloadBytes = payloadBytes
        guard frameBytes <= bytesLeft else { return nil }
    }

    /// Whether the frame that `bytes` begin with has the right sum. The bytes are all that the header says.
    func isWhole(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count >= frameBytes, let start = bytes.baseAddress else { return false }
        return unsafe XXH3_64bits_withSeed(start + 8, frameBytes - 8, nonce) == bytes.word(at: 0)
    }
}

extension UnsafeRawBufferPointer {
    /// The little-endian word at `offset`, which leaves eight bytes.
    func word(at offset: Int) -> UInt64 {
        unsafe UInt64(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
}
