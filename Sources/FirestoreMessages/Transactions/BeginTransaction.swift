// BeginTransaction, and Rollback, whose answer is empty.

internal import CFirestoreProto
package import DocumentModel

/// A request for a new transaction.
package struct BeginTransactionRequest: TableMessage, Equatable, Sendable {
    /// `projects/{project}/databases/{database}`.
    package var database: String
    /// Nil asks for a read-write transaction.
    package var options: TransactionOptions?

    package init(database: String, options: TransactionOptions? = nil) {
        self.database = database
        self.options = options
    }

    static let table = unsafe MessageTable(
        BeginTransactionRequest(database: ""), held__begin_transaction_request__init,
        google__firestore__v1__begin_transaction_request__init,
        [
            .text(\.database, \.database),
            .optional(\.options, \.options, \.n_options) {
                try TransactionOptions(wire: $0)
            } write: {
                $0.encode(into: &$1)
            },
        ])
}

/// The id of a new transaction.
package struct BeginTransactionResponse: TableMessage, Equatable, Sendable {
    /// Opaque, never empty.
    package var transaction: [UInt8]

    package init(transaction: [UInt8]) {
        self.transaction = transaction
    }

    static let table = unsafe MessageTable(
        BeginTransactionResponse(transaction: []), held__begin_transaction_response__init,
        google__firestore__v1__begin_transaction_response__init,
        [.bytes(\.transaction, \.transaction)])
}

/// A request to end a transaction without writing.
package struct RollbackRequest: TableMessage, Equatable, Sendable {
    /// `projects/{project}/databases/{database}`.
    package var database: String
    package var transaction: [UInt8]

    package init(database: String, transaction: [UInt8]) {
        self.database = database
        self.transaction = transaction
    }

    static let table = unsafe MessageTable(
        RollbackRequest(database: "", transaction: []), held__rollback_request__init,
        google__firestore__v1__rollback_request__init,
        [.text(\.database, \.database), .bytes(\.transaction, \.transaction)])
}
