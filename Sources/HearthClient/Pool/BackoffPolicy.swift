// How long to wait before a retry: exponential growth with jitter, as a pure function.

internal import Basics

/// Exponential backoff with jitter.
///
/// The wait before try `n` (counted from 0) is `initial * multiplier^n`, at most `maximum`, spread evenly over
/// `1 - jitter ... 1 + jitter` of itself so that clients that failed together do not return together.
struct BackoffPolicy: Sendable, Equatable {
    /// The wait before the first retry, in nanoseconds.
    var initialNanoseconds: UInt64
    /// The growth per retry, at least 1.
    var multiplier: Double
    /// The longest wait before jitter, in nanoseconds.
    var nanosecondsMax: UInt64
    /// The jitter as a fraction of the wait, 0 ... 1.
    var jitter: Double

    init(initial: Duration, multiplier: Double, maximum: Duration, jitter: Double) {
        initialNanoseconds = initial.nanoseconds
        self.multiplier = multiplier
        nanosecondsMax = maximum.nanoseconds
        self.jitter = jitter
    }

    /// Reconnecting, and calls that the server could not accept: short waits first, at most 5 s.
    static let reconnect = BackoffPolicy(
        initial: .milliseconds(20), multiplier: 1.6, maximum: .seconds(5), jitter: 0.3)

    /// Transactions after errors other than a conflict: the SDK's 1 s x 1.5 up to 60 s, with 50 % jitter.
    static let transaction = BackoffPolicy(
        initial: .seconds(1), multiplier: 1.5, maximum: .seconds(60), jitter: 0.5)

    /// Transactions after a conflict. Short, because the server queues a retried attempt ahead of new ones.
    static let contention = BackoffPolicy(
        initial: .milliseconds(10), multiplier: 2, maximum: .seconds(2), jitter: 0.5)

    /// Transactions that have not reached the server: all attempts of the standard number end within a second.
    static let outage = BackoffPolicy(
        initial: .milliseconds(40), multiplier: 2, maximum: .milliseconds(160), jitter: 0.5)

    /// The wait before retry `attempt`, in nanoseconds.
    ///
    /// - Parameters:
    ///   - attempt: the number of earlier retries; a negative number counts as 0.
    ///   - unit: a random number in `0 ..< 1`, which selects the jitter.
    func delayNanoseconds(attempt: Int, unit: Double) -> UInt64 {
        var delay = Double(initialNanoseconds)
        let maximum = Double(nanosecondsMax)
        for _ in 0..<max(0, attempt) where delay < maximum { delay *= multiplier }
        return UInt64(min(delay, maximum) * (1 - jitter + 2 * jitter * unit))
    }
}

extension Duration {
    /// The duration in whole nanoseconds; negative ones count as 0, longer ones than 584 years as that.
    var nanoseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        let (whole, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, carry) = whole.addingReportingOverflow(UInt64(attoseconds / 1_000_000_000))
        return overflow || carry ? .max : sum
    }
}

/// A seedable generator for jitter; not for secrets.
struct JitterGenerator: Sendable {
    private var random: SplitMix64

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    /// The next number in `0 ..< 1`.
    mutating func nextUnit() -> Double { Double(random.next() >> 11) * 0x1p-53 }
}
