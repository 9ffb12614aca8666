// Waits for what other threads or processes do: every wait has a bound and fails with a message.
//
// A bound in seconds alone is one of the machine: under load a test may get a look at its condition only every few
// seconds, and fails although all is well. So a wait also lasts for a number of looks, each after a pause: time that
// the test itself has had. Both bounds are generous, since only a failure reaches them.

internal import Basics
import Dispatch

/// A wait took longer than ``waitSecondsMax``, and than its looks; says what was waited for.
package struct WaitedTooLong: Error, CustomStringConvertible {
    package let description: String

    package init(_ what: String) {
        description = "waited more than \(waitSecondsMax) seconds in vain until \(what)"
    }
}

/// A wait lasts at least so long.
package let waitSecondsMax = 300

/// How long a wait lasts.
package struct Patience {
    private let end: ContinuousClock.Instant
    private var looks = 0
    private var lookBegan = ContinuousClock.now
    private var lookEnded = ContinuousClock.now

    /// Some seconds in the shortest pauses if nothing else runs.
    private static let looksMin = 3_000

    package init(seconds: Int = waitSecondsMax) { end = .now + .seconds(seconds) }

    /// To be called before each look.
    package mutating func beginLook() { lookBegan = .now }

    /// Whether to look again. To be asked after each look.
    package var lasts: Bool {
        mutating get {
            looks += 1
            lookEnded = .now
            return looks < Self.looksMin || lookEnded < end
        }
    }

    /// The pause before the next look, in microseconds.
    ///
    /// It is a millisecond, and six times as long as the look if that took longer: a look that starts a process, or
    /// asks a server for all of its metrics, leaves the processor to those that are waited for.
    package var pauseMicroseconds: UInt32 {
        // A simulation has its own time, and the same pauses each time.
        if SchedulerOfThread.current != nil { return 1_000 }
        let look: Duration = lookBegan.duration(to: lookEnded)
        let pause: Duration = max(.milliseconds(1), min(look * 6, .milliseconds(500)))
        return UInt32(pause / .microseconds(1))
    }
}

/// Asks again and again until `condition` holds.
///
/// - Parameter what: the condition in words, read after "until". It is evaluated when the wait has failed, so that it
///   can have what a log contains then.
/// - Throws: ``WaitedTooLong``, or what `condition` throws.
package func waitUntil(_ what: @autoclosure () -> String, _ condition: () throws -> Bool) throws {
    var patience = Patience()
    while true {
        patience.beginLook()
        if try condition() { return }
        guard patience.lasts else { throw WaitedTooLong(what()) }
        // A millisecond or more.
        SystemThread.sleep(microseconds: patience.pauseMicroseconds)
    }
}

/// The same as ``waitUntil(_:_:)`` without blocking the thread, so that other tasks run.
package func eventually(
    _ what: @autoclosure () -> String, isolation: isolated (any Actor)? = #isolation,
    _ condition: () async throws -> Bool
) async throws {
    var patience = Patience()
    while true {
        patience.beginLook()
        if try await condition() { return }
        guard patience.lasts else { throw WaitedTooLong(what()) }
        // A millisecond or more.
        try await pause(microseconds: patience.pauseMicroseconds)
    }
}

/// Waits for so long without blocking the thread.
///
/// In a simulation the time is that of the simulation. The timer of `Task.sleep` is outside, and ends no wait of it.
package func pause(microseconds: UInt32, isolation: isolated (any Actor)? = #isolation) async throws {
    guard SchedulerOfThread.current != nil else {
        // As long as the caller says.
        return try await Task.sleep(for: .microseconds(microseconds))
    }
    SystemThread.sleep(microseconds: microseconds)
    await Task.yield()
}

extension DispatchSemaphore {
    /// Waits for a signal.
    ///
    /// - Parameter what: what the signal says, read after "until".
    /// - Throws: ``WaitedTooLong``.
    package func wait(until what: String) throws {
        var patience = Patience()
        while wait(timeout: .now() + .milliseconds(10)) == .timedOut {
            guard patience.lasts else { throw WaitedTooLong(what) }
        }
    }
}
