// ExecutePipeline: the results of a pipeline as a stream of messages.
// ExecutePipelineRequest: 1 database, 2 structured_pipeline, 5 transaction | 6 new_transaction | 7 read_time,
// 9 auto_commit_transaction.
// ExecutePipelineResponse: 1 transaction, 2 results, 3 execution_time, 4 explain_stats. ExplainStats: 1 data, an Any.
//
// One field of ExplainStats is an extension of Hearth and not in proto/: the plan as ExplainMetrics.

package import Basics
package import DocumentModel

/// A request to run a pipeline.
package struct ExecutePipelineRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.ExecutePipelineRequest

    static let consistencyFields = ReadConsistency.Fields(
        transaction: Field.transaction, newTransaction: Field.newTransaction, readTime: Field.readTime)

    /// The database's name.
    package var database: String
    /// The bytes of the `StructuredPipeline`; nil where the sender set none, which servers refuse.
    package var pipeline: [UInt8]?
    package var consistency: ReadConsistency
    /// Whether the transaction of a pipeline that writes is committed with it.
    package var autoCommitsTransaction = false

    package init(database: String, pipeline: [UInt8]?, consistency: ReadConsistency = .latest) {
        self.database = database
        self.pipeline = pipeline
        self.consistency = consistency
    }

    package init(wire: RawSpan) throws {
        self.init(database: "", pipeline: nil)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.database: database = try reader.string(tag)
            case Field.structuredPipeline: pipeline = try reader.byteArray(tag)
            case Field.autoCommitTransaction: autoCommitsTransaction = try reader.boolean(tag)
            default: if try !consistency.read(tag, from: &reader, Self.consistencyFields) { try reader.skip(tag) }
            }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.writeIfSet(Field.database, string: database)
        if let pipeline { writer.appendField(Field.structuredPipeline, bytes: pipeline) }
        consistency.encode(into: &writer, Self.consistencyFields)
        writer.writeIfSet(Field.autoCommitTransaction, boolean: autoCommitsTransaction)
    }
}

/// One message of the stream.
package struct ExecutePipelineResponse: FirestoreMessage, Sendable {
    private typealias Field = FieldNumber.ExecutePipelineResponse

    /// The id of the transaction that the request began; empty on all but the first message.
    package var transaction: [UInt8] = []
    /// The results; one that is not a document has no name.
    package var results: [DocumentMessage] = []
    package var executionTime: TimestampValue?
    /// The text of the plan and the execution; nil on all but the last message of a pipeline that is explained.
    package var explainText: String?
    /// The same as data; nil if the server sends none.
    package var explainMetrics: ExplainMetrics?

    /// Our own field of `ExplainStats`.
    package static let metricsField = 1000

    package init() {}

    package init(wire: RawSpan) throws {
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.transaction: transaction = try reader.byteArray(tag)
            case Field.results: results.append(try DocumentMessage(wire: try reader.span(tag)))
            case Field.executionTime: executionTime = try reader.timestamp(tag)
            case Field.explainStats: try read(explainStats: try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }

    private mutating func read(explainStats: RawSpan) throws {
        var stats = WireReader(explainStats)
        while let tag = try stats.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.ExplainStats.data: try read(explainText: try stats.span(tag))
            case Self.metricsField: explainMetrics = try ExplainMetrics(wire: try stats.span(tag))
            default: try stats.skip(tag)
            }
        }
    }

    /// Reads an `Any` with a `StringValue`.
    private mutating func read(explainText wire: RawSpan) throws {
        var any = WireReader(wire)
        while let tag = try any.nextTag() {
            guard tag.fieldNumber == FieldNumber.Protobuf.AnyMessage.value else {
                try any.skip(tag)
                continue
            }
            var value = try any.message(tag)
            while let tag = try value.nextTag() { explainText = try value.string(tag) }
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.writeIfSet(Field.transaction, bytes: transaction)
        for result in results { writer.withLengthPrefix(field: Field.results) { result.encode(into: &$0) } }
        if let executionTime { writer.appendField(Field.executionTime, timestamp: executionTime) }
        if let explainText {
            ExecutePipelineResponseWriter.append(explainText: explainText, explainMetrics, to: &writer)
        }
    }
}

/// Writes `ExecutePipelineResponse` messages field by field into the buffer of a stream.
///
/// Nothing marks the end of a message: the caller notes where one ends. Fields may come in any order.
package enum ExecutePipelineResponseWriter {
    private typealias Field = FieldNumber.ExecutePipelineResponse

    /// Appends a result that is a document.
    ///
    /// - Parameters:
    ///   - namePrefix: `projects/.../documents/`.
    ///   - path: the document's path below it.
    ///   - fields: the `fields` entries, with their tags.
    package static func appendResult(
        namePrefix: RawSpan, path: RawSpan, fields: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64,
        to writer: inout ByteBuffer
    ) {
        writer.appendDocument(
            field: Field.results, namePrefix: namePrefix, path: path, fields: fields,
            createMicroseconds: createMicroseconds, updateMicroseconds: updateMicroseconds)
    }

    /// Appends a result without a name: its `fields` entries, with their tags.
    package static func appendResult(fields: RawSpan, to writer: inout ByteBuffer) {
        writer.appendField(Field.results, bytes: fields)
    }

    /// Appends the id of the transaction that the request began.
    package static func append(transaction: [UInt8], to writer: inout ByteBuffer) {
        writer.appendField(Field.transaction, bytes: transaction)
    }

    /// Appends the time as of which the pipeline reads.
    package static func appendExecutionTime(_ microseconds: UInt64, to writer: inout ByteBuffer) {
        writer.appendField(Field.executionTime, WireTimestamp(microseconds))
    }

    /// Appends the text that explains the pipeline, and the same as data.
    package static func append(
        explainText: String, _ metrics: ExplainMetrics?, to writer: inout ByteBuffer
    ) {
        writer.withLengthPrefix(field: Field.explainStats) { stats in
            stats.withLengthPrefix(field: FieldNumber.ExplainStats.data) { any in
                any.appendField(
                    FieldNumber.Protobuf.AnyMessage.typeUrl, string: "type.googleapis.com/google.protobuf.StringValue")
                any.withLengthPrefix(field: FieldNumber.Protobuf.AnyMessage.value) {
                    $0.appendField(1, string: explainText)
                }
            }
            if let metrics {
                stats.withLengthPrefix(field: ExecutePipelineResponse.metricsField) { metrics.encode(into: &$0) }
            }
        }
    }
}
