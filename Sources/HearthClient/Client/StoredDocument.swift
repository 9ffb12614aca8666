package import DocumentModel

/// The content of a document as the server sent it.
package struct StoredDocument: Sendable, Equatable {
    /// The `fields` entries of the Document message, as received.
    package var fields: [UInt8]
    package var createTime: TimestampValue
    package var updateTime: TimestampValue

    package init(fields: [UInt8], createTime: TimestampValue, updateTime: TimestampValue) {
        self.fields = fields
        self.createTime = createTime
        self.updateTime = updateTime
    }
}
