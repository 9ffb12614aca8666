// A document as it came from the server: the bytes of its fields, unrebuilt, and its times.

package import DocumentModel

/// The content of a document at one moment.
package struct StoredDocument: Sendable, Equatable {
    /// The `fields` entries of the Document message, as received.
    package var fields: [UInt8]
    package var createTime: TimestampValue
    package var updateTime: TimestampValue

    /// The bytes of the field's `Value` message, or `nil` if the document has no such field.
    func encodedValue(at path: DocumentModel.FieldPath) -> EncodedValue? {
        guard let value = DocumentBytes.value(at: path, in: fields.span.bytes) else { return nil }
        return EncodedValue(canonical: [UInt8](copying: value))
    }
}
