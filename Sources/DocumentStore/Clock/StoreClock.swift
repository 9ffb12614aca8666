// Wall time for versions, elapsed time for leases and expiry: injected, so that tests step it instead of sleeping.

internal import Glibc

/// The two times a store needs. Called from every thread.
package protocol StoreClock: Sendable {
    /// Microseconds since 1970 by the wall clock; may step either way.
    var nowMicroseconds: UInt64 { get }

    /// Milliseconds since some fixed moment; never steps back.
    var elapsedMilliseconds: UInt64 { get }
}

/// The machine's clocks.
package struct SystemClock: StoreClock {
    package init() {}

    package var nowMicroseconds: UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(clamping: time.tv_sec) * 1_000_000 + UInt64(clamping: time.tv_nsec / 1_000)
    }

    package var elapsedMilliseconds: UInt64 {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(clamping: time.tv_sec) * 1_000 + UInt64(clamping: time.tv_nsec / 1_000_000)
    }
}
