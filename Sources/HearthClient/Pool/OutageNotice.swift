// When to report that calls wait for a server that cannot be reached: after some seconds, then rarely.

/// Decides about the notices of one pool. A plain value without a clock; its owner runs the timers.
struct OutageNotice {
    /// How long calls wait without a connection before the first notice, in milliseconds.
    let firstAfterMilliseconds: UInt64
    /// The time to the second notice; it doubles with each further one.
    static let repeatAfterMilliseconds: UInt64 = 60_000
    static let repeatAfterMillisecondsMax: UInt64 = 600_000
    /// How long to wait for the reason of the outage if a notice is due and no attempt to connect has failed yet.
    private static let reasonAfterMilliseconds: UInt64 = 500

    /// A timer to start. Its `outage` goes back to `timerFired`, which ignores timers of earlier outages.
    struct Timer: Equatable {
        var outage: UInt64
        var afterMilliseconds: UInt64
    }

    private var outage: UInt64 = 0
    private var isWatching = false
    /// Notices of this outage so far.
    private var noticeCount = 0

    init(firstAfterMilliseconds: UInt64) { self.firstAfterMilliseconds = firstAfterMilliseconds }

    /// A call waits and nothing is connected.
    ///
    /// - Returns: a timer, if none runs.
    mutating func callWaits() -> Timer? {
        guard !isWatching else { return nil }
        isWatching = true
        outage += 1
        return Timer(outage: outage, afterMilliseconds: firstAfterMilliseconds)
    }

    /// A timer fired.
    ///
    /// - Parameters:
    ///   - isOutage: whether calls still wait and nothing is connected.
    ///   - isReasonKnown: whether an attempt to connect has failed.
    /// - Returns: whether to write a notice now, and the next timer.
    mutating func timerFired(_ timer: Timer, isOutage: Bool, isReasonKnown: Bool) -> (speaks: Bool, next: Timer?) {
        guard isWatching, timer.outage == outage else { return (false, nil) }
        guard isOutage else {
            isWatching = false
            return (false, nil)
        }
        guard isReasonKnown else {
            return (false, Timer(outage: outage, afterMilliseconds: Self.reasonAfterMilliseconds))
        }
        let wait = min(Self.repeatAfterMilliseconds << UInt64(min(noticeCount, 8)), Self.repeatAfterMillisecondsMax)
        noticeCount += 1
        return (true, Timer(outage: outage, afterMilliseconds: wait))
    }

    /// The server was reached.
    ///
    /// - Returns: whether there was a notice of the outage.
    mutating func connected() -> Bool {
        defer {
            isWatching = false
            noticeCount = 0
        }
        return noticeCount > 0
    }
}
