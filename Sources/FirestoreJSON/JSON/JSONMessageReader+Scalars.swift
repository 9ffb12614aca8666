// Scalars from JSON, in all forms that protobuf's mapping allows: numbers as numbers or as text, integers with an empty
// fraction or an exponent, NaN and the infinities by name.

internal import DocumentJSON
internal import DocumentModel

extension JSONMessageReader {
    func expect(_ byte: UInt8, _ scanner: inout JSONScanner) throws(Failure) {
        do throws(JSONLineError) { try scanner.expect(byte) } catch { throw .syntax(error) }
    }

    func literal(_ text: StaticString, _ scanner: inout JSONScanner) throws(Failure) {
        do throws(JSONLineError) { try scanner.literal(text) } catch { throw .syntax(error) }
    }

    func stringExtent(_ scanner: inout JSONScanner) throws(Failure) -> JSONScanner.StringRange {
        scanner.skipSpace()
        do throws(JSONLineError) { return try scanner.string() } catch { throw .syntax(error) }
    }

    /// The characters of a string.
    func stringBytes(_ scanner: inout JSONScanner) throws(Failure) -> [UInt8] {
        let extent = try stringExtent(&scanner)
        var text: [UInt8] = []
        do throws(JSONLineError) { try scanner.append(extent, to: &text) } catch { throw .syntax(error) }
        return text
    }

    /// True or false, also in quotes: the cloud accepts them so, though protobuf's mapping does not mention it.
    func boolean(_ scanner: inout JSONScanner) throws(Failure) -> Bool {
        switch scanner.peek() {
        case UInt8(ascii: "t"):
            try literal("true", &scanner)
            return true
        case UInt8(ascii: "f"):
            try literal("false", &scanner)
            return false
        case UInt8(ascii: "\""):
            let text = String(decoding: try stringBytes(&scanner), as: UTF8.self)
            guard let value = ScalarText.boolean(text) else { throw .value(text, "true or false") }
            return value
        default: throw .syntax(JSONLineError("expected true or false", at: scanner.position))
        }
    }

    /// The bits of a number of this kind.
    func number(_ kind: FieldKind, _ scanner: inout JSONScanner) throws(Failure) -> UInt64 {
        let isText = scanner.peek() == UInt8(ascii: "\"")
        let text = try scalarText(&scanner)
        guard let bits = kind.bits(ofNumber: text, allowsNames: isText) else { throw .value(text, kind.numberName) }
        return bits
    }

    /// The value of an enumeration by its name or number; null for `NullValue`.
    func enumeration(_ type: Int, _ scanner: inout JSONScanner) throws(Failure) -> Int32 {
        if scanner.peek() == UInt8(ascii: "n") {
            try literal("null", &scanner)
            return 0
        }
        let isText = scanner.peek() == UInt8(ascii: "\"")
        let text = try scalarText(&scanner)
        guard let value = schema.enumerations[type].number(text, allowsNames: isText) else {
            throw .value(text, "a value of \(schema.enumerations[type].name)")
        }
        return value
    }

    /// The text of a number, or of a string that spells one.
    private func scalarText(_ scanner: inout JSONScanner) throws(Failure) -> String {
        if scanner.peek() == UInt8(ascii: "\"") { return String(decoding: try stringBytes(&scanner), as: UTF8.self) }
        let start = scanner.position
        do throws(JSONLineError) { _ = try scanner.numberExtent() } catch { throw .syntax(error) }
        return String(repairingUTF8: scanner.line.extracting(start..<scanner.position).rawBytes)
    }
}

/// Scalars as text: what query parameters and quoted numbers have in common.
enum ScalarText {
    static func integer<Integer: FixedWidthInteger>(_ text: String, as type: Integer.Type) -> Integer? {
        if let value = Integer(text) { return value }
        // 1.0 and 1e3 are whole numbers too.
        return wholeDigits(text).flatMap { Integer($0) }
    }

    /// The digits and sign of a whole number with a fraction or an exponent, exactly: a double would round those of
    /// more than 53 bits. Nil for a number that is not whole or has more digits than any integer.
    ///
    /// It works on bytes: a request may have ten million digits, and Swift finds characters slowly.
    private static func wholeDigits(_ text: String) -> String? {
        guard isDecimal(text), Double(text) != nil else { return nil }
        let zero = UInt8(ascii: "0")
        let bytes = Array(text.utf8)
        let unsigned = bytes.drop { "+-".utf8.contains($0) }.split { $0 | 0x20 == UInt8(ascii: "e") }
        let mantissa = unsigned[0].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard let exponent = unsigned.count > 1 ? Int(String(decoding: unsigned[1], as: UTF8.self)) : 0,
            (-1_000...1_000).contains(exponent)
        else { return nil }
        var digits = Array(mantissa.joined())[...].drop { $0 == zero }
        if digits.isEmpty { return "0" }
        let count = digits.count + exponent - (mantissa.count > 1 ? mantissa[1].count : 0)
        while digits.last == zero { digits.removeLast() }
        guard digits.count <= count, count <= 20 else { return nil }
        return (bytes.first == UInt8(ascii: "-") ? "-" : "") + String(decoding: digits, as: UTF8.self)
            + String(repeating: "0", count: count - digits.count)
    }

    static func double(_ text: String, allowsNames: Bool) -> Double? {
        switch text {
        case "NaN" where allowsNames: return .nan
        case "Infinity" where allowsNames: return .infinity
        case "-Infinity" where allowsNames: return -.infinity
        default:
            guard isDecimal(text), let value = Double(text), value.isFinite else { return nil }
            return value
        }
    }

    /// The nearest float; nil if it is not finite although the text is.
    static func float(_ text: String, allowsNames: Bool) -> Float? {
        guard let value = double(text, allowsNames: allowsNames) else { return nil }
        // Of the text itself, since a value that is rounded twice may differ.
        guard value.isFinite else { return Float(value) }
        return Float(text).flatMap { $0.isFinite ? $0 : nil }
    }

    static func boolean(_ text: String) -> Bool? {
        switch text {
        case "true": true
        case "false": false
        default: nil
        }
    }

    /// Swift would also take hexadecimal digits and names.
    private static func isDecimal(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || "+-.eE".utf8.contains($0) }
    }
}

extension EnumTable {
    func number(_ text: String, allowsNames: Bool) -> Int32? {
        if allowsNames, let value = values.first(where: { $0.name == text }) { return value.number }
        return ScalarText.integer(text, as: Int32.self)
    }
}

extension RawSpan {
    /// The same bytes as a span of them.
    var byteElements: Span<UInt8> {
        @_lifetime(copy self) get { Span<UInt8>(_bytes: self) }
    }
}

extension Span<UInt8> {
    /// The same bytes as a raw span.
    var rawBytes: RawSpan {
        @_lifetime(copy self) get { unsafe bytes }
    }
}
