public import Foundation

/// Decodes `Decodable` values from documents. `Firestore.Decoder` is an alias of this class.
///
/// The decoder reads values in place from the protobuf wire form of `google.firestore.v1`, without a tree of values in
/// between. The `Decoder` that an `init(from:)` receives, and its containers, throw if they are used after `decode` has
/// returned.
///
/// Thread-safe: a call uses the properties as they are when it begins. What `userInfo` holds must be safe to use on the
/// threads that decode.
public final class FirestoreDecoder: Sendable {
    /// How a `Date` is read.
    public enum DateDecodingStrategy: Sendable {
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
        @preconcurrency case custom(@Sendable (any Decoder) throws -> Date)
    }

    /// How `Data` is read.
    public enum DataDecodingStrategy: Sendable {
        /// From Firestore bytes, or from a base64 string. The default.
        case blob
        /// As `Data` decodes itself: from an array of integers.
        case deferredToData
        /// From a base64 string.
        case base64
        /// As the closure decodes it.
        @preconcurrency case custom(@Sendable (any Decoder) throws -> Data)
    }

    /// Which strings are read as infinities and NaN.
    public enum NonConformingFloatDecodingStrategy: Sendable {
        /// None. The default; doubles that are infinite or NaN are returned as they are.
        case `throw`
        /// These strings.
        case convertFromString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How field names become the keys of types. Keys of `[String: T]` values are never changed.
    public enum KeyDecodingStrategy: Sendable {
        /// Field names are keys. The default.
        case useDefaultKeys
        /// `my_url_property` becomes `myUrlProperty`.
        case convertFromSnakeCase
        /// The closure returns the key. It gets the path to the field, the name of the field last.
        @preconcurrency case custom(@Sendable (_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    /// How `Date` values are decoded. The default reads timestamps.
    public var dateDecodingStrategy: DateDecodingStrategy {
        get { strategies.values.date }
        set { holder.change { $0.date = newValue } }
    }
    /// How `Data` values are decoded. The default reads bytes.
    public var dataDecodingStrategy: DataDecodingStrategy {
        get { strategies.values.data }
        set { holder.change { $0.data = newValue } }
    }
    /// Which strings are decoded as infinities and NaN. The default accepts none.
    public var nonConformingFloatDecodingStrategy: NonConformingFloatDecodingStrategy {
        get { strategies.values.float }
        set { holder.change { $0.float = newValue } }
    }
    /// How field names become the keys of types. The default uses them unchanged.
    public var keyDecodingStrategy: KeyDecodingStrategy {
        get { strategies.values.key }
        set { holder.change { $0.key = newValue } }
    }
    /// What `init(from:)` implementations find in `decoder.userInfo`.
    public var userInfo: [CodingUserInfoKey: Any] {
        get { strategies.values.userInfo }
        set {
            let box = UncheckedUserInfo(userInfo: newValue)
            holder.change { $0.userInfo = box.userInfo }
        }
    }

    private let holder = StrategyHolder<DecodingStrategies>()

    /// The strategies of a call that begins now.
    var strategies: DecodingStrategies { holder.current }

    /// Creates a decoder with the default strategies.
    public init() {}

    /// The decoder of calls that name none. No program gets it, so its properties never change.
    @usableFromInline package static let standard = FirestoreDecoder()
}

/// The strategies of a decoder at one time.
final class DecodingStrategies: CodingStrategies, @unchecked Sendable {
    // Unchecked: constants; the program answers for the values of `userInfo`.

    struct Values {
        var date = FirestoreDecoder.DateDecodingStrategy.timestamp
        var data = FirestoreDecoder.DataDecodingStrategy.blob
        var float = FirestoreDecoder.NonConformingFloatDecodingStrategy.throw
        var key = FirestoreDecoder.KeyDecodingStrategy.useDefaultKeys
        var userInfo: [CodingUserInfoKey: Any] = [:]
    }

    static let standard = DecodingStrategies(Values())

    let values: Values
    // What is asked for all the time.
    let usesDefaultKeys: Bool
    let readsTimestamps: Bool

    init(_ values: Values) {
        self.values = values
        usesDefaultKeys = if case .useDefaultKeys = values.key { true } else { false }
        readsTimestamps = if case .timestamp = values.date { true } else { false }
    }
}
