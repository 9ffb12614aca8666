// BatchGetDocuments: several documents, returned as a stream of one message for each distinct name.
//
// BatchGetDocumentsRequest: 1 database, 2 documents*, 3 mask, 4 transaction | 5 new_transaction | 7 read_time.
// BatchGetDocumentsResponse: 1 found | 2 missing, 3 transaction, 4 read_time.

package import Basics
package import DocumentModel

/// A request for several documents, with its own storage.
package struct BatchGetDocumentsRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.BatchGetDocumentsRequest

    static let consistencyFields = ReadConsistency.Fields(
        transaction: Field.transaction, newTransaction: Field.newTransaction, readTime: Field.readTime)

    /// `projects/{project}/databases/{database}`; every document must lie in it.
    package var database: String
    /// Full resource names; a repeated name gets one response.
    package var documents: [String]
    /// The fields wanted; nil asks for all, an empty mask for none.
    package var mask: DocumentMask?
    package var consistency: ReadConsistency

    package init(
        database: String, documents: [String], mask: DocumentMask? = nil, consistency: ReadConsistency = .latest
    ) {
        self.database = database
        self.documents = documents
        self.mask = mask
        self.consistency = consistency
    }

    package init(wire: RawSpan) throws {
        self.init(database: "", documents: [])
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.database: database = try reader.string(tag)
            case Field.documents: documents.append(try reader.string(tag))
            case Field.mask: mask = try DocumentMask(wire: try reader.span(tag))
            default: if try !consistency.read(tag, from: &reader, Self.consistencyFields) { try reader.skip(tag) }
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.writeIfSet(Field.database, string: database)
        for document in documents { writer.appendField(Field.documents, string: document) }
        if let mask { writer.withLengthPrefix(field: Field.mask) { mask.encode(into: &$0) } }
        consistency.encode(into: &writer, Self.consistencyFields)
    }
}

/// A request for several documents, lent; allocates nothing unless it has a mask or a transaction.
package struct BatchGetDocumentsRequestView: ~Escapable {
    private typealias Field = FieldNumber.BatchGetDocumentsRequest

    /// The database's name; not checked.
    package private(set) var database: RawSpan
    /// How many names the request holds, doubles included.
    package private(set) var documentCount = 0
    package private(set) var mask: DocumentMask?
    package private(set) var consistency = ReadConsistency.latest

    private let wire: RawSpan

    @_lifetime(copy wire)
    package init(_ wire: RawSpan) throws {
        self.wire = wire
        database = wire.extracting(first: 0)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.database: database = try reader.span(tag)
            case Field.documents:
                _ = try reader.span(tag)
                documentCount += 1
            case Field.mask: mask = try DocumentMask(wire: try reader.span(tag))
            default:
                if try !consistency.read(tag, from: &reader, BatchGetDocumentsRequest.consistencyFields) {
                    try reader.skip(tag)
                }
            }
        }
    }

    /// Lends every document name in the order of the request; not checked.
    package func forEachDocument<Failure: Error>(_ body: (RawSpan) throws(Failure) -> Void) throws(Failure) {
        var reader = WireReader(wire)
        // Every byte was read once by `init`, so nothing but the body throws here.
        while let tag = try? reader.nextTag() {
            if tag.fieldNumber == Field.documents {
                guard let name = try? reader.span(tag) else { return }
                try body(name)
            } else if (try? reader.skip(tag)) == nil {
                return
            }
        }
    }
}

/// One answer of the stream, lent.
package struct BatchGetDocumentsResponseView: ~Escapable {
    private typealias Field = FieldNumber.BatchGetDocumentsResponse

    /// What the message says about a document.
    package enum Kind: Equatable, Sendable {
        /// Nothing: the message carries only a transaction or a read time.
        case none
        /// ``body`` is the bytes of a Document.
        case found
        /// ``body`` is the resource name of a document that does not exist.
        case missing
    }

    package private(set) var kind = Kind.none
    package private(set) var body: RawSpan
    /// The id of the transaction that the request began; empty on all but the first message.
    package private(set) var transaction: RawSpan
    package private(set) var readTime: TimestampValue?

    @_lifetime(copy wire)
    package init(_ wire: RawSpan) throws {
        body = wire.extracting(first: 0)
        transaction = body
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.found: (kind, body) = (.found, try reader.span(tag))
            case Field.missing: (kind, body) = (.missing, try reader.span(tag))
            case Field.transaction: transaction = try reader.span(tag)
            case Field.readTime: readTime = try reader.timestamp(tag)
            default: try reader.skip(tag)
            }
        }
    }
}
