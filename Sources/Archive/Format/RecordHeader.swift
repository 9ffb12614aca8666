internal import Basics
internal import FileSystem
internal import Glibc
package import Storage

/// The header of a file of records.
///
///      0  magic "HARAREC1"        48  sum of the header of the file before; 0 if the file begins a chain
///      8  format (4), zero (4)    56  version after which the records begin
///     16  number                  64  version of the last record
///     24  identity of the store   72  number of records
///         (high, low)             80  bytes of the payload
///     40  start of the time line  88  XXH3-64 of the payload
///     96  XXH3-64 of bytes 0..<96
///    104  payload: for each record version (8), length (4), bytes
package struct RecordHeader: Equatable, Sendable {
    package var number: UInt64
    var owner: ArchiveOwner
    var previousSum: UInt64
    package var after: CommitVersion
    package var last: CommitVersion
    package var recordCount: Int
    package var payloadBytes: Int
    var payloadSum: UInt64

    static let byteCount = 104
    static let recordHeaderBytes = 12
    /// Above the longest record, and what a file has beside it.
    private static let payloadBytesMax = 1 << 28
    private static let format: UInt64 = 1

    /// Whether a file with this header is what replaced one with another.
    func continues(_ other: RecordHeader) -> Bool {
        number == other.number && owner == other.owner && previousSum == other.previousSum && after == other.after
            && last > other.last
    }

    static let fileBytesMax = byteCount + payloadBytesMax

    /// Bytes of the whole file.
    var fileBytes: Int { Self.byteCount + payloadBytes }

    /// What the next file says of this one.
    var sum: UInt64 { ArchiveFiles.sum(fields) }

    /// The header without its sum, in words of 8 bytes.
    private var words: [UInt64] {
        [
            ArchiveFormat.recordsMagic, Self.format, number, owner.store.high, owner.store.low,
            owner.timeline.microseconds, previousSum, after.microseconds, last.microseconds, UInt64(recordCount),
            UInt64(payloadBytes), payloadSum,
        ]
    }

    private var fields: [UInt8] {
        var bytes = ByteBuffer(capacity: Self.byteCount)
        for word in words { bytes.append(littleEndian: word) }
        return bytes.copyBytes()
    }

    /// Writes the header over the first bytes of a file.
    func write(to file: inout ByteBuffer) {
        for (index, word) in (words + [sum]).enumerated() { file.overwrite(at: 8 * index, littleEndian: word) }
    }

    /// - Parameter file: the records after room for the header.
    init(
        number: UInt64, owner: ArchiveOwner, previousSum: UInt64, after: CommitVersion, last: CommitVersion,
        recordCount: Int, file: RawSpan
    ) {
        let payload = file.extracting(droppingFirst: Self.byteCount)
        self.number = number
        self.owner = owner
        self.previousSum = previousSum
        self.after = after
        self.last = last
        self.recordCount = recordCount
        payloadBytes = payload.byteCount
        payloadSum = ArchiveFiles.sum(payload)
    }

    /// Nil if the bytes are not a whole header of this format.
    init?(_ bytes: RawSpan) {
        guard bytes.byteCount >= Self.byteCount else { return nil }
        func word(_ offset: Int) -> UInt64 {
            UInt64(littleEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
        }
        guard word(0) == ArchiveFormat.recordsMagic, word(8) == Self.format,
            word(96) == ArchiveFiles.sum(bytes.extracting(0..<96)), let count = Int(exactly: word(72)),
            let payload = Int(exactly: word(80)), payload <= Self.payloadBytesMax
        else { return nil }
        number = word(16)
        owner = ArchiveOwner(
            store: StoreIdentity(high: word(24), low: word(32)), timeline: CommitVersion(microseconds: word(40)))
        previousSum = word(48)
        after = CommitVersion(microseconds: word(56))
        last = CommitVersion(microseconds: word(64))
        recordCount = count
        payloadBytes = payload
        payloadSum = word(88)
    }
}
