// How often a client may do what costs us more than it.

/// Permissions that are used up and come back with time: `max` at once, `perSecond` in the long run. What is known to
/// cost several only afterwards is spent on credit. Pure data.
package struct TokenBucket: Sendable {
    /// In thousandths of a token, as `left` is: a millisecond earns `perSecond` of them.
    private let max: UInt64
    private let perSecond: UInt64
    private var left: UInt64
    /// What has been spent beyond all tokens; it is paid before a token comes back.
    private var debt: UInt64 = 0
    /// Milliseconds up to which tokens have come back.
    private var filledAt: UInt64

    private static let token: UInt64 = 1_000
    /// The longest time for which tokens come back at once; every bucket is full then.
    private static let pauseMax: UInt64 = 1 << 31
    /// Seconds that a debt takes to be paid, at most.
    private static let debtSecondsMax: UInt64 = 60

    /// - Parameters:
    ///   - max: at most 2^32, and `perSecond` too.
    ///   - now: monotonic milliseconds.
    package init(max: UInt64, perSecond: UInt64, now: UInt64) {
        self.max = Swift.min(max, 1 << 32) * Self.token
        self.perSecond = Swift.min(perSecond, 1 << 32)
        left = self.max
        filledAt = now
    }

    /// Brings back what time has earned; `now` is monotonic milliseconds.
    package mutating func fill(now: UInt64) {
        guard now > filledAt else { return }
        let earned = Swift.min(now - filledAt, Self.pauseMax) * perSecond
        let paid = Swift.min(debt, earned)
        debt -= paid
        left = Swift.min(max, left + earned - paid)
        filledAt = now
    }

    /// Uses one token; false when there is none.
    package mutating func take() -> Bool {
        guard left >= Self.token else { return false }
        left -= Self.token
        return true
    }

    /// Uses so many tokens, also if there are fewer. What is missing delays the next ones, by a minute at most.
    package mutating func spend(_ count: Int) {
        let cost = Swift.min(UInt64(clamping: count), 1 << 32) * Self.token
        let paid = Swift.min(cost, left)
        left -= paid
        debt = Swift.min(debt + cost - paid, Self.debtSecondsMax * Self.token * perSecond)
    }

    /// Milliseconds until there is a token again; 0 if there is one, `UInt64.max` if none comes back.
    package var waitMilliseconds: UInt64 {
        if left >= Self.token { return 0 }
        return perSecond == 0 ? .max : (debt + Self.token - left + perSecond - 1) / perSecond
    }
}
