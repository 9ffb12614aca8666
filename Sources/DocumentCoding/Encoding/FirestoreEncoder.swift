public import Foundation

/// Encodes `Encodable` values into documents. `Firestore.Encoder` is an alias of this class.
///
/// The encoder writes the protobuf wire form of `google.firestore.v1` directly, without a tree of values in between.
/// Thread-safe: a call uses the properties as they are when it begins. What `userInfo` holds must be safe to use on the
/// threads that encode.
public final class FirestoreEncoder: Sendable {
    /// How a `Date` is written.
    public enum DateEncodingStrategy: Sendable {
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
        @preconcurrency case custom(@Sendable (Date, any Encoder) throws -> Void)
    }

    /// How `Data` is written.
    public enum DataEncodingStrategy: Sendable {
        /// As Firestore bytes. The default.
        case blob
        /// As `Data` encodes itself: an array of integers.
        case deferredToData
        /// As a base64 string.
        case base64
        /// As the closure encodes it; a closure that encodes nothing gives an empty map.
        @preconcurrency case custom(@Sendable (Data, any Encoder) throws -> Void)
    }

    /// How infinities and NaN are written.
    public enum NonConformingFloatEncodingStrategy: Sendable {
        /// They throw `EncodingError.invalidValue`. The default.
        case `throw`
        /// As strings.
        case convertToString(positiveInfinity: String, negativeInfinity: String, nan: String)
    }

    /// How the keys of types become field names. Keys of `[String: T]` values are never changed.
    public enum KeyEncodingStrategy: Sendable {
        /// Keys are field names. The default.
        case useDefaultKeys
        /// `myURLProperty` becomes `my_url_property`.
        case convertToSnakeCase
        /// The closure returns the field name. It gets the path to the key in Swift names, the key last.
        @preconcurrency case custom(@Sendable (_ codingPath: [any CodingKey]) -> any CodingKey)
    }

    /// How `Date` values are encoded. The default writes timestamps.
    public var dateEncodingStrategy: DateEncodingStrategy {
        get { strategies.values.date }
        set { holder.change { $0.date = newValue } }
    }
    /// How `Data` values are encoded. The default writes bytes.
    public var dataEncodingStrategy: DataEncodingStrategy {
        get { strategies.values.data }
        set { holder.change { $0.data = newValue } }
    }
    /// How infinities and NaN are encoded. The default throws.
    public var nonConformingFloatEncodingStrategy: NonConformingFloatEncodingStrategy {
        get { strategies.values.float }
        set { holder.change { $0.float = newValue } }
    }
    /// How the keys of types become field names. The default uses them unchanged.
    public var keyEncodingStrategy: KeyEncodingStrategy {
        get { strategies.values.key }
        set { holder.change { $0.key = newValue } }
    }
    /// What `encode(to:)` implementations find in `encoder.userInfo`.
    public var userInfo: [CodingUserInfoKey: Any] {
        get { strategies.values.userInfo }
        set {
            let box = UncheckedUserInfo(userInfo: newValue)
            holder.change { $0.userInfo = box.userInfo }
        }
    }

    private let holder = StrategyHolder<EncodingStrategies>()

    /// The strategies of a call that begins now.
    var strategies: EncodingStrategies { holder.current }

    /// Creates an encoder with the default strategies.
    public init() {}

    /// The encoder of calls that name none. No program gets it, so its properties never change.
    @usableFromInline package static let standard = FirestoreEncoder()
}

/// The strategies of an encoder at one time.
final class EncodingStrategies: CodingStrategies, @unchecked Sendable {
    // Unchecked: constants; the program answers for the values of `userInfo`.

    struct Values {
        var date = FirestoreEncoder.DateEncodingStrategy.timestamp
        var data = FirestoreEncoder.DataEncodingStrategy.blob
        var float = FirestoreEncoder.NonConformingFloatEncodingStrategy.throw
        var key = FirestoreEncoder.KeyEncodingStrategy.useDefaultKeys
        var userInfo: [CodingUserInfoKey: Any] = [:]
    }

    static let standard = EncodingStrategies(Values())

    let values: Values
    // What is asked for all the time.
    let usesDefaultKeys: Bool
    let writesTimestamps: Bool

    init(_ values: Values) {
        self.values = values
        usesDefaultKeys = if case .useDefaultKeys = values.key { true } else { false }
        writesTimestamps = if case .timestamp = values.date { true } else { false }
    }
}
