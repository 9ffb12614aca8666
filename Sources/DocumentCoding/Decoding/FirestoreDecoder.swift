// The public face of decoding: `Firestore.Decoder` is an alias of this class. Strategies live here; the work is done by
// a `DecodingSession` (see there for how), of which each thread keeps one between calls.

public import Foundation

/// Makes `Decodable` values of documents.
///
/// Values are read in place from the protobuf wire form of `google.firestore.v1`, with no tree of values in between.
/// Not thread-safe while its properties are being set; decoding itself may run on several threads at once. The
/// `Decoder` that an `init(from:)` receives, and its containers, must not be used after `decode` has returned:
/// they throw then.
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
        /// These.
        case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How field names become the keys of types. Keys of `[String: T]` values are never changed.
    public enum KeyDecodingStrategy {
        /// As they are. The default.
        case useDefaultKeys
        /// `my_url_property` becomes `myUrlProperty`.
        case convertFromSnakeCase
        /// As the closure says; it sees the path to the field, the field's name last.
        case custom((_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    public var dateDecodingStrategy: DateDecodingStrategy = .timestamp
    public var dataDecodingStrategy: DataDecodingStrategy = .blob
    public var nonConformingFloatDecodingStrategy: NonConformingFloatDecodingStrategy = .throw
    public var keyDecodingStrategy: KeyDecodingStrategy = .useDefaultKeys
    /// What `init(from:)` implementations find in `decoder.userInfo`.
    public var userInfo: [CodingUserInfoKey: Any] = [:]

    public init() {}
}
