/// The parts of a `google.firestore.v1.Document` message, read in place from borrowed bytes.
///
///     0a name · 12 entry · 12 entry · … · 1a create time · 22 update time
///
/// The entries are the document bytes. Encoders write them next to each other, so the view can lend them as one span.
/// The wire format allows other fields between them; then the view copies them together first. It validates only the
/// outermost layout.
package struct DocumentView: ~Escapable {
    /// The message.
    package let bytes: RawSpan
    /// The resource name as it was sent; empty when it was not.
    package let name: RawSpan
    /// From the first `fields` entry to the end of the last. When ``isContiguous`` is false other fields stand between.
    package let fieldsRange: Range<Int>
    /// Whether ``fields`` holds entries only. Otherwise ``DocumentValidator`` sees unknown fields, which is not
    /// canonical, and ``DocumentCanonicalizer`` drops them.
    package let isContiguous: Bool
    package let createTime: TimestampValue?
    package let updateTime: TimestampValue?

    @_lifetime(copy bytes)
    package init(_ bytes: RawSpan) throws(InvalidDocument) {
        var reader = WireReader(bytes)
        var name = 0..<0
        var first: Int?
        var last = 0
        var isContiguous = true
        var createTime: TimestampValue?
        var updateTime: TimestampValue?
        var start = 0
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case FieldNumber.Document.name:
                try reader.expect(tag, .lengthDelimited)
                let end = try reader.endOfLengthDelimited()
                name = reader.position..<end
                reader.position = end
            case FieldNumber.Document.fields:
                try reader.expect(tag, .lengthDelimited)
                reader.position = try reader.endOfLengthDelimited()
                if first == nil { first = start } else if last != start { isContiguous = false }
                last = reader.position
            case FieldNumber.Document.createTime: createTime = try reader.timestamp(tag)
            case FieldNumber.Document.updateTime: updateTime = try reader.timestamp(tag)
            default: try reader.skip(tag)
            }
            start = reader.position
        }
        self.bytes = bytes
        self.name = bytes.extracting(name)
        fieldsRange = (first ?? last)..<last
        self.isContiguous = isContiguous
        self.createTime = createTime
        self.updateTime = updateTime
    }

    /// The document bytes.
    package var fields: RawSpan {
        @_lifetime(copy self) get { bytes.extracting(fieldsRange) }
    }
}
