/// Wall time for what removes old things for good: it follows a clock that is set forward after an hour at the
/// earliest, and one that is set back at once. So a clock that is ahead for less than an hour removes nothing early.
///
/// The wall clock is compared with the elapsed time: their difference changes when the clock is set, and the lowest
/// difference of the last hour counts. A clock that is ahead from the first look on is not noticed.
package struct SettledTime: Sendable {
    /// The shortest time after which a clock that was set forward counts; the longest is twice as long.
    package static let windowMilliseconds: UInt64 = 3_600_000

    /// Lowest differences of wall time and elapsed time, in microseconds, and when their window began.
    private var windows: (previous: Int64?, present: Int64, beganMilliseconds: UInt64)?

    package init() {}

    /// The time to go by now, in microseconds since 1970; never after `wallMicroseconds`.
    ///
    /// To be asked at least once in an hour, since it knows of the clock only what it has seen.
    /// - Parameters:
    ///   - wallMicroseconds: the wall clock, since 1970.
    ///   - elapsedMilliseconds: since some fixed moment; never steps back.
    package mutating func now(wallMicroseconds: UInt64, elapsedMilliseconds: UInt64) -> UInt64 {
        let elapsed = Int64(clamping: elapsedMilliseconds) * 1_000
        let difference = Int64(clamping: wallMicroseconds) - elapsed
        guard let (previous, present, began) = windows, elapsedMilliseconds < began + 2 * Self.windowMilliseconds
        else {
            windows = (nil, difference, elapsedMilliseconds)
            return wallMicroseconds
        }
        if elapsedMilliseconds >= began + Self.windowMilliseconds {
            windows = (present, difference, elapsedMilliseconds)
        } else {
            windows = (previous, min(present, difference), began)
        }
        let lowest = min(difference, windows?.previous ?? difference, windows?.present ?? difference)
        // Not above the wall time, so it does not overflow.
        return UInt64(max(lowest + elapsed, 0))
    }
}
