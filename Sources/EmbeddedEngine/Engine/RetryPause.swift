internal import Basics
internal import Storage

/// When to try again what failed: soon on a full disk, as a look at it costs little; after other errors later with each
/// failure, because a checkpoint may write much before it fails.
struct RetryPause {
    private let shortestNanoseconds: UInt64
    private var failures = 0
    /// The next attempt is not made before (monotonic clock).
    private(set) var endNanoseconds: UInt64 = 0

    private static let doublingsMax = 5

    init(_ options: EngineOptions) { shortestNanoseconds = options.retryMicroseconds * 1000 }

    var isPausing: Bool { SystemClock.monotonicNanoseconds() < endNanoseconds }

    mutating func noteFailure(_ error: StorageError) {
        let pause = shortestNanoseconds << UInt64(min(failures, Self.doublingsMax))
        failures = error.code == .full ? 0 : failures + 1
        endNanoseconds = SystemClock.monotonicNanoseconds() + pause
    }

    mutating func noteSuccess() { failures = 0 }
}
