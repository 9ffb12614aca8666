// Strings in JSON text.

package import DocumentModel

extension WireWriter {
    /// Appends text that needs no escapes, in quotes.
    mutating func appendQuoted(_ text: [UInt8]) {
        append(byte: UInt8(ascii: "\""))
        append(text)
        append(byte: UInt8(ascii: "\""))
    }

    /// Appends text as a JSON string, escapes and all; throws if it is not UTF-8.
    mutating func appendQuoted(checking text: RawSpan) throws(InvalidDocument) {
        guard UTF8Validation.isValid(text) else { throw InvalidDocument(.invalidUTF8, offset: 0) }
        appendJSONString(text)
    }

    /// Appends valid UTF-8 as a JSON string, escapes and all.
    package mutating func appendJSONString(_ text: RawSpan) {
        append(byte: UInt8(ascii: "\""))
        var runStart = 0
        for offset in 0..<text.byteCount {
            let byte = text[byteAt: offset]
            guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
            append(text.extracting(runStart..<offset))
            runStart = offset + 1
            append(byte: UInt8(ascii: "\\"))
            switch byte {
            case 0x08: append(byte: UInt8(ascii: "b"))
            case 0x09: append(byte: UInt8(ascii: "t"))
            case 0x0A: append(byte: UInt8(ascii: "n"))
            case 0x0C: append(byte: UInt8(ascii: "f"))
            case 0x0D: append(byte: UInt8(ascii: "r"))
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): append(byte: byte)
            default:
                let hex = String(byte, radix: 16)
                append(utf8: byte < 0x10 ? "u000\(hex)" : "u00\(hex)")
            }
        }
        append(text.extracting(runStart..<text.byteCount))
        append(byte: UInt8(ascii: "\""))
    }
}
