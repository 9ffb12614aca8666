// How a transaction is to run: `google.firestore.v1.TransactionOptions`.

/// The options of a new transaction.
package enum TransactionOptions: Sendable, Equatable {
    /// Reads at one moment, no writes. `readTime` nil means the moment it begins.
    case readOnly(readTime: TimestampValue?)

    /// Reads and writes. `retryTransaction` names an earlier attempt whose place in the queue it keeps; empty names
    /// none.
    case readWrite(retryTransaction: [UInt8], concurrency: ConcurrencyMode)

    /// Which conflicts a transaction prevents and which it only detects.
    package enum ConcurrencyMode: UInt8, Sendable {
        case unspecified = 0
        case optimistic = 1
        case pessimistic = 2
    }

    /// A read-write transaction with nothing asked for, as when a client sends no options.
    package static let readWrite = TransactionOptions.readWrite(retryTransaction: [], concurrency: .unspecified)
}
