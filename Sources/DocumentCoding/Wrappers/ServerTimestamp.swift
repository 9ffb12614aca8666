// @ServerTimestamp: a property that the server fills with the time of the commit when it is nil.

public import Foundation

/// A type that can hold a point in time: `Date`, `Timestamp`, or a type of your own.
public protocol ServerTimestampWrappable {
    /// Makes the value for a timestamp that was read.
    static func wrap(_ timestamp: Timestamp) throws -> Self
    /// The timestamp to write for a value.
    static func unwrap(_ value: Self) throws -> Timestamp
}

extension Date: ServerTimestampWrappable {
    /// Returns the timestamp as a date.
    public static func wrap(_ timestamp: Timestamp) throws -> Date { timestamp.dateValue() }

    /// - Throws: `EncodingError.invalidValue` for a date outside the years 1 to 9999.
    public static func unwrap(_ value: Date) throws -> Timestamp {
        guard let (seconds, nanoseconds) = Timestamp.parts(of: value) else {
            throw EncodingError.invalidValue(value, .init(codingPath: [], debugDescription: "Date out of range."))
        }
        return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
    }
}

extension Timestamp: ServerTimestampWrappable {
    /// Returns the timestamp.
    public static func wrap(_ timestamp: Timestamp) throws -> Self {
        // The class is final: Self is Timestamp.
        timestamp as! Self
    }
    /// Returns the timestamp.
    public static func unwrap(_ value: Timestamp) throws -> Timestamp { value }
}

/// A property that is written as `FieldValue.serverTimestamp()` while it is nil, and as its own time otherwise.
@propertyWrapper
public struct ServerTimestamp<Value: ServerTimestampWrappable & Codable>: Codable {
    private var value: Value?

    /// Creates the wrapper; nil requests the commit time.
    public init(wrappedValue value: Value?) {
        self.value = value
    }

    /// The time; nil is encoded as a request for the commit time.
    public var wrappedValue: Value? {
        get { value }
        set { value = newValue }
    }

    /// Null reads as nil; a missing field is `DecodingError.keyNotFound`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        value = container.decodeNil() ? nil : try Value.wrap(try container.decode(Timestamp.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let value {
            try container.encode(try Value.unwrap(value))
        } else {
            try container.encode(FieldValue.serverTimestamp())
        }
    }
}

extension ServerTimestamp: Equatable where Value: Equatable {}
extension ServerTimestamp: Hashable where Value: Hashable {}
extension ServerTimestamp: Sendable where Value: Sendable {}

extension ServerTimestamp: CustomStringConvertible {
    /// The wrapped optional as it prints by itself.
    public var description: String { String(describing: value) }
}
