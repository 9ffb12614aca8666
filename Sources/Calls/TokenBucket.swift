// How often a client may do what costs us more than it.

/// Permissions that are used up and come back with time: `max` at once, `perSecond` in the long run. Pure data.
package struct TokenBucket {
    private let max: UInt64
    private let perSecond: UInt64
    private var left: UInt64
    /// Milliseconds up to which tokens have come back.
    private var filledAt: UInt64

    package init(max: UInt64, perSecond: UInt64, now: UInt64) {
        self.max = max
        self.perSecond = perSecond
        left = max
        filledAt = now
    }

    /// Brings back what time has earned; `now` is monotonic milliseconds.
    package mutating func fill(now: UInt64) {
        let earned = (now &- filledAt) &* perSecond / 1_000
        // Fractions of a token are kept.
        guard earned > 0 else { return }
        left = min(max, left &+ earned)
        filledAt = now
    }

    /// Uses one token; false when there is none.
    package mutating func take() -> Bool {
        guard left > 0 else { return false }
        left &-= 1
        return true
    }
}
