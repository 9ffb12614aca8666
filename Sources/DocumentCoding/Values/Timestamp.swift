// A point in time as Firestore stores it.

public import Foundation

/// A point in time, independent of zones and calendars: seconds since the Unix epoch in UTC and nanoseconds within the
/// second.
///
/// The range is that of `google.protobuf.Timestamp`: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z; a value
/// outside is a programming error. The database keeps microseconds: the rest is cut (not rounded) when a document is
/// written.
public final class Timestamp: NSObject, NSCopying, Codable, Comparable, @unchecked Sendable {
    // Unchecked because `NSObject` is not Sendable; the stored properties are constants.

    /// Seconds since 1970-01-01T00:00:00Z, rounded towards the past.
    public let seconds: Int64
    /// Nanoseconds after `seconds`, 0..<1,000,000,000.
    public let nanoseconds: Int32

    /// Seconds of 0001-01-01T00:00:00Z up to and including those of 9999-12-31T23:59:59Z.
    package static let secondsRange: ClosedRange<Int64> = -62_135_596_800...253_402_300_799

    /// Creates a timestamp; a value outside the range of the type is a programming error.
    public init(seconds: Int64, nanoseconds: Int32) {
        guard (0..<1_000_000_000).contains(nanoseconds) else {
            programmingError("Timestamp nanoseconds out of range: \(nanoseconds)")
        }
        guard Self.secondsRange.contains(seconds) else {
            programmingError("Timestamp seconds out of range: \(seconds)")
        }
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// Creates the timestamp of a date, its fraction cut to nanoseconds.
    public convenience init(date: Date) {
        guard let (seconds, nanoseconds) = Timestamp.parts(of: date) else {
            programmingError("Timestamp out of range: \(date.timeIntervalSince1970) seconds since 1970")
        }
        self.init(seconds: seconds, nanoseconds: nanoseconds)
    }

    /// Creates the timestamp of now.
    public override convenience init() {
        self.init(date: Date())
    }

    /// The seconds and nanoseconds of a date, or `nil` if no timestamp can hold it.
    static func parts(of date: Date) -> (seconds: Int64, nanoseconds: Int32)? {
        let time = date.timeIntervalSince1970
        let whole = time.rounded(.down)
        guard whole >= Double(secondsRange.lowerBound), whole <= Double(secondsRange.upperBound) else { return nil }
        return (Int64(whole), Int32((time - whole) * 1e9))
    }

    /// A timestamp read from somewhere that is not trusted, or `nil` if it is out of range.
    convenience init?(checkedSeconds seconds: Int64, nanoseconds: Int32) {
        guard (0..<1_000_000_000).contains(nanoseconds), Self.secondsRange.contains(seconds) else { return nil }
        self.init(seconds: seconds, nanoseconds: nanoseconds)
    }

    /// The date of this timestamp, to the precision of `Date`.
    @discardableResult
    public func dateValue() -> Date {
        Date(timeIntervalSince1970: TimeInterval(seconds) + TimeInterval(nanoseconds) / 1e9)
    }

    /// Orders by time.
    @discardableResult
    public func compare(_ other: Timestamp) -> ComparisonResult {
        if seconds != other.seconds { return seconds < other.seconds ? .orderedAscending : .orderedDescending }
        if nanoseconds == other.nanoseconds { return .orderedSame }
        return nanoseconds < other.nanoseconds ? .orderedAscending : .orderedDescending
    }

    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.compare(right) == .orderedAscending
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? Timestamp else { return false }
        return seconds == other.seconds && nanoseconds == other.nanoseconds
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(seconds)
        hasher.combine(nanoseconds)
        return hasher.finalize()
    }

    public override var description: String {
        "<Timestamp: seconds=\(seconds) nanoseconds=\(nanoseconds)>"
    }

    /// Returns the receiver, which cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    // MARK: Codable, for coders other than Firestore's

    private enum CodingKeys: String, CodingKey {
        case seconds, nanoseconds
    }

    /// Reads the map `{seconds, nanoseconds}`; a value out of range is `DecodingError.dataCorrupted`.
    public convenience init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let seconds = try container.decode(Int64.self, forKey: .seconds)
        let nanoseconds = try container.decode(Int32.self, forKey: .nanoseconds)
        guard Self.secondsRange.contains(seconds), (0..<1_000_000_000).contains(nanoseconds) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "Timestamp out of range."))
        }
        self.init(seconds: seconds, nanoseconds: nanoseconds)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(seconds, forKey: .seconds)
        try container.encode(nanoseconds, forKey: .nanoseconds)
    }
}
