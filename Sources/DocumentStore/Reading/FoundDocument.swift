// A stored document, lent for the time of a closure.

package import DocumentModel

/// One stored document in place: its bytes lie in the storage's own memory and are valid only within the closure they
/// were lent to.
package struct FoundDocument: ~Escapable {
    /// The full resource name, UTF-8.
    package let name: RawSpan

    /// The canonical `fields` entries: append them to a `Document` message as they are.
    package let fields: RawSpan

    /// Microseconds since 1970, as the next.
    package let createMicroseconds: UInt64
    /// The version of the last commit that changed the document.
    package let updateMicroseconds: UInt64

    @_lifetime(copy name, copy fields)
    package init(name: RawSpan, fields: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64) {
        self.name = name
        self.fields = fields
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
    }

    package var createTime: TimestampValue { TimestampValue(microseconds: Int64(clamping: createMicroseconds)) }
    package var updateTime: TimestampValue { TimestampValue(microseconds: Int64(clamping: updateMicroseconds)) }
}
