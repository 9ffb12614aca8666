// Tokens of the rules language.

/// Splits a text into tokens. It never fails: other bytes become invalid tokens.
///
/// The language has one surprise: `/` and characters after it are a segment of a path, so `100/10` is a number and a
/// path. A division needs a space after `/`.
struct Lexer {
    private let bytes: [UInt8]
    private var at = 0
    /// Where the last end of a comment is, so that none is looked for after it.
    private let lastCommentEnd: Int

    init(_ source: SourceText) {
        let bytes = source.bytes
        self.bytes = bytes
        lastCommentEnd =
            bytes.indices.dropLast().last { bytes[$0] == UInt8(ascii: "*") && bytes[$0 + 1] == UInt8(ascii: "/") } ?? -1
    }

    static let keywords: Set<String> = [
        "allow", "false", "function", "if", "import", "in", "is", "let", "match", "null", "return", "rules_version",
        "service", "true",
    ]

    /// Two characters that are one symbol.
    private static let pairs = ["&&", "||", "==", "!=", "<=", ">=", "++", "--", "**"].map { Array($0.utf8) }
    private static let singles = Set("{}[]().,;:?=<>!+-*/%".utf8)

    /// The next token; `end` again and again at the end.
    mutating func next() -> Token {
        skipSpace()
        let start = at
        guard let byte = peek() else { return token(.end, start) }
        if Self.isIdentifierStart(byte) { return word(start) }
        if Self.isDigit(byte) || (byte == UInt8(ascii: ".") && peek(1).map(Self.isDigit) ?? false) {
            return number(start)
        }
        if byte == UInt8(ascii: "'") || byte == UInt8(ascii: "\"") { return text(start, isBytes: false) }
        if byte == UInt8(ascii: "/"), let segment = pathSegment(start) { return segment }
        for pair in Self.pairs where bytes[at...].starts(with: pair) {
            at += 2
            return token(.symbol, start)
        }
        at += 1
        if Self.singles.contains(byte) { return token(.symbol, start) }
        // One character, of however many bytes.
        while let next = peek(), next & 0xC0 == 0x80 { at += 1 }
        return token(.invalid("Unexpected character\(Self.name(of: bytes[start..<at]))."), start)
    }

    /// The number of a character that may not be seen; empty for one of ASCII.
    private static func name(of character: ArraySlice<UInt8>) -> String {
        guard character.count > 1, let scalar = String(decoding: character, as: UTF8.self).unicodeScalars.first else {
            return ""
        }
        let digits = String(scalar.value, radix: 16, uppercase: true)
        return " U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }

    private func peek(_ ahead: Int = 0) -> UInt8? { at + ahead < bytes.count ? bytes[at + ahead] : nil }

    private func token(_ kind: Token.Kind, _ start: Int) -> Token {
        Token(
            kind: kind, text: String(decoding: bytes[start..<at], as: UTF8.self), range: SourceRange(start, at))
    }

    // MARK: Spaces and words

    private mutating func skipSpace() {
        while let byte = peek() {
            if byte == 0x20 || (0x09...0x0D).contains(byte) {
                at += 1
            } else if byte == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "/") {
                while let next = peek(), next != UInt8(ascii: "\n") { at += 1 }
            } else if byte == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*"), let end = endOfComment() {
                at = end
            } else {
                return
            }
        }
    }

    /// Where the comment that begins here ends; nil if it does not end, and then it is none.
    private func endOfComment() -> Int? {
        var end = at + 2
        while end <= lastCommentEnd {
            if bytes[end] == UInt8(ascii: "*"), bytes[end + 1] == UInt8(ascii: "/") { return end + 2 }
            end += 1
        }
        return nil
    }

    private mutating func word(_ start: Int) -> Token {
        if peek() == UInt8(ascii: "$") {
            // Spaces may stand before the bracket.
            let next = bytes[(at + 1)...].first { $0 != 0x20 && !(0x09...0x0D).contains($0) }
            if next == UInt8(ascii: "(") {
                at += 1
                return token(.dollar, start)
            }
        }
        while let byte = peek(), Self.isIdentifierStart(byte) || Self.isDigit(byte) { at += 1 }
        if at == start + 1, bytes[start] == UInt8(ascii: "$") { return token(.invalid("Unexpected '$'."), start) }
        let isPrefix = at == start + 1 && (bytes[start] | 0x20) == UInt8(ascii: "b")
        if isPrefix, peek() == UInt8(ascii: "'") || peek() == UInt8(ascii: "\"") { return text(start, isBytes: true) }
        let isKeyword = Self.keywords.contains(String(decoding: bytes[start..<at], as: UTF8.self))
        return token(isKeyword ? .keyword : .identifier, start)
    }

    static func isIdentifierStart(_ byte: UInt8) -> Bool {
        let lower = byte | 0x20
        return (lower >= UInt8(ascii: "a") && lower <= UInt8(ascii: "z")) || byte == UInt8(ascii: "_")
            || byte == UInt8(ascii: "$")
    }

    static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }

    // MARK: Numbers

    private mutating func number(_ start: Int) -> Token {
        // A number that begins with 0 has no further digit before its point.
        if peek() == UInt8(ascii: "0") {
            at += 1
        } else {
            skipDigits()
        }
        if peek() == UInt8(ascii: ".") {
            at += 1
            skipDigits()
            let digits = String(decoding: bytes[start..<at], as: UTF8.self)
            // Swift reads neither ".5" nor "5.".
            return token(.float(Double("0\(digits)0") ?? .infinity), start)
        }
        let digits = String(decoding: bytes[start..<at], as: UTF8.self)
        if let number = Int64(digits) { return token(.integer(number), start) }
        return token(digits == "9223372036854775808" ? .integer(nil) : .invalid("Invalid number literal."), start)
    }

    private mutating func skipDigits() {
        while let byte = peek(), Self.isDigit(byte) { at += 1 }
    }

    // MARK: Paths

    /// The segment that follows a slash directly; nil if none does.
    private mutating func pathSegment(_ start: Int) -> Token? {
        var end = start + 1
        var decoded: [UInt8] = []
        let isBracketed = peek(1) == UInt8(ascii: "(")
        if isBracketed {
            decoded.append(bytes[end])
            end += 1
        }
        let first = end
        while end < bytes.count {
            if Self.isSegmentByte(bytes[end]) {
                decoded.append(bytes[end])
                end += 1
            } else if bytes[end] == UInt8(ascii: "%"), end + 2 < bytes.count,
                let high = Self.hexadecimal(bytes[end + 1]), let low = Self.hexadecimal(bytes[end + 2])
            {
                decoded.append(high << 4 | low)
                end += 3
            } else {
                break
            }
        }
        if end == first { return nil }
        if isBracketed {
            guard end < bytes.count, bytes[end] == UInt8(ascii: ")") else { return nil }
            decoded.append(bytes[end])
            end += 1
        }
        at = end
        guard let segment = String(validating: decoded, as: UTF8.self) else {
            return token(.invalid("The segment is not valid UTF-8."), start)
        }
        return token(.pathSegment(segment), start)
    }

    private static func isSegmentByte(_ byte: UInt8) -> Bool {
        if byte == UInt8(ascii: "$") { return false }
        return isIdentifierStart(byte) || isDigit(byte) || "-.~:@&*+'".utf8.contains(byte)
    }

    static func hexadecimal(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    // MARK: Strings

    /// A string or bytes literal; a prefix before the quote has been read.
    private mutating func text(_ start: Int, isBytes: Bool) -> Token {
        var reader = LiteralReader(bytes: bytes, at: at, isBytes: isBytes)
        let content = reader.read()
        at = reader.at
        guard let content else { return token(.invalid(reader.problem), start) }
        if isBytes { return token(.bytes(content), start) }
        return token(.string(String(decoding: content, as: UTF8.self)), start)
    }
}
