// BeginTransaction and Rollback. BeginTransactionRequest: 1 database, 2 options. BeginTransactionResponse: 1 transaction.
// RollbackRequest: 1 database, 2 transaction; its answer is empty.

package import DocumentModel

/// A request for a new transaction.
package struct BeginTransactionRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.BeginTransactionRequest

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
            case Field.database: database = try reader.string(tag)
            case Field.options: options = try TransactionOptions(wire: try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(Field.database, string: database)
        if let options { writer.withLengthPrefix(field: Field.options) { options.encode(into: &$0) } }
    }
}

/// The id of a new transaction.
package struct BeginTransactionResponse: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.BeginTransactionResponse

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
            case Field.transaction: transaction = try reader.byteArray(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(Field.transaction, bytes: transaction)
    }
}

/// A request to end a transaction without writing.
package struct RollbackRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.RollbackRequest

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
            case Field.database: database = try reader.string(tag)
            case Field.transaction: transaction = try reader.byteArray(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(Field.database, string: database)
        writer.writeIfSet(Field.transaction, bytes: transaction)
    }
}
