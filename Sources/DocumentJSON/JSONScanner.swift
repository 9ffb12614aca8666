// The lexical half of reading a JSON line: white space, punctuation, literals, numbers and strings (RFC 8259).

import Basics

/// A cursor over one line of JSON text.
///
/// It lends nothing out: strings are named by their range in the line, or unescaped into a buffer of the caller's.
/// Every error carries the offset it was noticed at.
package struct JSONScanner: ~Escapable {
    package let line: Span<UInt8>
    package private(set) var position: Int

    /// - Parameter position: where it begins.
    @_lifetime(copy line)
    package init(_ line: Span<UInt8>, at position: Int = 0) {
        self.line = line
        self.position = position
    }

    /// A number as JSON writes it.
    enum Number {
        case integer(Int64)
        case double(Double)
    }

    /// Where a string's characters stand in the line, quotes excluded.
    package struct StringRange {
        package var start: Int
        package var end: Int
        /// Whether the text is not the string itself, for it holds escapes.
        package var isEscaped: Bool
    }

    @_lifetime(self: copy self)
    package mutating func skipSpace() {
        while position < line.count {
            switch line[position] {
            case 0x20, 0x09, 0x0D, 0x0A: position += 1
            default: return
            }
        }
    }

    /// The next byte after white space, or 0 at the end of the line (no JSON begins with NUL).
    @_lifetime(self: copy self)
    package mutating func peek() -> UInt8 {
        skipSpace()
        return position < line.count ? line[position] : 0
    }

    @_lifetime(self: copy self)
    package mutating func skip(_ byte: UInt8) -> Bool {
        guard peek() == byte else { return false }
        position += 1
        return true
    }

    @_lifetime(self: copy self)
    package mutating func expect(_ byte: UInt8) throws(JSONLineError) {
        guard skip(byte) else {
            let found = position < line.count ? "found \(Self.name(line[position]))" : "the line ends"
            throw JSONLineError("expected \(Self.name(byte)), \(found)", at: position)
        }
    }

    @_lifetime(self: copy self)
    mutating func seek(to offset: Int) { position = offset }

    @_lifetime(self: copy self)
    package mutating func literal(_ text: StaticString) throws(JSONLineError) {
        let start = position
        // The literal's bytes live as long as the program.
        let bytes = unsafe UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        // The formatter would join `unsafe` and the name.
        // swift-format-ignore
        for unsafe byte in unsafe bytes {
            guard position < line.count, line[position] == byte else {
                throw JSONLineError("expected a value", at: start)
            }
            position += 1
        }
    }

    /// Reads a number: an integer when it has neither fraction nor exponent.
    @_lifetime(self: copy self)
    mutating func number() throws(JSONLineError) -> Number {
        let start = position
        let extent = try numberExtent()
        if !extent.isInteger {
            let text = String(decodingUTF8: line.extracting(start..<position))
            guard let value = Double(text), value.isFinite else {
                throw JSONLineError("a number is too large for a double", at: start)
            }
            return .double(value)
        }
        let isNegative = line[start] == 0x2D
        let limit = UInt64(Int64.max) + (isNegative ? 1 : 0)
        guard let magnitude = extent.magnitude, magnitude <= limit else {
            throw JSONLineError(
                "integer needs more than 64 bits; write it with a decimal point for a double", at: start)
        }
        return .integer(isNegative ? Int64(truncatingIfNeeded: 0 &- magnitude) : Int64(magnitude))
    }

    /// What the text of a number says before it is made into one.
    package struct NumberExtent {
        /// Whether there is neither fraction nor exponent.
        package var isInteger: Bool
        /// The digits before fraction and exponent, without the sign; nil when they need more than 64 bits.
        package var magnitude: UInt64?
    }

    /// Steps over a number.
    @_lifetime(self: copy self)
    package mutating func numberExtent() throws(JSONLineError) -> NumberExtent {
        let start = position
        if position < line.count, line[position] == 0x2D { position += 1 }
        let digitsStart = position
        var magnitude: UInt64 = 0
        var overflows = false
        while position < line.count, case let digit = line[position] &- 0x30, digit < 10 {
            let (product, tooLarge) = magnitude.multipliedReportingOverflow(by: 10)
            let (sum, stillTooLarge) = product.addingReportingOverflow(UInt64(digit))
            overflows = overflows || tooLarge || stillTooLarge
            magnitude = sum
            position += 1
        }
        if position == digitsStart { throw JSONLineError("expected a value", at: start) }
        if line[digitsStart] == 0x30, position - digitsStart > 1 {
            throw JSONLineError("a number must not begin with 0", at: start)
        }

        var isInteger = true
        if position < line.count, line[position] == 0x2E {
            isInteger = false
            position += 1
            try skipDigits()
        }
        if position < line.count, line[position] | 0x20 == 0x65 {
            isInteger = false
            position += 1
            if position < line.count, line[position] == 0x2B || line[position] == 0x2D { position += 1 }
            try skipDigits()
        }
        return NumberExtent(isInteger: isInteger, magnitude: overflows ? nil : magnitude)
    }

    @_lifetime(self: copy self)
    private mutating func skipDigits() throws(JSONLineError) {
        let start = position
        while position < line.count, line[position] &- 0x30 < 10 { position += 1 }
        if position == start { throw JSONLineError("expected a digit", at: position) }
    }

    /// Reads a string's extent; the position is at its opening quote. Its characters are checked to be UTF-8 without
    /// control characters; escapes are left to ``unescape(_:into:)``.
    @_lifetime(self: copy self)
    package mutating func string() throws(JSONLineError) -> StringRange {
        guard position < line.count, line[position] == 0x22 else {
            throw JSONLineError("expected a string", at: position)
        }
        let start = position + 1
        var at = start
        var isEscaped = false
        var isASCII = true
        while true {
            guard at < line.count else { throw JSONLineError("unterminated string", at: start - 1) }
            let byte = line[at]
            if byte == 0x22 { break }
            if byte == 0x5C {
                isEscaped = true
                at += 2
                continue
            }
            if byte < 0x20 { throw JSONLineError("a control character in a string must be escaped", at: at) }
            if byte >= 0x80 { isASCII = false }
            at += 1
        }
        if !isASCII, (try? UTF8Span(validating: line.extracting(start..<at))) == nil {
            throw JSONLineError("the string is not valid UTF-8", at: start)
        }
        position = at + 1
        return StringRange(start: start, end: at, isEscaped: isEscaped)
    }

    /// Appends the characters that `range` spells.
    package func append(_ range: StringRange, to output: inout [UInt8]) throws(JSONLineError) {
        guard range.isEscaped else {
            output.append(contentsOf: line, range.start..<range.end)
            return
        }
        var at = range.start
        while at < range.end {
            let byte = line[at]
            if byte != 0x5C {
                output.append(byte)
                at += 1
                continue
            }
            switch line[at + 1] {
            case 0x22, 0x5C, 0x2F: output.append(line[at + 1])
            case 0x62: output.append(0x08)
            case 0x66: output.append(0x0C)
            case 0x6E: output.append(0x0A)
            case 0x72: output.append(0x0D)
            case 0x74: output.append(0x09)
            case 0x75:
                var scalar = try hexadecimal(at: at + 2, before: range.end)
                if (0xD800...0xDBFF).contains(scalar) {
                    guard at + 7 < range.end, line[at + 6] == 0x5C, line[at + 7] == 0x75 else {
                        throw JSONLineError("lone surrogate", at: at)
                    }
                    let low = try hexadecimal(at: at + 8, before: range.end)
                    guard (0xDC00...0xDFFF).contains(low) else { throw JSONLineError("lone surrogate", at: at) }
                    scalar = 0x10000 + (scalar - 0xD800) << 10 + (low - 0xDC00)
                    at += 6
                }
                guard let character = Unicode.Scalar(scalar) else { throw JSONLineError("lone surrogate", at: at) }
                output.append(contentsOf: character.utf8)
                at += 4
            default: throw JSONLineError("unknown escape", at: at)
            }
            at += 2
        }
    }

    private func hexadecimal(at start: Int, before end: Int) throws(JSONLineError) -> UInt32 {
        guard start + 4 <= end else {
            throw JSONLineError("\\u must be followed by four hexadecimal digits", at: start - 2)
        }
        var result: UInt32 = 0
        for offset in start..<start + 4 {
            guard let digit = Hexadecimal.value(ofDigit: line[offset]) else {
                throw JSONLineError("\\u must be followed by four hexadecimal digits", at: start - 2)
            }
            result = result << 4 | UInt32(digit)
        }
        return result
    }

    /// Steps over one value, checking no more than its brackets and strings.
    @_lifetime(self: copy self)
    package mutating func skipValue() throws(JSONLineError) {
        var depth = 0
        repeat {
            switch peek() {
            case 0: throw JSONLineError("the line ends within a value", at: position)
            case 0x22: _ = try string()
            case 0x5B, 0x7B:
                depth += 1
                position += 1
            case 0x5D, 0x7D:
                depth -= 1
                position += 1
            default: position += 1
            }
            // A scalar at depth 0 ends at the next delimiter.
            while depth == 0, position < line.count, !Self.isDelimiter(line[position]) { position += 1 }
        } while depth > 0
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        byte == 0x2C || byte == 0x7D || byte == 0x5D || byte == 0x20 || byte == 0x09
    }

    private static func name(_ byte: UInt8) -> String {
        byte >= 0x20 && byte < 0x7F ? "'\(Character(Unicode.Scalar(byte)))'" : "byte \(byte)"
    }
}

extension String {
    /// The text of bytes that are known to be ASCII.
    init(decodingUTF8 bytes: Span<UInt8>) {
        self = unsafe bytes.withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    }
}

extension [UInt8] {
    /// Appends the bytes of `source` in `range`.
    mutating func append(contentsOf source: Span<UInt8>, _ range: Range<Int>) {
        unsafe source.extracting(range).withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
    }
}
