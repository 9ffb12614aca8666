// RunAggregationQuery: aggregates over the results of a query, as a stream of one message.
//
// RunAggregationQueryRequest: 1 parent, 2 structured_aggregation_query, 4 transaction | 5 new_transaction | 6
// read_time, 8 explain_options. RunAggregationQueryResponse: 1 result, 2 transaction, 3 read_time, 10 explain_metrics.
// AggregationResult: 2 aggregate_fields, a map.

package import Basics
package import DocumentModel

/// A request for totals.
package struct RunAggregationQueryRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.RunAggregationQueryRequest

    static let consistencyFields = ReadConsistency.Fields(
        transaction: Field.transaction, newTransaction: Field.newTransaction, readTime: Field.readTime)

    /// The documents root of a database, or a document: where the query's collections are found.
    package var parent: String
    /// Nil where the sender set none, which servers refuse.
    package var query: StructuredAggregationQuery?
    package var consistency: ReadConsistency
    /// Set if the sender wants the query explained.
    package var explain: ExplainOptions?

    package init(parent: String, query: StructuredAggregationQuery?, consistency: ReadConsistency = .latest) {
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
            case Field.structuredAggregationQuery: query = try StructuredAggregationQuery(wire: try reader.span(tag))
            case Field.explainOptions: explain = try ExplainOptions(wire: try reader.span(tag))
            default: if try !consistency.read(tag, from: &reader, Self.consistencyFields) { try reader.skip(tag) }
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.writeIfSet(Field.parent, string: parent)
        if let query { writer.withLengthPrefix(field: Field.structuredAggregationQuery) { query.encode(into: &$0) } }
        consistency.encode(into: &writer, Self.consistencyFields)
        explain?.encode(Field.explainOptions, into: &writer)
    }
}

/// The totals of a query.
package struct RunAggregationQueryResponse: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.RunAggregationQueryResponse

    /// One total by its alias.
    package struct Total: Equatable, Sendable {
        package var alias: String
        package var value: EncodedValue

        package init(alias: String, value: EncodedValue) {
            self.alias = alias
            self.value = value
        }
    }

    /// In the order of the request; empty in a message that brings only a transaction.
    package var totals: [Total]
    package var transaction: [UInt8]
    package var readTime: TimestampValue?
    package var explainMetrics: ExplainMetrics?

    package init(
        totals: [Total], transaction: [UInt8] = [], readTime: TimestampValue?, explainMetrics: ExplainMetrics? = nil
    ) {
        self.explainMetrics = explainMetrics
        self.totals = totals
        self.transaction = transaction
        self.readTime = readTime
    }

    package init(wire: RawSpan) throws {
        self.init(totals: [], readTime: nil)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.result: try readResult(try reader.span(tag))
            case Field.transaction: transaction = try reader.byteArray(tag)
            case Field.readTime: readTime = try reader.timestamp(tag)
            case Field.explainMetrics: explainMetrics = try ExplainMetrics(wire: try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }

    private mutating func readResult(_ wire: RawSpan) throws {
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            guard tag.fieldNumber == FieldNumber.AggregationResult.aggregateFields else {
                try reader.skip(tag)
                continue
            }
            var entry = try reader.message(tag)
            var total = Total(alias: "", value: EncodedValue(canonical: []))
            while let tag = try entry.nextTag() {
                switch tag.fieldNumber {
                case FieldNumber.AggregationResult.AggregateFieldsEntry.key: total.alias = try entry.string(tag)
                case FieldNumber.AggregationResult.AggregateFieldsEntry.value:
                    total.value = EncodedValue(canonical: try entry.byteArray(tag))
                default: try entry.skip(tag)
                }
            }
            totals.append(total)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        if !totals.isEmpty {
            writer.withLengthPrefix(field: Field.result) { writer in
                for total in totals {
                    writer.withLengthPrefix(field: FieldNumber.AggregationResult.aggregateFields) { entry in
                        entry.appendField(FieldNumber.AggregationResult.AggregateFieldsEntry.key, string: total.alias)
                        entry.appendField(
                            FieldNumber.AggregationResult.AggregateFieldsEntry.value, bytes: total.value.bytes)
                    }
                }
            }
        }
        writer.writeIfSet(Field.transaction, bytes: transaction)
        if let readTime { writer.appendField(Field.readTime, timestamp: readTime) }
        if let explainMetrics {
            writer.withLengthPrefix(field: Field.explainMetrics) { explainMetrics.encode(into: &$0) }
        }
    }
}
