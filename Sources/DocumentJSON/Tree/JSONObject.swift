/// An object of a small JSON text, such as a file of settings, with members that are asked for by their kinds. A member
/// that is `null` counts as missing.
package struct JSONObject: Equatable, Sendable {
    /// Why a text is not such an object, or a member is of another kind than asked for; a clause without a full stop.
    package struct Mistake: Error, Equatable, CustomStringConvertible {
        package let description: String

        package init(_ description: String) { self.description = description }
    }

    private let members: [String: JSONValue]

    /// - Parameter text: one object in UTF-8, with white space around it.
    /// - Throws: `Mistake` for anything else.
    package init(_ text: [UInt8]) throws(Mistake) {
        let value: JSONValue
        do throws(JSONValue.Fault) {
            value = try JSONValue.read(text)
        } catch {
            throw Mistake("it is not a JSON object (\(error))")
        }
        guard case .object(let members) = value else { throw Mistake("it is JSON, but not an object") }
        self.members = members
    }

    /// The object of a file for the Firebase CLI, as people write it: with a byte order mark and comments.
    ///
    /// - Throws: `Mistake`, with a place in `text`.
    package init(commented text: [UInt8]) throws(Mistake) { try self.init(JSONComments.blanked(text)) }

    private init(members: [String: JSONValue]) { self.members = members }

    package func has(_ name: String) -> Bool { member(name) != nil }

    /// `nil` if there is no such member.
    package func string(_ name: String) throws(Mistake) -> String? {
        guard let member = member(name) else { return nil }
        guard case .string(let text) = member else { throw Mistake("'\(name)' is not a string") }
        return text
    }

    /// `nil` if there is no such member.
    ///
    /// - Throws: `Mistake` also for a number that `Number` or 64 bits with a sign do not hold.
    package func integer<Number: FixedWidthInteger>(_ name: String) throws(Mistake) -> Number? {
        guard let member = member(name) else { return nil }
        guard case .integer(let integer) = member, let number = Number(exactly: integer) else {
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
        guard case .object(let members) = member else { throw Mistake("'\(name)' is not an object") }
        return JSONObject(members: members)
    }

    /// `nil` if there is no such member.
    package func objects(_ name: String) throws(Mistake) -> [JSONObject]? {
        guard let member = member(name) else { return nil }
        let mistake = Mistake("'\(name)' is not an array of objects")
        guard case .array(let elements) = member else { throw mistake }
        return try elements.map { (element) throws(Mistake) in
            guard case .object(let members) = element else { throw mistake }
            return JSONObject(members: members)
        }
    }

    private func member(_ name: String) -> JSONValue? { members[name] == .null ? nil : members[name] }
}
