// The opaque bytes by which clients name a transaction.

package import Basics
import DocumentModel

/// Names one transaction of this run of the server.
///
/// A counter finds the transaction, and sixty-four random bits beside it keep ids of another run, or made-up ones, from
/// meaning one of ours.
package struct TransactionIdentifier: Sendable, Hashable {
    /// Counts the transactions of this run of the server; never used twice.
    package let number: UInt64
    /// Random bits.
    package let nonce: UInt64

    package init(number: UInt64, nonce: UInt64) {
        self.number = number
        self.nonce = nonce
    }

    /// Reads the sixteen bytes of ``bytes``.
    /// - Throws: `INVALID_ARGUMENT` when these bytes never named a transaction.
    package init(bytes: RawSpan) throws(RequestError) {
        guard bytes.byteCount == 16 else { throw RequestError(.invalidArgument, "Invalid transaction.") }
        // In bounds by the check above.
        number = UInt64(bigEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: 0, as: UInt64.self))
        nonce = UInt64(bigEndian: unsafe bytes.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt64.self))
    }

    /// What clients are given.
    package var bytes: [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(16)
        for word in [number, nonce] {
            for shift in stride(from: 56, through: 0, by: -8) {
                result.append(UInt8(truncatingIfNeeded: word >> shift))
            }
        }
        return result
    }
}

extension RequestError {
    /// The transaction is unknown, has ended or has expired. Clients match this text and begin again.
    package static let unknownTransaction = RequestError(
        .invalidArgument, "The referenced transaction has expired or is no longer valid.")
    /// The same where it may have been of another leader: its client begins again.
    package static let lostTransaction = RequestError(
        .aborted, "The transaction has expired, or was lost with the server that led; begin again.")
}
