// Doubles as texts, as Java writes and reads them.

enum DoubleText {
    /// The text of a double: `1.0`, `1.0E8`, `1.0E-4`, `NaN`, `Infinity`.
    static func write(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        let sign = value.sign == .minus ? "-" : ""
        if value.isInfinite { return sign + "Infinity" }
        if value == 0 { return sign + "0.0" }
        // Swift's shortest digits, taken apart: "1.5", "1e-05", "1.5e+20".
        let parts = "\(value.magnitude)".split(separator: "e")
        let halves = parts[0].split(separator: ".")
        var digits = halves.joined()
        var point = halves[0].count + (parts.count > 1 ? Int(parts[1]) ?? 0 : 0)
        let zeros = digits.prefix { $0 == "0" }.count
        digits.removeFirst(zeros)
        point -= zeros
        while digits.count > 1, digits.last == "0" { digits.removeLast() }
        if value.magnitude >= 1e-3, value.magnitude < 1e7 {
            if point <= 0 { return sign + "0." + String(repeating: "0", count: -point) + digits }
            digits += String(repeating: "0", count: max(0, point + 1 - digits.count))
            return sign + digits.prefix(point) + "." + digits.dropFirst(point)
        }
        let rest = digits.dropFirst()
        return sign + digits.prefix(1) + "." + (rest.isEmpty ? "0" : rest) + "E\(point - 1)"
    }

    /// Bytes of the longest text that is read.
    private static let bytesMax = 1_000

    /// The double that a text spells; nil if it spells none. Spaces around it and a suffix `f` or `d` are allowed.
    static func read(_ text: String) -> Double? {
        if text.utf8.count > bytesMax { return nil }
        var reader = Reader(bytes: Array(text.utf8))
        return reader.read()
    }

    private struct Reader {
        var rest: ArraySlice<UInt8>

        init(bytes: [UInt8]) {
            rest = bytes[...]
            while let first = rest.first, first <= 0x20 { rest.removeFirst() }
            while let last = rest.last, last <= 0x20 { rest.removeLast() }
        }

        mutating func read() -> Double? {
            let isNegative = skip("-")
            if !isNegative { _ = skip("+") }
            guard let magnitude = magnitude() else { return nil }
            return isNegative ? -magnitude : magnitude
        }

        private mutating func magnitude() -> Double? {
            if rest.elementsEqual("NaN".utf8) { return .nan }
            if rest.elementsEqual("Infinity".utf8) { return .infinity }
            let isHexadecimal = rest.starts(with: "0x".utf8) || rest.starts(with: "0X".utf8)
            if isHexadecimal { rest.removeFirst(2) }
            func isDigit(_ byte: UInt8) -> Bool {
                isHexadecimal ? Lexer.hexadecimal(byte) != nil : Lexer.isDigit(byte)
            }
            let whole = take(while: isDigit)
            let fraction = skip(".") ? take(while: isDigit) : ""
            if whole.isEmpty, fraction.isEmpty { return nil }
            var exponent = "0"
            if isHexadecimal ? skip(anyOf: "pP") : skip(anyOf: "eE") {
                let sign = skip("-") ? "-" : ""
                if sign.isEmpty { _ = skip("+") }
                exponent = take(while: Lexer.isDigit)
                if exponent.isEmpty { return nil }
                exponent = sign + exponent
            } else if isHexadecimal {
                return nil
            }
            _ = skip(anyOf: "fFdD")
            if !rest.isEmpty { return nil }
            // Only hexadecimal numbers have another form of their exponent.
            let prefix = isHexadecimal ? "0x" : ""
            let mark = isHexadecimal ? "p" : "e"
            return Double("\(prefix)0\(whole).\(fraction)0\(mark)\(exponent)")
        }

        private mutating func skip(_ character: String) -> Bool { skip(anyOf: character) }

        private mutating func skip(anyOf characters: String) -> Bool {
            guard let first = rest.first, characters.utf8.contains(first) else { return false }
            rest.removeFirst()
            return true
        }

        private mutating func take(while condition: (UInt8) -> Bool) -> String {
            let taken = rest.prefix(while: condition)
            rest = rest[taken.endIndex...]
            return String(decoding: taken, as: UTF8.self)
        }
    }
}
