/// Strings of JSON (RFC 8259, section 7), written.
package enum JSONText {
    /// Something that bytes are appended to.
    package protocol Output: ~Copyable {
        mutating func append(_ bytes: RawSpan)
        mutating func append(byte: UInt8)
    }

    /// The text in quotes, with escapes.
    package static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = []
        text.withUTF8Span { appendQuoted($0, to: &bytes) }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends valid UTF-8 in quotes. Quotation marks, backslashes and the control characters U+0000...U+001F are
    /// escaped.
    package static func appendQuoted(_ text: RawSpan, to output: inout some Output & ~Copyable) {
        output.append(byte: UInt8(ascii: "\""))
        var plainStart = 0
        for offset in 0..<text.byteCount {
            let byte = text[byteAt: offset]
            guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
            output.append(text.extracting(plainStart..<offset))
            plainStart = offset + 1
            appendEscaped(byte, to: &output)
        }
        output.append(text.extracting(plainStart..<text.byteCount))
        output.append(byte: UInt8(ascii: "\""))
    }

    private static func appendEscaped(_ byte: UInt8, to output: inout some Output & ~Copyable) {
        output.append(byte: UInt8(ascii: "\\"))
        switch byte {
        case 0x08: output.append(byte: UInt8(ascii: "b"))
        case 0x09: output.append(byte: UInt8(ascii: "t"))
        case 0x0A: output.append(byte: UInt8(ascii: "n"))
        case 0x0C: output.append(byte: UInt8(ascii: "f"))
        case 0x0D: output.append(byte: UInt8(ascii: "r"))
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): output.append(byte: byte)
        default:
            for digit in [UInt8(ascii: "u"), UInt8(ascii: "0"), UInt8(ascii: "0")] { output.append(byte: digit) }
            output.append(byte: Hexadecimal.digit(byte >> 4))
            output.append(byte: Hexadecimal.digit(byte))
        }
    }
}

extension [UInt8]: JSONText.Output {
    package mutating func append(_ bytes: RawSpan) { append(contentsOf: bytes) }
    package mutating func append(byte: UInt8) { append(byte) }
}

extension ByteBuffer: JSONText.Output {}

extension ByteBuffer {
    /// Appends valid UTF-8 as a JSON string, with escapes.
    package mutating func appendJSONString(_ text: RawSpan) { JSONText.appendQuoted(text, to: &self) }
}
