// How the cancellation of a task reaches the work that the task waits for.

import Synchronization

/// Joins work with the cancellation of the task that waits for it, whichever comes first. Thread-safe.
package final class Cancellation: Sendable {
    private struct State {
        var isCancelled = false
        var actions: [@Sendable () -> Void] = []
    }
    private let state = Mutex(State())

    package init() {}

    package var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Adds what cancels a part of the work; runs it now if the task is cancelled already. It has no effect when this
    /// part has ended: an action may be added after the next part has added its own.
    package func onCancel(_ action: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            if !state.isCancelled { state.actions.append(action) }
            return state.isCancelled
        }
        if isCancelled { action() }
    }

    package func cancel() {
        let actions = state.withLock { state in
            state.isCancelled = true
            defer { state.actions = [] }
            return state.actions
        }
        for action in actions { action() }
    }
}

/// Waits for work that reports its end once, and cancels it when the waiting task is cancelled.
///
/// - Parameter start: begins the work. It must report its end, also after it was cancelled.
nonisolated(nonsending) package func waiting<Value: Sendable>(
    _ start: (Cancellation, @escaping @Sendable (Value) -> Void) -> Void
) async -> Value {
    let cancellation = Cancellation()
    return await withTaskCancellationHandler {
        await withUnsafeContinuation { (continuation: UnsafeContinuation<Value, Never>) in
            start(cancellation) { continuation.resume(returning: $0) }
        }
    } onCancel: {
        cancellation.cancel()
    }
}
