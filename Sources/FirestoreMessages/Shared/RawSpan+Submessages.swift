// Walking the occurrences of one repeated field in place.

internal import DocumentModel

extension RawSpan {
    /// Lends the payload of every occurrence of a length-delimited field, in order.
    ///
    /// For bytes that were read to their end once already: it stops in silence where they turn out malformed.
    func forEachSubmessage(field: Int, _ body: (RawSpan) throws -> Void) rethrows {
        var reader = WireReader(self)
        while let tag = try? reader.nextTag() {
            if tag.fieldNumber == field {
                guard let payload = try? reader.span(tag) else { return }
                try body(payload)
            } else if (try? reader.skip(tag)) == nil {
                return
            }
        }
    }
}
