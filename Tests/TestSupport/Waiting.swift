// Waits for what other threads or processes do: every wait has a bound and fails with a message.

import Dispatch
import Glibc

/// A wait took longer than ``waitSecondsMax``; says what was waited for.
package struct WaitedTooLong: Error, CustomStringConvertible {
    package let description: String

    package init(_ what: String) {
        description = "waited \(waitSecondsMax) seconds in vain until \(what)"
    }
}

/// Only a bug can make a wait of a test take longer, even on a busy machine.
package let waitSecondsMax = 60

private let pauseMicroseconds: UInt32 = 1_000

/// Asks again and again until `condition` holds.
///
/// - Parameter what: the condition in words, read after "until".
/// - Throws: ``WaitedTooLong``, or what `condition` throws.
package func waitUntil(_ what: String, _ condition: () throws -> Bool) throws {
    let end = ContinuousClock.now + .seconds(waitSecondsMax)
    while try !condition() {
        if ContinuousClock.now > end { throw WaitedTooLong(what) }
        // A millisecond.
        usleep(pauseMicroseconds)
    }
}

/// The same as ``waitUntil(_:_:)`` without blocking the thread, so that other tasks run.
package func eventually(
    _ what: String, isolation: isolated (any Actor)? = #isolation, _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + .seconds(waitSecondsMax)
    while try await !condition() {
        if ContinuousClock.now > end { throw WaitedTooLong(what) }
        // A millisecond.
        try await Task.sleep(for: .microseconds(pauseMicroseconds))
    }
}

extension DispatchSemaphore {
    /// Waits for a signal.
    ///
    /// - Parameter what: what the signal says, read after "until".
    /// - Throws: ``WaitedTooLong``.
    package func wait(until what: String) throws {
        if wait(timeout: .now() + .seconds(waitSecondsMax)) == .timedOut { throw WaitedTooLong(what) }
    }
}
