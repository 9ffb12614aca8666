// The opaque bytes by which clients name a transaction.
//
//   number (8, big-endian)   counts the transactions of a run of a server
//   nonce (8)                random bits; the read time of a transaction that only reads
//   run (6)                  random bits of the run of the server; the highest says that the transaction only reads
//   check (2)                a hash of what is before: a made-up id is not one of another run

package import Basics
package import DocumentModel

/// Names one transaction of one run of a server.
///
/// A counter finds the transaction, and random bits beside it keep ids of another run, or made-up ones, from meaning
/// one of ours. The name of a transaction that only reads has its read time, so any server with the same store serves
/// it.
package struct TransactionIdentifier: Sendable, Hashable {
    /// Counts the transactions of this run of the server; never used twice.
    package let number: UInt64
    /// Random bits, or the read time in microseconds of a transaction that only reads.
    package let nonce: UInt64
    /// 48 bits: the run of the server, and whether the transaction only reads.
    let run: UInt64

    private static let readOnlyBit: UInt64 = 1 << 47
    private static let byteCount = 24
    /// What ids had in earlier versions.
    private static let earlierByteCount = 16

    package init(number: UInt64, nonce: UInt64) {
        self.init(number: number, nonce: nonce, run: 0)
    }

    /// - Parameter run: of ``randomRun()``.
    init(number: UInt64, nonce: UInt64, run: UInt64) {
        self.number = number
        self.nonce = nonce
        self.run = run
    }

    /// Names a transaction that only reads, at a time in microseconds.
    init(number: UInt64, readMicroseconds: UInt64, run: UInt64) {
        self.init(number: number, nonce: readMicroseconds, run: run | Self.readOnlyBit)
    }

    /// Random bits for a run of a server.
    static func randomRun() -> UInt64 { .random(in: 1..<readOnlyBit) }

    /// Whether the transaction only reads.
    package var isReadOnly: Bool { run & Self.readOnlyBit != 0 }

    /// Whether another run of this server, or another server, has begun the transaction.
    func isForeign(to run: UInt64) -> Bool { self.run & ~Self.readOnlyBit != run }

    /// The time that a transaction that only reads sees.
    package var readTime: TimestampValue { TimestampValue(microseconds: Int64(clamping: nonce)) }

    /// Reads the 24 bytes of ``bytes``.
    /// - Throws: `INVALID_ARGUMENT` when these bytes never named a transaction.
    package init(bytes: RawSpan) throws(RequestError) {
        guard bytes.byteCount == Self.byteCount else {
            if bytes.byteCount == Self.earlierByteCount { throw .unknownTransaction }
            throw RequestError(.invalidArgument, "Invalid transaction.")
        }
        // In bounds by the check above.
        number = UInt64(bigEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt64.self))
        nonce = UInt64(bigEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt64.self))
        let last = UInt64(bigEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: 16, as: UInt64.self))
        run = last >> 16
        guard last & 0xFFFF == check else { throw .unknownTransaction }
    }

    /// What clients are given.
    package var bytes: [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(Self.byteCount)
        for word in [number, nonce, run << 16 | check] {
            for shift in stride(from: 56, through: 0, by: -8) {
                result.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        return result
    }

    /// Sixteen bits of a hash of the rest (the finalizer of SplitMix64). No secret: it finds accidents.
    private var check: UInt64 {
        var hash = number &* 0x9E37_79B9_7F4A_7C15 ^ nonce &+ run
        hash = (hash ^ hash >> 30) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ hash >> 27) &* 0x94D0_49BB_1331_11EB
        return hash >> 48
    }
}

extension RequestError {
    /// The transaction is unknown, has ended or has expired. Clients match this text and begin again.
    package static let unknownTransaction = RequestError(
        .invalidArgument, "The referenced transaction has expired or is no longer valid.")

    /// The transaction was begun at a server that has been restarted, or does not take the writes any more.
    package static let lostTransaction = RequestError(
        .aborted, "The server that began the transaction does not have it any more. Please try again.")
}
