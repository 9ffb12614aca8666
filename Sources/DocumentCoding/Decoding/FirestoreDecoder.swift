public import Foundation

/// Decodes `Decodable` values from documents. `Firestore.Decoder` is an alias of this class.
///
/// The decoder reads values in place from the protobuf wire form of `google.firestore.v1`, without a tree of values in
/// between. It is not thread-safe while its properties are being set; decoding may run on several threads at once. The
/// `Decoder` that an `init(from:)` receives, and its containers, throw if they are used after `decode` has returned.
public final class FirestoreDecoder {
    /// How a `Date` is read.
    public enum DateDecodingStrategy {
        /// From a Firestore timestamp. The default.
        case timestamp
        /// As `Date` decodes itself: a double of seconds since 2001-01-01.
        case deferredToDate
        /// From a number of seconds since 1970.
        case secondsSince1970
        /// From a number of milliseconds since 1970.
        case millisecondsSince1970
        /// From an ISO 8601 string with whole seconds.
        case iso8601
        /// From a string that the formatter understands.
        case formatted(DateFormatter)
        /// As the closure decodes it.
        case custom((any Decoder) throws -> Date)
    }

    /// How `Data` is read.
    public enum DataDecodingStrategy {
        /// From Firestore bytes, or from a base64 string. The default.
        case blob
        /// As `Data` decodes itself: from an array of integers.
        case deferredToData
        /// From a base64 string.
        case base64
        /// As the closure decodes it.
        case custom((any Decoder) throws -> Data)
    }

    /// Which strings are read as infinities and NaN.
    public enum NonConformingFloatDecodingStrategy {
        /// None. The default; doubles that are infinite or NaN are returned as they are.
        case `throw`
        /// These strings.
        case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How field names become the keys of types. Keys of `[String: T]` values are never changed.
    public enum KeyDecodingStrategy {
        /// Field names are keys. The default.
        case useDefaultKeys
        /// `my_url_property` becomes `myUrlProperty`.
        case convertFromSnakeCase
        /// The closure returns the key. It gets the path to the field, the name of the field last.
        case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    /// How `Date` values are decoded. The default reads timestamps.
    public var dateDecodingStrategy: DateDecodingStrategy = .timestamp { didSet { noteStrategies() } }
    /// How `Data` values are decoded. The default reads bytes.
    public var dataDecodingStrategy: DataDecodingStrategy = .blob
    /// Which strings are decoded as infinities and NaN. The default accepts none.
    public var nonConformingFloatDecodingStrategy: NonConformingFloatDecodingStrategy = .throw
    /// How field names become the keys of types. The default uses them unchanged.
    public var keyDecodingStrategy: KeyDecodingStrategy = .useDefaultKeys { didSet { noteStrategies() } }
    /// What `init(from:)` implementations find in `decoder.userInfo`.
    public var userInfo: [CodingUserInfoKey: Any] = [:]

    // Copies of the strategies that are asked for all the time. Access to them is not checked at run time: two checks
    // would cost as much as a field.
    @exclusivity(unchecked) private(set) var usesDefaultKeys = true
    @exclusivity(unchecked) private(set) var readsTimestamps = true

    private func noteStrategies() {
        unsafe usesDefaultKeys = if case .useDefaultKeys = keyDecodingStrategy { true } else { false }
        unsafe readsTimestamps = if case .timestamp = dateDecodingStrategy { true } else { false }
    }

    /// Creates a decoder with the default strategies.
    public init() {}

    /// The decoder of calls that name none. No program gets it, so its properties never change.
    @usableFromInline package nonisolated(unsafe) static let standard = FirestoreDecoder()
}
