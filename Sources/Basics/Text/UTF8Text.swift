/// A text that is equal, hashed and ordered by its UTF-8 bytes, as names and ids are in Firestore.
///
/// Keys of dictionaries and elements of sets are such texts: `String` takes texts as equal that are written with
/// different characters, for example "é" and "e" with a combining accent.
package struct UTF8Text: Sendable {
    package let string: String

    package init(_ string: String) { self.string = string }
}

extension UTF8Text: Hashable, Comparable {
    package static func == (left: UTF8Text, right: UTF8Text) -> Bool { left.string.hasSameUTF8(as: right.string) }

    package static func < (left: UTF8Text, right: UTF8Text) -> Bool { left.string.compareUTF8(right.string) < 0 }

    package func hash(into hasher: inout Hasher) {
        string.withUTF8Span { bytes in
            // Read before the call returns.
            unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        }
        // No text has this byte: it separates the texts of a list.
        hasher.combine(0xFF as UInt8)
    }
}

extension UTF8Text: ExpressibleByStringInterpolation, CustomStringConvertible {
    package init(stringLiteral: String) { self.init(stringLiteral) }

    package var description: String { string }
}
