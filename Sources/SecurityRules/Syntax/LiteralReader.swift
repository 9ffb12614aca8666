// String and bytes literals.

/// Reads one literal from its opening quote on.
///
///     \\ \' \" \n \t \r \b \f       in both kinds
///     \x41 \101                     a code point below 256, or a byte
///     \u0041                        a UTF-16 unit, in strings alone; half of a pair becomes U+FFFD
struct LiteralReader {
    let bytes: [UInt8]
    var at: Int
    let isBytes: Bool
    /// What is wrong, once ``read()`` has returned nil.
    private(set) var problem = ""

    private var content: [UInt8] = []
    /// The first half of a surrogate pair, which waits for its second.
    private var high: UInt16?

    init(bytes: [UInt8], at: Int, isBytes: Bool) {
        self.bytes = bytes
        self.at = at
        self.isBytes = isBytes
    }

    /// The content of the literal, UTF-8 for a string; nil if it is not valid.
    mutating func read() -> [UInt8]? {
        let quote = bytes[at]
        at += 1
        while at < bytes.count, bytes[at] != UInt8(ascii: "\n"), bytes[at] != UInt8(ascii: "\r") {
            let byte = bytes[at]
            at += 1
            if byte == quote {
                endPair()
                return content
            }
            if byte == UInt8(ascii: "\\") {
                guard escape() else {
                    problem = isBytes ? "Invalid bytes literal." : "Invalid escape in a string."
                    return nil
                }
            } else {
                endPair()
                content.append(byte)
            }
        }
        problem = "Missing a closing \(String(decoding: [quote], as: UTF8.self))."
        return nil
    }

    private mutating func escape() -> Bool {
        guard at < bytes.count else { return false }
        let kind = bytes[at]
        at += 1
        switch kind {
        case UInt8(ascii: "n"): append(scalar: 0x0A)
        case UInt8(ascii: "t"): append(scalar: 0x09)
        case UInt8(ascii: "r"): append(scalar: 0x0D)
        case UInt8(ascii: "b"): append(scalar: 0x08)
        case UInt8(ascii: "f"): append(scalar: 0x0C)
        case UInt8(ascii: "\\"), UInt8(ascii: "'"), UInt8(ascii: "\""): append(scalar: UInt32(kind))
        case UInt8(ascii: "x"): return hexadecimal(digits: 2).map { appendUnit($0) } != nil
        case UInt8(ascii: "u") where !isBytes: return hexadecimal(digits: 4).map { appendUTF16($0) } != nil
        case UInt8(ascii: "0")...UInt8(ascii: "3"):
            var number = UInt32(kind - UInt8(ascii: "0"))
            for _ in 0..<2 {
                guard at < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(bytes[at]) else {
                    return false
                }
                number = number * 8 + UInt32(bytes[at] - UInt8(ascii: "0"))
                at += 1
            }
            appendUnit(number)
        default: return false
        }
        return true
    }

    private mutating func hexadecimal(digits: Int) -> UInt32? {
        var number: UInt32 = 0
        for _ in 0..<digits {
            guard at < bytes.count, let digit = Lexer.hexadecimal(bytes[at]) else { return nil }
            number = number << 4 | UInt32(digit)
            at += 1
        }
        return number
    }

    /// Appends a number below 256: a byte, or a code point of a string.
    private mutating func appendUnit(_ number: UInt32) {
        if isBytes {
            content.append(UInt8(truncatingIfNeeded: number))
        } else {
            append(scalar: number)
        }
    }

    private mutating func append(scalar: UInt32) {
        endPair()
        let character = Unicode.Scalar(scalar) ?? "\u{FFFD}"
        content += Array(String(Character(character)).utf8)
    }

    private mutating func appendUTF16(_ unit: UInt32) {
        let unit = UInt16(truncatingIfNeeded: unit)
        if let first = high, UTF16.isTrailSurrogate(unit) {
            high = nil
            append(scalar: 0x10000 + (UInt32(first) & 0x3FF) << 10 + UInt32(unit) & 0x3FF)
            return
        }
        endPair()
        if UTF16.isLeadSurrogate(unit) {
            high = unit
        } else {
            append(scalar: UInt32(unit))
        }
    }

    /// Half of a pair that stays alone becomes a replacement character.
    private mutating func endPair() {
        if high == nil { return }
        high = nil
        content += Array("\u{FFFD}".utf8)
    }
}
