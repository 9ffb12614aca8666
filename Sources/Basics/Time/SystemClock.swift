internal import Glibc

/// The machine's two clocks. Thread-safe.
package struct SystemClock: Sendable {
    package init() {}

    /// Wall time (`CLOCK_REALTIME`) in microseconds since 1970. It may step either way.
    package static func microseconds() -> UInt64 { UInt64(clamping: wallNanoseconds() / 1_000) }

    /// Wall time (`CLOCK_REALTIME`) in nanoseconds since 1970. It may step either way.
    package static func wallNanoseconds() -> Int64 { read(CLOCK_REALTIME) }

    /// Elapsed time (`CLOCK_MONOTONIC`) in nanoseconds since a fixed moment. It never steps back.
    package static func monotonicNanoseconds() -> UInt64 { UInt64(clamping: read(CLOCK_MONOTONIC)) }

    /// Elapsed time (`CLOCK_MONOTONIC`) in milliseconds since a fixed moment. It never steps back.
    package static func monotonicMilliseconds() -> UInt64 { monotonicNanoseconds() / 1_000_000 }

    private static func read(_ clock: clockid_t) -> Int64 {
        #if HEARTH_YIELD_POINTS
            if let scheduler = SchedulerOfThread.current { return Int64(scheduler.nowNanoseconds) }
        #endif
        var now = timespec()
        unsafe clock_gettime(clock, &now)
        return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
    }
}
