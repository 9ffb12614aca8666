// Reading JSON of strangers: depth is bounded, and names that occur twice are refused, because two readers might each
// take another one.

internal import Basics

extension JSONValue {
    /// Why a text is not one value. The text may be secret: `description` has at most a number or a character of it.
    package enum Fault: Error, Equatable, CustomStringConvertible {
        case malformed(JSONLineError)
        case duplicateName(JSONLineError)

        package var isDuplicateName: Bool {
            if case .duplicateName = self { true } else { false }
        }

        /// A clause without a full stop.
        package var description: String {
            switch self {
            case .malformed(let error), .duplicateName(let error): "\(error.reason), byte \(error.offset + 1)"
            }
        }
    }

    /// Objects and arrays in one another.
    static let depthMax = 32

    /// Reads one value with white space around it.
    package static func read(_ text: [UInt8]) throws(Fault) -> JSONValue {
        var scanner = JSONScanner(text.span)
        let value = try read(&scanner, depth: 0)
        if scanner.peek() != 0 || scanner.position < text.count {
            throw .malformed(JSONLineError("text after the value", at: scanner.position))
        }
        return value
    }

    private static func read(_ scanner: inout JSONScanner, depth: Int) throws(Fault) -> JSONValue {
        if depth > depthMax {
            throw .malformed(JSONLineError("more than \(depthMax) levels", at: scanner.position))
        }
        switch scanner.peek() {
        case UInt8(ascii: "{"): return .object(try object(&scanner, depth: depth))
        case UInt8(ascii: "["): return .array(try array(&scanner, depth: depth))
        default:
            do throws(JSONLineError) {
                return try scalar(&scanner)
            } catch {
                throw .malformed(error)
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
        let text = String(decodingUTF8: scanner.line.extracting(start..<scanner.position))
        if extent.isInteger, let number = Int64(text) { return .integer(number) }
        guard let number = Double(text), number.isFinite else {
            throw JSONLineError("a number is too large for a double", at: start)
        }
        return .double(number)
    }

    private static func object(_ scanner: inout JSONScanner, depth: Int) throws(Fault) -> [String: JSONValue] {
        var members: [String: JSONValue] = [:]
        _ = scanner.skip(UInt8(ascii: "{"))
        if scanner.skip(UInt8(ascii: "}")) { return members }
        repeat {
            scanner.skipSpace()
            let start = scanner.position
            let name = try name(&scanner)
            let value = try read(&scanner, depth: depth + 1)
            if members.updateValue(value, forKey: name) != nil {
                throw .duplicateName(JSONLineError("a name occurs twice in an object", at: start))
            }
        } while scanner.skip(UInt8(ascii: ","))
        try expect(UInt8(ascii: "}"), &scanner)
        return members
    }

    private static func array(_ scanner: inout JSONScanner, depth: Int) throws(Fault) -> [JSONValue] {
        var elements: [JSONValue] = []
        _ = scanner.skip(UInt8(ascii: "["))
        if scanner.skip(UInt8(ascii: "]")) { return elements }
        repeat { elements.append(try read(&scanner, depth: depth + 1)) } while scanner.skip(UInt8(ascii: ","))
        try expect(UInt8(ascii: "]"), &scanner)
        return elements
    }

    /// Reads a name and the colon after it.
    private static func name(_ scanner: inout JSONScanner) throws(Fault) -> String {
        do throws(JSONLineError) {
            let name = try string(&scanner)
            try scanner.expect(UInt8(ascii: ":"))
            return name
        } catch {
            throw .malformed(error)
        }
    }

    private static func expect(_ byte: UInt8, _ scanner: inout JSONScanner) throws(Fault) {
        do throws(JSONLineError) { try scanner.expect(byte) } catch { throw .malformed(error) }
    }

    private static func string(_ scanner: inout JSONScanner) throws(JSONLineError) -> String {
        var bytes: [UInt8] = []
        try scanner.append(try scanner.string(), to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
