package import Basics
internal import Synchronization

/// Makes a loop do one piece of work when any thread raises the signal, for example ask the source of a call again.
///
/// Signals that are raised before the loop has acted on one count as one. A producer that is faster than the loop costs
/// one wake-up a turn, not one for each event. A producer first makes its event visible to the work, then raises the
/// signal.
package final class LoopSignal: Sendable {
    private let loop: any LoopThread
    private let work: @Sendable () -> Void
    /// The work is queued on the loop.
    private let isRaised = Atomic<Bool>(false)

    /// - Parameter work: called on the loop's thread.
    package init(on loop: any LoopThread, _ work: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.work = work
    }

    /// Queues the work on the loop. May be called on any thread.
    package func raise() {
        guard !isRaised.exchange(true, ordering: .acquiringAndReleasing) else { return }
        loop.execute { [self] in
            isRaised.store(false, ordering: .releasing)
            work()
        }
    }
}
