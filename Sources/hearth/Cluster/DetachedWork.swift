// Work on a separate thread, for which its owner need not wait.

import Basics
import Storage
import Synchronization

/// Work that may wait for a disk or a database for longer than its owner can. What it uses must not belong to anybody
/// who ends before it. Thread-safe.
final class DetachedWork<Output: Sendable>: Sendable {
    /// How far the work is.
    let pulse = WorkPulse()
    private let outcome = Monitor<Result<Output, any Error>?>(nil)

    /// - Parameter body: notes each piece that it has done.
    /// - Throws: `inputOutput` if the system has no thread left.
    init(_ name: String, _ body: @escaping @Sendable (WorkPulse) throws -> Output) throws(StorageError) {
        let (outcome, pulse) = (outcome, pulse)
        let thread = try SystemThread.start(name) {
            SystemThread.giveWay()
            let result = Result { try body(pulse) }
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

/// When work has done its last piece, and whether it is still wanted. Thread-safe.
final class WorkPulse: Sendable {
    private let last = Atomic(SystemClock.monotonicMilliseconds())
    private let isGivenUp = Atomic(false)

    /// A piece is done.
    /// - Returns: whether the work is to continue.
    func beat() -> Bool {
        last.store(SystemClock.monotonicMilliseconds(), ordering: .relaxed)
        return !isGivenUp.load(ordering: .sequentiallyConsistent)
    }

    /// Nobody waits for the work any more.
    func giveUp() { isGivenUp.store(true, ordering: .sequentiallyConsistent) }

    /// Since the last piece.
    var silenceMilliseconds: UInt64 {
        let (now, last) = (SystemClock.monotonicMilliseconds(), last.load(ordering: .relaxed))
        return now > last ? now - last : 0
    }
}

/// Hands a value to the one thread that uses it from then on.
struct HandedOver<Value>: @unchecked Sendable {  // The giver does not touch it again.
    let value: Value

    init(_ value: Value) { self.value = value }
}
