import Basics
package import Storage
import TestSupport

/// Keys of the engine in memory that reads must wait for from `hold` to `release`: those that contain a text.
/// Thread-safe.
package final class HeldColdKeys: ColdKeys {
    private struct State {
        var isHeld = false
        var waiting: [@Sendable (Result<Void, StorageError>) -> Void] = []
    }

    private let text: [UInt8]
    private let state = Monitor(State())

    package init(containing text: String) { self.text = Array(text.utf8) }

    package func hold() { state.withLock { $0.isHeld = true } }

    /// Has the keys be in memory, and ends the waits for them with `outcome`.
    package func release(_ outcome: Result<Void, StorageError> = .success(())) {
        let waiting = state.withLock { state in
            defer { state = State() }
            return state.waiting
        }
        for completion in waiting { completion(outcome) }
    }

    /// Whether a read waits.
    package var isReached: Bool { state.withLock { !$0.waiting.isEmpty } }

    /// Waits until a read waits.
    package func waitUntilReached() throws {
        try waitUntil("a read waits") { state.withLock { !$0.waiting.isEmpty } }
    }

    package func isPending(_ key: RawSpan) -> Bool {
        guard state.withLock({ $0.isHeld }) else { return false }
        return [UInt8](copying: key).contains(text)
    }

    package func makeReady(_ completion: @escaping @Sendable (Result<Void, StorageError>) -> Void) {
        let isHeld = state.withLock { state in
            if state.isHeld { state.waiting.append(completion) }
            return state.isHeld
        }
        if !isHeld { completion(.success(())) }
    }
}
