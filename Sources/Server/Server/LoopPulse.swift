internal import EventLoops
internal import Synchronization

/// Finds out whether all event loops still run. Thread-safe.
final class LoopPulse: Sendable {
    private let loops: [EventLoop]
    /// Loops that have not come to the work of the last beat yet.
    private let pending = Atomic(0)

    init(_ loops: [EventLoop]) { self.loops = loops }

    /// Gives each loop a piece of work, unless one has not done that of the beat before.
    ///
    /// - Returns: whether all loops have done the work of the beat before.
    func beat() -> Bool {
        guard pending.compareExchange(expected: 0, desired: loops.count, ordering: .relaxed).exchanged else {
            return false
        }
        for loop in loops {
            loop.execute { [self] in pending.subtract(1, ordering: .relaxed) }
        }
        return true
    }
}
