/// Base64 (RFC 4648, section 4, padded) over bytes.
package enum Base64 {
    private static let alphabet: [UInt8] = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    /// Six bits by character; 0xFF for characters outside the alphabet.
    private static let values: [UInt8] = {
        var table = [UInt8](repeating: 0xFF, count: 256)
        for (value, character) in alphabet.enumerated() { table[Int(character)] = UInt8(value) }
        return table
    }()

    /// The bytes that `text` spells; nil if it is not padded base64 or its unused bits are not zero.
    package static func decode(_ text: Span<UInt8>) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        var output = [UInt8]()
        output.reserveCapacity(text.count / 4 * 3)
        var at = 0
        while at < text.count {
            var padding = 0
            if at + 4 == text.count {
                if text[at + 3] == 0x3D { padding = 1 }
                if padding == 1, text[at + 2] == 0x3D { padding = 2 }
            }
            var group: UInt32 = 0
            for index in 0..<4 {
                let value = index >= 4 - padding ? 0 : values[Int(text[at + index])]
                guard value != 0xFF else { return nil }
                group = group << 6 | UInt32(value)
            }
            output.append(UInt8(truncatingIfNeeded: group >> 16))
            if padding < 2 { output.append(UInt8(truncatingIfNeeded: group >> 8)) }
            if padding < 1 { output.append(UInt8(truncatingIfNeeded: group)) }
            let unused: UInt32 = padding == 2 ? 0xFFFF : padding == 1 ? 0xFF : 0
            guard group & unused == 0 else { return nil }
            at += 4
        }
        return output
    }

    /// The same for text in the URL alphabet (section 5) too, padded or not: all that protobuf's JSON mapping takes.
    package static func decodeAnyForm(_ text: Span<UInt8>) -> [UInt8]? {
        var plain = [UInt8]()
        plain.reserveCapacity(text.count + 2)
        for at in text.indices {
            switch text[at] {
            case 0x2D: plain.append(0x2B)
            case 0x5F: plain.append(0x2F)
            default: plain.append(text[at])
            }
        }
        while plain.count % 4 != 0, plain.count % 4 > 1 { plain.append(0x3D) }
        return decode(plain.span)
    }

    /// Appends the text of `bytes`.
    package static func append(_ bytes: RawSpan, to output: inout [UInt8]) {
        var at = 0
        while at < bytes.byteCount {
            let count = min(3, bytes.byteCount - at)
            var group: UInt32 = 0
            for index in 0..<3 {
                group = group << 8 | (index < count ? UInt32(bytes[byteAt: at + index]) : 0)
            }
            output.append(alphabet[Int(group >> 18 & 63)])
            output.append(alphabet[Int(group >> 12 & 63)])
            output.append(count > 1 ? alphabet[Int(group >> 6 & 63)] : 0x3D)
            output.append(count > 2 ? alphabet[Int(group & 63)] : 0x3D)
            at += count
        }
    }
}
