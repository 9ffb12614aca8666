// Walking the entries of a document or map, in place.

import DocumentModel

/// Steps through map entries: of a document (tag 0x12) or of a map value (tag 0x0a).
struct FieldEntryReader: ~Escapable {
    private var reader: WireReader
    /// Where the entry that was read last begins, tag included.
    private(set) var start = 0
    /// The entry's name.
    private(set) var key: RawSpan
    /// The entry's `Value` message.
    private(set) var value: RawSpan

    @_lifetime(copy entries)
    init(_ entries: RawSpan) {
        reader = WireReader(entries)
        key = entries.extracting(first: 0)
        value = entries.extracting(first: 0)
    }

    /// Where the entry that was read last ends.
    var end: Int { reader.position }

    /// Reads the next entry; false at the end.
    ///
    /// - Throws: for bytes that are not entries, which stored documents never are.
    @_lifetime(self: copy self)
    mutating func next() throws(InvalidDocument) -> Bool {
        start = reader.position
        guard let tag = try reader.nextTag() else { return false }
        var entry = try reader.message(tag)
        while let part = try entry.nextTag() {
            switch part.fieldNumber {
            case 1: key = try entry.span(part)
            case 2: value = try entry.span(part)
            default: try entry.skip(part)
            }
        }
        return true
    }
}
