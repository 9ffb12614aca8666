// @ExplicitNull: a property whose nil is written as null instead of being left out.

/// A property that is written as null while it is nil. Null reads as nil; a missing field is
/// `DecodingError.keyNotFound`.
@propertyWrapper
public struct ExplicitNull<Value> {
    private var value: Value?

    /// Creates the wrapper with an initial value.
    public init(wrappedValue value: Value?) {
        self.value = value
    }

    /// The value; nil is encoded as null.
    public var wrappedValue: Value? {
        get { value }
        set { value = newValue }
    }
}

extension ExplicitNull: Encodable where Value: Encodable {
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let value {
            try container.encode(value)
        } else {
            try container.encodeNil()
        }
    }
}

extension ExplicitNull: Decodable where Value: Decodable {
    /// Decodes null as nil.
    ///
    /// - Throws: `DecodingError.keyNotFound` if the field is missing.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        value = container.decodeNil() ? nil : try container.decode(Value.self)
    }
}

extension ExplicitNull: Equatable where Value: Equatable {}
extension ExplicitNull: Hashable where Value: Hashable {}
extension ExplicitNull: Sendable where Value: Sendable {}

extension ExplicitNull: CustomStringConvertible {
    /// The wrapped optional as it prints by itself.
    public var description: String { String(describing: value) }
}
