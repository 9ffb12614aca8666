// The public face of encoding: `Firestore.Encoder` is an alias of this class. Strategies live here; the work is done by
// an `EncodingSession` (see there for how), of which each thread keeps one between calls.

public import Foundation

/// Turns `Encodable` values into documents.
///
/// A value's encoding goes straight into the protobuf wire form of `google.firestore.v1`, with no tree of values in
/// between. Not thread-safe while its properties are being set; encoding itself may run on several threads at once.
public final class FirestoreEncoder {
    /// How a `Date` is written.
    public enum DateEncodingStrategy {
        /// As a Firestore timestamp. The default.
        case timestamp
        /// As `Date` encodes itself: a double of seconds since 2001-01-01.
        case deferredToDate
        /// As a double of seconds since 1970.
        case secondsSince1970
        /// As a double of milliseconds since 1970.
        case millisecondsSince1970
        /// As an ISO 8601 string with whole seconds, in UTC.
        case iso8601
        /// As a string made by the formatter.
        case formatted(DateFormatter)
        /// As the closure encodes it; a closure that encodes nothing gives an empty map.
        case custom((Date, any Encoder) throws -> Void)
    }

    /// How `Data` is written.
    public enum DataEncodingStrategy {
        /// As Firestore bytes. The default.
        case blob
        /// As `Data` encodes itself: an array of integers.
        case deferredToData
        /// As a base64 string.
        case base64
        /// As the closure encodes it; a closure that encodes nothing gives an empty map.
        case custom((Data, any Encoder) throws -> Void)
    }

    /// How infinities and NaN are written.
    public enum NonConformingFloatEncodingStrategy {
        /// Not at all: `EncodingError.invalidValue`. The default.
        case `throw`
        /// As strings.
        case convertToString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How the keys of types become field names. Keys of `[String: T]` values are never changed.
    public enum KeyEncodingStrategy {
        /// As they are. The default.
        case useDefaultKeys
        /// `myURLProperty` becomes `my_url_property`.
        case convertToSnakeCase
        /// As the closure says; it sees the path to the key, the key last, in Swift names.
        case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    public var dateEncodingStrategy: DateEncodingStrategy = .timestamp
    public var dataEncodingStrategy: DataEncodingStrategy = .blob
    public var nonConformingFloatEncodingStrategy: NonConformingFloatEncodingStrategy = .throw
    public var keyEncodingStrategy: KeyEncodingStrategy = .useDefaultKeys
    /// What `encode(to:)` implementations find in `encoder.userInfo`.
    public var userInfo: [CodingUserInfoKey: Any] = [:]

    public init() {}
}
