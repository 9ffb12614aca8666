// Walking the entries of a document or map, in place.

internal import Basics

/// Steps through map entries: of a document or of a map value.
package struct FieldEntryReader: ~Escapable {
    private var reader: WireReader
    /// Where the entry that was read last begins, tag included.
    package private(set) var start = 0
    /// The entry's name.
    package private(set) var key: RawSpan
    /// The entry's `Value` message.
    package private(set) var value: RawSpan

    @_lifetime(copy entries)
    package init(_ entries: RawSpan) {
        reader = WireReader(entries)
        key = entries.extracting(first: 0)
        value = entries.extracting(first: 0)
    }

    /// Where the entry that was read last ends.
    package var end: Int { reader.position }

    /// Reads the next entry; false at the end.
    ///
    /// - Throws: for bytes that are not entries, which stored documents never are.
    @_lifetime(self: copy self)
    package mutating func next() throws(InvalidDocument) -> Bool {
        start = reader.position
        guard let tag = try reader.nextTag() else { return false }
        var entry = try reader.message(tag)
        while let part = try entry.nextTag() {
            switch part.fieldNumber {
            case FieldNumber.MapEntry.key: key = try entry.span(part)
            case FieldNumber.MapEntry.value: value = try entry.span(part)
            default: try entry.skip(part)
            }
        }
        return true
    }
}
