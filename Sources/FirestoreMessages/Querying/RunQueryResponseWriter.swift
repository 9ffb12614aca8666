package import Basics
import DocumentModel

/// Writes `RunQueryResponse` messages field by field into the buffer of a stream.
///
/// Nothing marks the end of a message: the caller notes where one ends. Fields may come in any order.
package enum RunQueryResponseWriter {
    private typealias Field = FieldNumber.RunQueryResponse

    /// Appends a result: the document and the time as of which it was read.
    ///
    /// - Parameters:
    ///   - namePrefix: `projects/.../documents/`.
    ///   - path: the document's path below it.
    ///   - fields: the `fields` entries, with their tags.
    package static func appendResult(
        namePrefix: RawSpan, path: RawSpan, fields: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64,
        readMicroseconds: UInt64, to writer: inout ByteBuffer
    ) {
        writer.appendDocument(
            field: Field.document, namePrefix: namePrefix, path: path, fields: fields,
            createMicroseconds: createMicroseconds, updateMicroseconds: updateMicroseconds)
        appendReadTime(readMicroseconds, to: &writer)
    }

    /// Appends the id of the transaction that the request began; the schema requires a separate message for it.
    package static func append(transaction: [UInt8], to writer: inout ByteBuffer) {
        writer.appendField(Field.transaction, bytes: transaction)
    }

    /// Appends the time as of which the query reads.
    package static func appendReadTime(_ microseconds: UInt64, to writer: inout ByteBuffer) {
        writer.appendField(Field.readTime, WireTimestamp(microseconds))
    }

    /// Appends how many results the offset has left out since the message before; nothing for 0.
    package static func append(skippedResults: Int, to writer: inout ByteBuffer) {
        writer.writeIfSet(Field.skippedResults, int64: Int64(skippedResults))
    }

    /// Appends that this is the last message.
    package static func appendDone(to writer: inout ByteBuffer) {
        writer.appendField(Field.done, boolean: true)
    }

    /// Appends the plan and the execution statistics of the query.
    package static func append(_ metrics: ExplainMetrics, to writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: Field.explainMetrics) { metrics.encode(into: &$0) }
    }
}
