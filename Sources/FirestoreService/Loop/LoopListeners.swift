internal import Basics
internal import Calls
internal import DocumentStore
internal import Listening

/// The listeners of one loop: a hub that the store wakes, and the timer of its heartbeats. Confined to the loop.
final class LoopListeners {
    let hub: ListenHub
    private let loop: any LoopThread

    /// The hub, for work that other threads hand to the loop.
    private final class Reference {
        weak var hub: ListenHub?
    }

    init(_ store: DocumentStore, reader: StoreReader, on loop: any LoopThread) {
        self.loop = loop
        let reference = Reference()
        let bound = LoopBound(reference)
        let signal = LoopSignal(on: loop) { bound.value.hub?.advance() }
        hub = ListenHub(store, reader: reader) { signal.raise() }
        reference.hub = hub
        tickLater()
    }

    private func tickLater() {
        loop.execute(afterMilliseconds: ListenHub.tickMilliseconds) { [weak self] in
            self?.hub.tick()
            self?.tickLater()
        }
    }
}
