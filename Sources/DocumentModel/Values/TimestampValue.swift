// A point in time as Firestore stores it.

/// Seconds and nanoseconds since 1970-01-01T00:00:00Z, the `google.protobuf.Timestamp` of the wire.
///
/// Stored timestamps are floored to whole microseconds; the type itself keeps what it is given.
@usableFromInline package struct TimestampValue: Sendable, Hashable {
    /// `Limits.earliestSecond` ... `Limits.latestSecond` when valid; may be negative.
    @usableFromInline package var seconds: Int64
    /// 0 ..< 1,000,000,000 when valid; counts forward also before 1970.
    @usableFromInline package var nanoseconds: Int32

    @inlinable
    package init(seconds: Int64, nanoseconds: Int32) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// The time so many microseconds after (or before) 1970.
    @inlinable
    package init(microseconds: Int64) {
        let (quotient, remainder) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        let borrow: Int64 = remainder < 0 ? 1 : 0
        seconds = quotient - borrow
        nanoseconds = Int32((remainder + borrow * 1_000_000) * 1000)
    }

    /// Microseconds since 1970, rounded down. Any valid timestamp fits; an invalid one saturates.
    @inlinable
    package var microseconds: Int64 {
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        let fraction = Int64(nanoseconds) / 1000 - (nanoseconds % 1000 < 0 ? 1 : 0)
        let (sum, carry) = product.addingReportingOverflow(fraction)
        return carry ? (seconds < 0 ? .min : .max) : sum
    }

    /// The same time cut to whole microseconds.
    @inlinable
    package var flooredToMicroseconds: TimestampValue {
        TimestampValue(seconds: seconds, nanoseconds: nanoseconds - nanoseconds % 1000)
    }

    /// Whether the time lies in the years 1 to 9999 and its nanoseconds in one second.
    package var isValid: Bool {
        seconds >= Limits.earliestSecond && seconds <= Limits.latestSecond
            && nanoseconds >= 0 && nanoseconds < 1_000_000_000
    }
}

extension TimestampValue {
    /// Why no commit can have this time, in the cloud's words where they are known; nil if one can: a valid time after
    /// 1970-01-01T00:00:00Z in whole microseconds.
    package var problemAsVersion: String? {
        if !isValid { return "it must lie in the years 1 to 9999, with 0 to 999,999,999 nanoseconds." }
        if nanoseconds % 1000 != 0 { return "timestamp cannot have more than microseconds precision" }
        return microseconds > 0 ? nil : "Only timestamps past epoch are supported."
    }
}

extension TimestampValue: Comparable {
    @inlinable
    package static func < (left: TimestampValue, right: TimestampValue) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }
}
