// Reading JSON of strangers: depth is bounded, and names that occur twice are refused, because two readers might each
// take another one.

internal import Basics
internal import DocumentJSON

extension JSONValue {
    /// Why a text is not one value; without any of its characters, for it may be secret.
    package enum Fault: Error {
        case malformed
        case duplicateName
    }

    /// Objects and arrays in one another.
    static let depthMax = 32

    /// Reads one value with white space around it.
    package static func read(_ text: [UInt8]) throws(Fault) -> JSONValue {
        var scanner = JSONScanner(text.span)
        let value = try read(&scanner, depth: 0)
        scanner.skipSpace()
        if scanner.position < text.count { throw .malformed }
        return value
    }

    private static func read(_ scanner: inout JSONScanner, depth: Int) throws(Fault) -> JSONValue {
        if depth > depthMax { throw .malformed }
        switch scanner.peek() {
        case UInt8(ascii: "{"): return .object(try object(&scanner, depth: depth))
        case UInt8(ascii: "["): return .array(try array(&scanner, depth: depth))
        default:
            do throws(JSONLineError) {
                return try scalar(&scanner)
            } catch {
                throw .malformed
            }
        }
    }

    private static func scalar(_ scanner: inout JSONScanner) throws(JSONLineError) -> JSONValue {
        switch scanner.peek() {
        case UInt8(ascii: "\""): return .string(try string(&scanner))
        case UInt8(ascii: "t"):
            try scanner.literal("true")
            return .boolean(true)
        case UInt8(ascii: "f"):
            try scanner.literal("false")
            return .boolean(false)
        case UInt8(ascii: "n"):
            try scanner.literal("null")
            return .null
        default: return try number(&scanner)
        }
    }

    private static func number(_ scanner: inout JSONScanner) throws(JSONLineError) -> JSONValue {
        let start = scanner.position
        let extent = try scanner.numberExtent()
        var digits: [UInt8] = []
        for index in start..<scanner.position { digits.append(scanner.line[index]) }
        let text = String(decoding: digits, as: UTF8.self)
        if extent.isInteger, let number = Int64(text) { return .integer(number) }
        guard let number = Double(text), number.isFinite else { throw JSONLineError("a large number", at: start) }
        return .double(number)
    }

    private static func object(_ scanner: inout JSONScanner, depth: Int) throws(Fault) -> [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        _ = scanner.skip(UInt8(ascii: "{"))
        if scanner.skip(UInt8(ascii: "}")) { return members }
        repeat {
            scanner.skipSpace()
            guard let name = try? string(&scanner), scanner.skip(UInt8(ascii: ":")) else { throw .malformed }
            let value = try read(&scanner, depth: depth + 1)
            if members.updateValue(value, forKey: name) != nil { throw .duplicateName }
        } while scanner.skip(UInt8(ascii: ","))
        guard scanner.skip(UInt8(ascii: "}")) else { throw .malformed }
        return members
    }

    private static func array(_ scanner: inout JSONScanner, depth: Int) throws(Fault) -> [JSONValue] {
        var elements: [JSONValue] = []
        _ = scanner.skip(UInt8(ascii: "["))
        if scanner.skip(UInt8(ascii: "]")) { return elements }
        repeat { elements.append(try read(&scanner, depth: depth + 1)) } while scanner.skip(UInt8(ascii: ","))
        guard scanner.skip(UInt8(ascii: "]")) else { throw .malformed }
        return elements
    }

    private static func string(_ scanner: inout JSONScanner) throws(JSONLineError) -> String {
        var bytes: [UInt8] = []
        try scanner.append(try scanner.string(), to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
