/// Hexadecimal digits of bytes, two a byte, and back.
package enum Hexadecimal {
    private static let lowerDigits: [UInt8] = Array("0123456789abcdef".utf8)
    private static let upperDigits: [UInt8] = Array("0123456789ABCDEF".utf8)

    /// The digits of all bytes, in lower case.
    package static func text(_ bytes: RawSpan) -> String {
        var digits: [UInt8] = []
        digits.reserveCapacity(bytes.byteCount * 2)
        for offset in 0..<bytes.byteCount {
            digits.append(digit(bytes[byteAt: offset] >> 4))
            digits.append(digit(bytes[byteAt: offset]))
        }
        return String(decoding: digits, as: UTF8.self)
    }

    /// The sixteen digits of a number, the most significant first.
    package static func text(_ number: UInt64) -> String {
        let digits = stride(from: UInt64(60), through: 0, by: -4).map { digit(UInt8(truncatingIfNeeded: number >> $0)) }
        return String(decoding: digits, as: UTF8.self)
    }

    /// The bytes that `text` spells, digits of either case; nil if the number of digits is odd or a character is not a
    /// digit.
    package static func bytes(_ text: String) -> [UInt8]? {
        let digits = text.utf8
        guard digits.count % 2 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        var high: UInt8?
        for digit in digits {
            guard let value = value(ofDigit: digit) else { return nil }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return bytes
    }

    /// The number that one to sixteen digits spell; nil for anything else, signs included.
    package static func number(_ text: RawSpan) -> UInt64? {
        guard (1...16).contains(text.byteCount) else { return nil }
        var number: UInt64 = 0
        for offset in 0..<text.byteCount {
            guard let value = value(ofDigit: text[byteAt: offset]) else { return nil }
            number = number << 4 | UInt64(value)
        }
        return number
    }

    /// The value of an ASCII digit of either case, 0...15, or nil.
    package static func value(ofDigit character: UInt8) -> UInt8? {
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    /// The digit of the low four bits, in lower case.
    package static func digit(_ value: UInt8) -> UInt8 { lowerDigits[Int(value & 15)] }

    /// The digit of the low four bits, in upper case.
    package static func upperDigit(_ value: UInt8) -> UInt8 { upperDigits[Int(value & 15)] }
}
