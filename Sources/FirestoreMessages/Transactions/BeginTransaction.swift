// BeginTransaction and Rollback. BeginTransactionRequest: 1 database, 2 options. BeginTransactionResponse: 1 transaction.
// RollbackRequest: 1 database, 2 transaction; its answer is empty.

package import DocumentModel

/// A request for a new transaction.
package struct BeginTransactionRequest: FirestoreMessage, Equatable, Sendable {
    /// `projects/{project}/databases/{database}`.
    package var database: String
    /// Nil asks for a read-write transaction.
    package var options: TransactionOptions?

    package init(database: String, options: TransactionOptions? = nil) {
        self.database = database
        self.options = options
    }

    package init(wire: RawSpan) throws {
        self.init(database: "")
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: database = try reader.string(tag)
            case 2: options = try TransactionOptions(wire: try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(1, string: database)
        if let options { writer.withLengthPrefix(field: 2) { options.encode(into: &$0) } }
    }
}

/// The id of a new transaction.
package struct BeginTransactionResponse: FirestoreMessage, Equatable, Sendable {
    /// Opaque, never empty.
    package var transaction: [UInt8]

    package init(transaction: [UInt8]) {
        self.transaction = transaction
    }

    package init(wire: RawSpan) throws {
        self.init(transaction: [])
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: transaction = try reader.byteArray(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(1, bytes: transaction)
    }
}

/// A request to end a transaction without writing.
package struct RollbackRequest: FirestoreMessage, Equatable, Sendable {
    /// `projects/{project}/databases/{database}`.
    package var database: String
    package var transaction: [UInt8]

    package init(database: String, transaction: [UInt8]) {
        self.database = database
        self.transaction = transaction
    }

    package init(wire: RawSpan) throws {
        self.init(database: "", transaction: [])
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: database = try reader.string(tag)
            case 2: transaction = try reader.byteArray(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(1, string: database)
        writer.writeIfSet(2, bytes: transaction)
    }
}
