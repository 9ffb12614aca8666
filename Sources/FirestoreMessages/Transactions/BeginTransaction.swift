// BeginTransaction, and Rollback, whose answer is empty.

package import Basics
internal import CFirestoreProto
package import DocumentModel

/// A request for a new transaction.
package struct BeginTransactionRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__begin_transaction_request__init, google__firestore__v1__begin_transaction_request__init)

    /// `projects/{project}/databases/{database}`.
    package var database: String
    /// Nil asks for a read-write transaction.
    package var options: TransactionOptions?

    package init(database: String, options: TransactionOptions? = nil) {
        self.database = database
        self.options = options
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe BeginTransactionRequest(
                database: message.database.text,
                options: try lendLast(message.options, message.n_options) { try TransactionOptions(wire: $0) })
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.database = arena.bytes(database)
            unsafe (message.n_options, message.options) = arena.optional(options) { $0.encode(into: &$1) }
        }
    }
}

/// The id of a new transaction.
package struct BeginTransactionResponse: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__begin_transaction_response__init, google__firestore__v1__begin_transaction_response__init)

    /// Opaque, never empty.
    package var transaction: [UInt8]

    package init(transaction: [UInt8]) {
        self.transaction = transaction
    }

    package init(wire: RawSpan) throws {
        transaction = try unsafe Self.layout.read(wire) { unsafe $0.transaction.array }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.transaction = arena.bytes(transaction)
        }
    }
}

/// A request to end a transaction without writing.
package struct RollbackRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__rollback_request__init, google__firestore__v1__rollback_request__init)

    /// `projects/{project}/databases/{database}`.
    package var database: String
    package var transaction: [UInt8]

    package init(database: String, transaction: [UInt8]) {
        self.database = database
        self.transaction = transaction
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe RollbackRequest(database: message.database.text, transaction: message.transaction.array)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.database = arena.bytes(database)
            unsafe message.transaction = arena.bytes(transaction)
        }
    }
}
