internal import Basics
internal import Calls
internal import DocumentStore
internal import Listening

/// The listeners of one loop: a hub that the store wakes, and the timer of its heartbeats. Confined to the loop.
final class LoopListeners {
    let hub: ListenHub
    private let loop: any LoopThread
    private let counters: ServiceCounters
    /// What these listeners are counted with. Those of other stores are counted too.
    private var noted: UInt64 = 0

    /// The hub, for work that other threads hand to the loop.
    private final class Reference {
        weak var hub: ListenHub?
    }

    init(
        _ store: DocumentStore, limits: ListenLimits, reader: StoreReader, counters: ServiceCounters,
        on loop: any LoopThread
    ) {
        self.loop = loop
        self.counters = counters
        let reference = Reference()
        let bound = LoopBound(reference)
        let signal = LoopSignal(on: loop) { bound.value.hub?.advance() }
        hub = ListenHub(store, limits: limits, reader: reader) { signal.raise() }
        reference.hub = hub
        tickLater()
    }

    /// Shows what the listeners hold.
    func noteMemory() {
        note(UInt64(max(0, hub.heldBytes)))
    }

    /// They are over.
    func end() { note(0) }

    private func note(_ bytes: UInt64) {
        counters.listenerBytes.add(bytes &- noted)
        noted = bytes
    }

    private func tickLater() {
        loop.execute(afterMilliseconds: ListenHub.tickMilliseconds) { [weak self] in
            self?.hub.tick()
            self?.noteMemory()
            self?.tickLater()
        }
    }
}
