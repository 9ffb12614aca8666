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

    /// Returns when the gate is open; after twice the longest wait of a test, which has failed by then and may not have
    /// opened it.
    package func pass() {
        if state.withLock({ $0.isOpen }) { return }
        state.withLock { $0.waiting += 1 }
        var patience = Patience(seconds: 2 * waitSecondsMax)
        while patience.lasts {
            let pause = SystemClock.monotonicMilliseconds() + 10
            if state.wait(untilNanoseconds: pause * 1_000_000, { $0.isOpen ? () : nil }) != nil { break }
        }
        state.withLock { $0.waiting -= 1 }
    }

    package func close() { state.withLock { $0.isOpen = false } }
    package func open() { state.update { $0.isOpen = true } }

    /// Waits until a thread waits at the closed gate.
    package func waitUntilReached() throws {
        try waitUntil("a thread reaches the gate") { state.withLock { $0.waiting > 0 } }
    }

    /// The same without blocking the thread, so that other tasks run.
    package func reached() async throws {
        try await eventually("a thread reaches the gate") { state.withLock { $0.waiting > 0 } }
    }
}
