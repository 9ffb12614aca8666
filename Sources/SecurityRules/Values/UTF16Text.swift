// Strings as sequences of UTF-16 units.

internal import Basics

/// Strings of the rules language have the sizes, the indices and the order of UTF-16 units.
enum UTF16Text {
    /// The number of units.
    static func count(_ text: String) -> Int { text.utf16.count }

    /// The units of a range, which lies within the text. Half of a surrogate pair becomes U+FFFD.
    static func slice(_ text: String, _ range: Range<Int>) -> String {
        String(decoding: Array(text.utf16.dropFirst(range.lowerBound).prefix(range.count)), as: UTF16.self)
    }

    /// Order by units: negative, 0 or positive.
    ///
    /// It is the order of UTF-8 bytes, except that characters above U+FFFF come before those from U+E000 to U+FFFF.
    static func compare(_ left: String, _ right: String) -> Int {
        left.withUTF8Span { left in
            right.withUTF8Span { right in
                let shared = min(left.byteCount, right.byteCount)
                var at = 0
                while at < shared, left[byteAt: at] == right[byteAt: at] { at += 1 }
                if at == shared { return left.byteCount - right.byteCount }
                let (leftByte, rightByte) = (left[byteAt: at], right[byteAt: at])
                // The first bytes of characters above U+FFFF, and of those that come after surrogates.
                if leftByte >= 0xF0, rightByte == 0xEE || rightByte == 0xEF { return -1 }
                if rightByte >= 0xF0, leftByte == 0xEE || leftByte == 0xEF { return 1 }
                return Int(leftByte) - Int(rightByte)
            }
        }
    }
}
