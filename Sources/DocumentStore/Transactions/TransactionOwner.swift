// Who begins transactions: a connection.
//
// A transaction may continue over another connection than the one that began it, since clients share and renew their
// connections. So the end of a connection does not end its transactions. But what one connection has begun is bounded,
// and where the table is full, transactions that nobody has used since their connection closed make room.

internal import Synchronization

/// A connection, to the transaction table. Its transactions count as abandoned when this object goes. Thread-safe.
package final class TransactionOwner: Sendable {
    let account: TransactionAccount
    private let table: TransactionTable

    init(_ table: TransactionTable) {
        self.table = table
        account = TransactionAccount()
    }

    deinit { table.leave(account) }

    /// Whether its transactions are those of a store.
    package func begins(in store: DocumentStore) -> Bool { table === store.transactions }
}

/// The open transactions of one connection. What changes belongs to the table, under its lock.
final class TransactionAccount: @unchecked Sendable {
    // Sendable: touched by `TransactionTable` alone, with its lock held.

    /// Numbers of the open transactions.
    var open: Set<UInt64> = []
    /// When the connection closed, in elapsed milliseconds; nil while it is open.
    var leftMilliseconds: UInt64?
}
