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
        var bytes: [UInt8] = []
        var rest = text.utf8.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.next().flatMap(Hexadecimal.value(ofDigit:)),
                    let low = rest.next().flatMap(Hexadecimal.value(ofDigit:))
                else { return nil }
                bytes.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
            default: bytes.append(byte)
            }
        }
        return bytes
    }
}
