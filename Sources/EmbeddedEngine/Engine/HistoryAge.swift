/// Decides up to which version history is old enough to be removed.
///
/// Versions are times, so their ages follow from the clock. Versions that are ahead of it, as after a time in which the
/// clock was wrong, would have no age for as long. Then the age of a version is the time since it was seen.
struct HistoryAge {
    private let retentionMicroseconds: UInt64
    /// The last versions of some moments (monotonic clock), while versions are ahead.
    private var seen: [(nanoseconds: UInt64, version: UInt64)] = []

    /// How far versions may be ahead of the clock without that.
    private static let aheadMicrosecondsMax: UInt64 = 60_000_000
    /// Moments within a retention that are remembered, about.
    private static let momentsMax: UInt64 = 1_024

    init(retentionMicroseconds: UInt64) { self.retentionMicroseconds = retentionMicroseconds }

    /// The version up to which everything is older than a retention, in microseconds.
    ///
    /// - Parameters:
    ///   - retention: in microseconds, at most that of the engine.
    ///   - last: the last version.
    ///   - now: the clock, in microseconds since 1970.
    ///   - nanoseconds: the monotonic clock.
    mutating func oldest(retention: UInt64, last: UInt64, now: UInt64, nanoseconds: UInt64) -> UInt64 {
        let byClock = now > retention ? now - retention : 0
        guard last > now, last - now > Self.aheadMicrosecondsMax else {
            seen = []
            return byClock
        }
        note(last, nanoseconds)
        return max(byClock, seen.last { (nanoseconds - $0.nanoseconds) / 1_000 >= retention }?.version ?? 0)
    }

    private mutating func note(_ last: UInt64, _ nanoseconds: UInt64) {
        // Of those that are too old the last one is enough.
        let old = seen.lastIndex { (nanoseconds - $0.nanoseconds) / 1_000 >= retentionMicroseconds }
        if let old { seen.removeFirst(old) }
        let pause = retentionMicroseconds / Self.momentsMax
        if let newest = seen.last, (nanoseconds - newest.nanoseconds) / 1_000 < pause { return }
        seen.append((nanoseconds, last))
    }
}
