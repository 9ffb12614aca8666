// The machine's clocks.

internal import Glibc

enum SystemClock {
    /// Wall time in microseconds since 1970. May step either way.
    static func microseconds() -> UInt64 {
        let now = read(CLOCK_REALTIME)
        return UInt64(now.tv_sec) * 1_000_000 + UInt64(now.tv_nsec) / 1_000
    }

    /// Nanoseconds since some start, never backwards.
    static func monotonicNanoseconds() -> UInt64 {
        let now = read(CLOCK_MONOTONIC)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }

    private static func read(_ clock: clockid_t) -> timespec {
        var now = timespec()
        unsafe clock_gettime(clock, &now)
        return now
    }
}
