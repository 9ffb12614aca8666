package import Basics
import DocumentModel

/// Writes a `ListDocumentsResponse` field by field, while the collection is scanned.
package enum ListDocumentsResponseWriter {
    private typealias Field = FieldNumber.ListDocumentsResponse

    /// Appends a document.
    ///
    /// - Parameter fields: the `fields` entries, with their tags.
    package static func appendDocument(
        name: RawSpan, fields: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64,
        to writer: inout ByteBuffer
    ) {
        writer.appendDocument(
            field: Field.documents, namePrefix: name.extracting(first: 0), path: name, fields: fields,
            createMicroseconds: createMicroseconds, updateMicroseconds: updateMicroseconds)
    }

    /// Appends a document that does not exist but has descendants: its name alone.
    package static func append(missing name: [UInt8], to writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: Field.documents) { $0.appendField(FieldNumber.Document.name, bytes: name) }
    }

    /// Appends the token that asks for the next page.
    package static func append(nextPageToken: String, to writer: inout ByteBuffer) {
        writer.appendField(Field.nextPageToken, string: nextPageToken)
    }
}
