/// A thread that does something again and again, with a pause before each time. Thread-safe.
package final class PacedThread: Sendable {
    private let isStopping = Monitor(false)
    private let thread = Monitor<SystemThread?>(nil)

    package init() {}

    /// Starts the thread. Call it once.
    ///
    /// - Parameters:
    ///   - milliseconds: the length of a pause.
    ///   - body: called once, on the thread. `pause` waits, and returns false when the thread is to end.
    package func start(
        name: String, everyMilliseconds milliseconds: UInt64, _ body: @escaping (_ pause: () -> Bool) -> Void
    ) throws(SystemThread.StartFailure) {
        let started = try SystemThread(name: name) { [isStopping] in
            body {
                let deadline = SystemClock.monotonicNanoseconds() + milliseconds * 1_000_000
                return isStopping.wait(untilNanoseconds: deadline) { $0 ? false : nil } ?? true
            }
        }
        thread.update { $0 = started }
    }

    /// Ends the thread, and waits for what is under way. One that was not started, or has ended, stays so.
    package func stop() {
        isStopping.update { $0 = true }
        thread.withLock { $0.take() }?.join()
    }
}
