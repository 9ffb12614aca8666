// Work on a separate thread, for which its owner need not wait.

import Basics
import Storage

/// Work that may wait for a disk or a database for longer than its owner can. What it uses must not belong to anybody
/// who ends before it. Thread-safe.
final class DetachedWork<Output: Sendable>: Sendable {
    private let outcome = Monitor<Result<Output, any Error>?>(nil)

    /// - Throws: `inputOutput` if the system has no thread left.
    init(_ name: String, _ body: @escaping @Sendable () throws -> Output) throws(StorageError) {
        let outcome = outcome
        let thread = try SystemThread.start(name) {
            SystemThread.giveWay()
            let result = Result { try body() }
            outcome.update { $0 = result }
        }
        thread.detach()
    }

    /// Waits for the end of the work.
    /// - Returns: nil if it has not ended in time.
    func wait(milliseconds: UInt64) -> Result<Output, any Error>? {
        outcome.wait(untilNanoseconds: SystemClock.monotonicNanoseconds() + milliseconds * 1_000_000) { $0 }
    }
}

/// Hands a value to the one thread that uses it from then on.
struct HandedOver<Value>: @unchecked Sendable {  // The giver does not touch it again.
    let value: Value

    init(_ value: Value) { self.value = value }
}
