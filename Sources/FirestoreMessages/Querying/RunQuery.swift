// RunQuery: the results of a query as a stream of messages.
// RunQueryRequest: 1 parent, 2 structured_query, 5 transaction | 6 new_transaction | 7 read_time, 10 explain_options.
// RunQueryResponse: 1 document, 2 transaction, 3 read_time, 4 skipped_results, 6 done, 11 explain_metrics.

package import Basics
package import DocumentModel

/// A request to run a query.
package struct RunQueryRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.RunQueryRequest

    static let consistencyFields = ReadConsistency.Fields(
        transaction: Field.transaction, newTransaction: Field.newTransaction, readTime: Field.readTime)

    /// The documents root of a database, or a document: where the query's collections are found.
    package var parent: String
    /// Nil where the sender set none, which servers refuse.
    package var query: StructuredQuery?
    package var consistency: ReadConsistency
    /// Set if the sender wants the query explained.
    package var explain: ExplainOptions?

    package init(parent: String, query: StructuredQuery?, consistency: ReadConsistency = .latest) {
        self.parent = parent
        self.query = query
        self.consistency = consistency
    }

    package init(wire: RawSpan) throws {
        self.init(parent: "", query: nil)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.parent: parent = try reader.string(tag)
            case Field.structuredQuery: query = try StructuredQuery(wire: try reader.span(tag))
            case Field.explainOptions: explain = try ExplainOptions(wire: try reader.span(tag))
            default: if try !consistency.read(tag, from: &reader, Self.consistencyFields) { try reader.skip(tag) }
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.writeIfSet(Field.parent, string: parent)
        if let query { writer.withLengthPrefix(field: Field.structuredQuery) { query.encode(into: &$0) } }
        consistency.encode(into: &writer, Self.consistencyFields)
        explain?.encode(Field.explainOptions, into: &writer)
    }
}

/// One message of the stream, lent.
package struct RunQueryResponseView: ~Escapable {
    private typealias Field = FieldNumber.RunQueryResponse

    /// Whether the message brings a document; one without only reports progress.
    package private(set) var hasDocument = false
    /// The bytes of the Document.
    package private(set) var document: RawSpan
    /// The id of the transaction that the request began; empty on all but the first message.
    package private(set) var transaction: RawSpan
    package private(set) var readTime: TimestampValue?
    /// Results left out by the query's offset since the message before.
    package private(set) var skippedResults: Int32 = 0
    /// Whether this is certainly the last message.
    package private(set) var isDone = false
    /// The bytes of the ExplainMetrics; empty on all but the last message of a query that is explained.
    package private(set) var explainMetrics: RawSpan

    @_lifetime(copy wire)
    package init(_ wire: RawSpan) throws(InvalidDocument) {
        transaction = wire.extracting(first: 0)
        document = transaction
        explainMetrics = transaction
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.document: (hasDocument, document) = (true, try reader.span(tag))
            case Field.transaction: transaction = try reader.span(tag)
            case Field.readTime: readTime = try reader.timestamp(tag)
            case Field.skippedResults: skippedResults = try reader.int32(tag)
            case Field.done: isDone = try reader.boolean(tag)
            case Field.explainMetrics: explainMetrics = try reader.span(tag)
            default: try reader.skip(tag)
            }
        }
    }
}
