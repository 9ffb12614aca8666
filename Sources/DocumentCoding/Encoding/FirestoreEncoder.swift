public import Foundation

/// Encodes `Encodable` values into documents. `Firestore.Encoder` is an alias of this class.
///
/// The encoder writes the protobuf wire form of `google.firestore.v1` directly, without a tree of values in between. It
/// is not thread-safe while its properties are being set; encoding may run on several threads at once.
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
        /// They throw `EncodingError.invalidValue`. The default.
        case `throw`
        /// As strings.
        case convertToString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How the keys of types become field names. Keys of `[String: T]` values are never changed.
    public enum KeyEncodingStrategy {
        /// Keys are field names. The default.
        case useDefaultKeys
        /// `myURLProperty` becomes `my_url_property`.
        case convertToSnakeCase
        /// The closure returns the field name. It gets the path to the key in Swift names, the key last.
        case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    /// How `Date` values are encoded. The default writes timestamps.
    public var dateEncodingStrategy: DateEncodingStrategy = .timestamp { didSet { noteStrategies() } }
    /// How `Data` values are encoded. The default writes bytes.
    public var dataEncodingStrategy: DataEncodingStrategy = .blob
    /// How infinities and NaN are encoded. The default throws.
    public var nonConformingFloatEncodingStrategy: NonConformingFloatEncodingStrategy = .throw
    /// How the keys of types become field names. The default uses them unchanged.
    public var keyEncodingStrategy: KeyEncodingStrategy = .useDefaultKeys { didSet { noteStrategies() } }
    /// What `encode(to:)` implementations find in `encoder.userInfo`.
    public var userInfo: [CodingUserInfoKey: Any] = [:]

    // Copies of the strategies that are asked for all the time. Access to them is not checked at run time: two checks
    // would cost as much as a field.
    @exclusivity(unchecked) private(set) var usesDefaultKeys = true
    @exclusivity(unchecked) private(set) var writesTimestamps = true

    private func noteStrategies() {
        unsafe usesDefaultKeys = if case .useDefaultKeys = keyEncodingStrategy { true } else { false }
        unsafe writesTimestamps = if case .timestamp = dateEncodingStrategy { true } else { false }
    }

    /// Creates an encoder with the default strategies.
    public init() {}

    /// The encoder of calls that name none. No program gets it, so its properties never change.
    @usableFromInline package nonisolated(unsafe) static let standard = FirestoreEncoder()
}
