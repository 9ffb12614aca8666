package import Basics
import DocumentModel

/// Writes `BatchGetDocumentsResponse` messages field by field; each call appends to the current message.
package enum BatchGetDocumentsResponseWriter {
    private typealias Field = FieldNumber.BatchGetDocumentsResponse

    /// Appends a document that exists.
    ///
    /// - Parameter fields: the `fields` entries, with their tags.
    package static func appendFound(
        name: RawSpan, fields: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64,
        to writer: inout ByteBuffer
    ) {
        writer.appendDocument(
            field: Field.found, namePrefix: name.extracting(first: 0), path: name, fields: fields,
            createMicroseconds: createMicroseconds, updateMicroseconds: updateMicroseconds)
    }

    /// Appends the resource name of a document that does not exist.
    package static func append(missing name: RawSpan, to writer: inout ByteBuffer) {
        writer.appendField(Field.missing, bytes: name)
    }

    /// Appends the id of the transaction that the request began; nothing for an empty one.
    package static func append(transaction: [UInt8], to writer: inout ByteBuffer) {
        writer.writeIfSet(Field.transaction, bytes: transaction)
    }

    /// Appends the time as of which the document was read.
    package static func appendReadTime(_ microseconds: UInt64, to writer: inout ByteBuffer) {
        writer.appendField(Field.readTime, WireTimestamp(microseconds))
    }
}
