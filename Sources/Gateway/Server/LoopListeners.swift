internal import DocumentStore
internal import Listening
internal import Synchronization
internal import Transport

/// The listeners of one loop: a hub that the store wakes, and the timer of its heartbeats. Confined to the loop.
final class LoopListeners {
    let hub: ListenHub
    private let loop: EventLoop

    /// The hub, for work that other threads hand to the loop.
    private final class Reference {
        weak var hub: ListenHub?
    }

    init(_ store: DocumentStore, reader: StoreReader, on loop: EventLoop) {
        self.loop = loop
        let reference = Reference()
        let signal = WakeUp(loop, LoopBound(reference))
        hub = ListenHub(store, reader: reader) { signal.raise() }
        reference.hub = hub
        tickLater()
    }

    private func tickLater() {
        loop.schedule(afterMilliseconds: ListenHub.tickMilliseconds) { [weak self] in
            self?.hub.tick()
            self?.tickLater()
        }
    }

    /// Has the hub take changes. Signals that come before the loop has acted on one are one signal.
    private final class WakeUp: Sendable {
        private let loop: EventLoop
        private let reference: LoopBound<Reference>
        private let isRaised = Atomic<Bool>(false)

        init(_ loop: EventLoop, _ reference: LoopBound<Reference>) {
            self.loop = loop
            self.reference = reference
        }

        /// May be called on any thread.
        func raise() {
            guard !isRaised.exchange(true, ordering: .acquiringAndReleasing) else { return }
            loop.execute { [self] in
                isRaised.store(false, ordering: .releasing)
                reference.value.hub?.advance()
            }
        }
    }
}
