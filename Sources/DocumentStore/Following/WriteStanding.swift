internal import Basics
internal import Synchronization

/// Whether a store takes writes. One that refuses them makes no commits itself either. Thread-safe.
final class WriteStanding: Sendable {
    private let refuses: Atomic<Bool>
    private let error: Mutex<RequestError?>
    private let cutOff = Atomic<Bool>(false)
    /// A store that took writes has state that it has decided itself, until it is closed.
    private let hasLed: Atomic<Bool>
    private let holdsLease: (@Sendable () -> Bool)?

    /// - Parameters:
    ///   - leader: whom the store follows; nil for one that takes writes.
    ///   - holdsLease: see ``StoreConfiguration/holdsLease``.
    init(leader: String?, holdsLease: (@Sendable () -> Bool)?) {
        refuses = Atomic(leader != nil)
        hasLed = Atomic(leader == nil)
        self.holdsLease = holdsLease
        error = Mutex(
            leader.map {
                RequestError(.failedPrecondition, "This server is a replica and takes no writes; write to \($0).")
            })
    }

    /// Why writes are refused; nil if they are not.
    var refusal: RequestError? { refuses.load(ordering: .acquiring) ? error.withLock { $0 } : nil }

    var takesWrites: Bool { !refuses.load(ordering: .acquiring) }

    /// Why nothing may be said that rests on the newest state alone; nil if it may. To be asked after the state was
    /// chosen: then no other server had acknowledged anything before.
    ///
    /// A server that was replaced does not get the commits of its successor before the store is opened again. So it is
    /// not one that follows, whatever it knows of its successor.
    var leaseRefusal: RequestError? {
        guard let holdsLease, hasLed.load(ordering: .acquiring), !holdsLease() else { return nil }
        return RequestError(.unavailable, "This server does not know whether it still leads; try again.")
    }

    /// From now on writes are taken.
    func accept() {
        hasLed.store(true, ordering: .releasing)
        refuses.store(false, ordering: .releasing)
    }

    /// Whether commits cannot become durable for now: further ones are refused before they are queued.
    var isCutOff: Bool {
        get { cutOff.load(ordering: .relaxed) }
        set { cutOff.store(newValue, ordering: .relaxed) }
    }

    /// From now on writes are refused.
    func refuse(_ refusal: RequestError) {
        error.withLock { $0 = refusal }
        refuses.store(true, ordering: .releasing)
    }
}
