// What an entry says of a word in a document. The layout is drawn in SearchKey.swift.

internal import Basics
internal import DocumentModel

/// An entry's value, read field by field.
package struct SearchPosting: ~Escapable {
    /// The key of the document if the path in the entry's key is cut; else empty.
    package let documentKey: RawSpan
    private var reader: WireReader

    /// How often a word occurs in a field.
    package struct Field: Sendable, Equatable {
        /// The place of the field in the index.
        package let field: Int
        /// Words of the field.
        package let length: Int
        /// Places of the word.
        package var count: Int
    }

    /// - Returns: nil for bytes that are not a posting.
    @_lifetime(copy value)
    package init?(_ value: RawSpan) {
        var reader = WireReader(value)
        guard let key = try? reader.lengthDelimited() else { return nil }
        documentKey = key
        self.reader = reader
    }

    /// The next field; nil at the end, and where the bytes are something else.
    ///
    /// - Parameters:
    ///   - onlyItself: places where the word is not its stem do not count. A field without others has the count 0.
    ///   - place: called with each place, counted from 0, in ascending order.
    @_lifetime(self: copy self)
    package mutating func next(
        onlyItself: Bool = false, _ place: (UInt32) -> Void = { _ in }
    ) -> Field? {
        guard !reader.isAtEnd, let field = try? reader.varint(), let length = try? reader.varint(),
            let count = try? reader.varint(), count <= UInt64(reader.bytes.byteCount)
        else { return nil }
        var at: UInt64 = 0
        var counted = 0
        for _ in 0..<count {
            guard let step = try? reader.varint() else { return nil }
            at &+= step >> 1
            if onlyItself, step & 1 == 1 { continue }
            counted += 1
            place(UInt32(truncatingIfNeeded: at))
        }
        return Field(field: Int(clamping: field), length: Int(clamping: length), count: counted)
    }
}
