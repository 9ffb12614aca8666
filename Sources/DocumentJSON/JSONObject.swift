import Basics

/// An object of a small JSON text, such as a file of settings, as a tree. Of a name that occurs twice the last member
/// counts; a member that is `null` counts as missing.
package struct JSONObject: Equatable, Sendable {
    /// Why a text is not such an object, or a member is of another kind than asked for; a clause without a full stop.
    package struct Mistake: Error, Equatable, CustomStringConvertible {
        package let description: String

        package init(_ description: String) { self.description = description }
    }

    private indirect enum Value: Equatable, Sendable {
        case null
        case boolean(Bool)
        /// As it is written.
        case number(String)
        case string(String)
        case array([Value])
        case object(JSONObject)
    }

    private var members: [String: Value] = [:]

    /// Objects and arrays in one another.
    private static let depthMax = 64

    /// - Parameter text: one object in UTF-8, with white space around it.
    /// - Throws: `Mistake` for anything else.
    package init(_ text: [UInt8]) throws(Mistake) {
        var scanner = JSONScanner(text.span)
        do throws(JSONLineError) {
            guard scanner.peek() == UInt8(ascii: "{") else { throw JSONLineError("it is not an object", at: 0) }
            self = try Self.object(&scanner, depth: 1)
            if scanner.peek() != 0 || scanner.position < text.count {
                throw JSONLineError("text after the object", at: scanner.position)
            }
        } catch {
            throw Mistake("it is not a JSON object (\(error.reason), byte \(error.offset + 1))")
        }
    }

    private init(members: [String: Value]) { self.members = members }

    // MARK: Members

    package func has(_ name: String) -> Bool { member(name) != nil }

    /// `nil` if there is no such member.
    package func string(_ name: String) throws(Mistake) -> String? {
        guard let member = member(name) else { return nil }
        guard case .string(let text) = member else { throw Mistake("'\(name)' is not a string") }
        return text
    }

    /// `nil` if there is no such member.
    package func integer<Number: FixedWidthInteger>(_ name: String) throws(Mistake) -> Number? {
        guard let member = member(name) else { return nil }
        guard case .number(let text) = member, let number = Number(text) else {
            throw Mistake("'\(name)' is not an integer of its range")
        }
        return number
    }

    /// `nil` if there is no such member.
    package func boolean(_ name: String) throws(Mistake) -> Bool? {
        guard let member = member(name) else { return nil }
        guard case .boolean(let value) = member else { throw Mistake("'\(name)' is not true or false") }
        return value
    }

    /// `nil` if there is no such member.
    package func object(_ name: String) throws(Mistake) -> JSONObject? {
        guard let member = member(name) else { return nil }
        guard case .object(let object) = member else { throw Mistake("'\(name)' is not an object") }
        return object
    }

    /// `nil` if there is no such member.
    package func objects(_ name: String) throws(Mistake) -> [JSONObject]? {
        guard let member = member(name) else { return nil }
        let mistake = Mistake("'\(name)' is not an array of objects")
        guard case .array(let elements) = member else { throw mistake }
        return try elements.map { (element) throws(Mistake) in
            guard case .object(let object) = element else { throw mistake }
            return object
        }
    }

    private func member(_ name: String) -> Value? { members[name] == .null ? nil : members[name] }

    // MARK: Reading

    private static func value(_ scanner: inout JSONScanner, depth: Int) throws(JSONLineError) -> Value {
        if depth > depthMax { throw JSONLineError("more than \(depthMax) levels", at: scanner.position) }
        switch scanner.peek() {
        case UInt8(ascii: "{"): return .object(try object(&scanner, depth: depth))
        case UInt8(ascii: "["): return .array(try array(&scanner, depth: depth))
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
        default:
            let start = scanner.position
            _ = try scanner.numberExtent()
            return .number(String(decodingUTF8: scanner.line.extracting(start..<scanner.position)))
        }
    }

    private static func object(_ scanner: inout JSONScanner, depth: Int) throws(JSONLineError) -> JSONObject {
        try scanner.expect(UInt8(ascii: "{"))
        var members: [String: Value] = [:]
        if scanner.skip(UInt8(ascii: "}")) { return JSONObject(members: members) }
        repeat {
            scanner.skipSpace()
            let name = try string(&scanner)
            try scanner.expect(UInt8(ascii: ":"))
            members[name] = try value(&scanner, depth: depth + 1)
        } while scanner.skip(UInt8(ascii: ","))
        try scanner.expect(UInt8(ascii: "}"))
        return JSONObject(members: members)
    }

    private static func array(_ scanner: inout JSONScanner, depth: Int) throws(JSONLineError) -> [Value] {
        try scanner.expect(UInt8(ascii: "["))
        var elements: [Value] = []
        if scanner.skip(UInt8(ascii: "]")) { return elements }
        repeat { elements.append(try value(&scanner, depth: depth + 1)) } while scanner.skip(UInt8(ascii: ","))
        try scanner.expect(UInt8(ascii: "]"))
        return elements
    }

    private static func string(_ scanner: inout JSONScanner) throws(JSONLineError) -> String {
        var bytes: [UInt8] = []
        try scanner.append(try scanner.string(), to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
