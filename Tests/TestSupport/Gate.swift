internal import Basics

/// Stops threads at a place in the code under test until the test opens it. Thread-safe.
package final class Gate: Sendable {
    private struct State {
        var isOpen: Bool
        var waiting = 0
    }

    private let state: Monitor<State>

    package init(isOpen: Bool) {
        state = Monitor(State(isOpen: isOpen))
    }

    /// Returns when the gate is open, at the latest after ``waitSecondsMax``: the test fails by itself then.
    package func pass() {
        if state.withLock({ $0.isOpen }) { return }
        state.withLock { $0.waiting += 1 }
        let limit = SystemClock.monotonicMilliseconds() + UInt64(waitSecondsMax) * 1_000
        _ = state.wait(untilNanoseconds: limit * 1_000_000) { $0.isOpen ? () : nil }
        state.withLock { $0.waiting -= 1 }
    }

    package func close() { state.withLock { $0.isOpen = false } }
    package func open() { state.update { $0.isOpen = true } }

    /// Waits until a thread waits at the closed gate.
    package func waitUntilReached() throws {
        try waitUntil("a thread reaches the gate") { state.withLock { $0.waiting > 0 } }
    }
}
