// Wall time for versions, elapsed time for turns and expiry: injected, so that tests step it instead of sleeping.

package import Basics

/// The two times a store needs. Called from every thread.
package protocol StoreClock: Sendable {
    /// Microseconds since 1970 by the wall clock; may step either way.
    var nowMicroseconds: UInt64 { get }

    /// Milliseconds since some fixed moment; never steps back.
    var elapsedMilliseconds: UInt64 { get }
}

extension SystemClock: StoreClock {
    package var nowMicroseconds: UInt64 { Self.microseconds() }
    package var elapsedMilliseconds: UInt64 { Self.monotonicMilliseconds() }
}
