/// Percent-encoding (RFC 3986, section 2.1).
package enum PercentEncoding {
    /// Appends a byte as `%XX`.
    package static func appendEncoded(_ byte: UInt8, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "%"))
        output.append(Hexadecimal.upperDigit(byte >> 4))
        output.append(Hexadecimal.upperDigit(byte))
    }

    /// The decoded text; nil if a `%` is not followed by two hexadecimal digits or the result is not UTF-8.
    /// - Parameter plusIsSpace: `+` stands for a space, as in the query that an HTML form writes.
    package static func decoded(_ text: some StringProtocol, plusIsSpace: Bool = false) -> String? {
        decodedBytes(text, plusIsSpace: plusIsSpace).flatMap { String(validatingUTF8: $0.byteSpan) }
    }

    /// The decoded bytes; nil if a `%` is not followed by two hexadecimal digits.
    /// - Parameter plusIsSpace: see ``decoded(_:plusIsSpace:)``.
    package static func decodedBytes(_ text: some StringProtocol, plusIsSpace: Bool = false) -> [UInt8]? {
        String(text).withUTF8Span { decodedBytes(utf8: $0, plusIsSpace: plusIsSpace) }
    }

    /// The same for the bytes of a text. Not generic: texts of many MiB come here.
    private static func decodedBytes(utf8 text: RawSpan, plusIsSpace: Bool) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.byteCount)
        var index = 0
        while index < text.byteCount {
            let byte = text[byteAt: index]
            index += 1
            switch byte {
            case UInt8(ascii: "%"):
                guard index + 1 < text.byteCount, let high = Hexadecimal.value(ofDigit: text[byteAt: index]),
                    let low = Hexadecimal.value(ofDigit: text[byteAt: index + 1])
                else { return nil }
                bytes.append(high << 4 | low)
                index += 2
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
            default: bytes.append(byte)
            }
        }
        return bytes
    }
}
