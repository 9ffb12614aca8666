/// A value of JSON, read strictly (RFC 8259): no name occurs twice in an object.
package enum JSONValue: Equatable, Sendable {
    case null
    case boolean(Bool)
    /// A number without fraction and exponent that 64 bits hold.
    case integer(Int64)
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    /// The member of an object; nil if there is none, or this is not an object.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members[name]
    }

    /// The text of a string; nil for any other value.
    package var text: String? {
        guard case .string(let text) = self else { return nil }
        return text
    }

    /// The elements of an array; nil for any other value.
    package var elements: [JSONValue]? {
        guard case .array(let elements) = self else { return nil }
        return elements
    }

    /// A number rounded down, as moments in tokens are compared; nil for other values and for what 53 bits do not hold.
    package var wholeNumber: Int64? {
        switch self {
        case .integer(let number): number.magnitude < 1 << 53 ? number : nil
        case .double(let number): number.magnitude < Double(1 << 53) ? Int64(number.rounded(.down)) : nil
        default: nil
        }
    }
}
