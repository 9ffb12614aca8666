internal import Synchronization

/// Tells the source of one call, from any thread, that it may have something to send again.
///
/// Signals that come before the loop has acted on one are one signal: a producer that is faster than the client costs
/// the loop one wake-up a round, not one for each event. The order is safe for a producer that first makes its
/// message visible to the source and then raises the signal.
package final class CallSignal: Sendable {
    private let call: Call
    /// The loop has been asked and has not come to it yet.
    private let isRaised = Atomic<Bool>(false)

    init(_ call: Call) { self.call = call }

    /// Has the source asked, on the call's loop. Harmless when the call is over.
    package func raise() {
        guard !isRaised.exchange(true, ordering: .acquiringAndReleasing) else { return }
        call.loop.execute { [self] in
            isRaised.store(false, ordering: .releasing)
            call.resume()
        }
    }
}
