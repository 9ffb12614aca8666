internal import Basics
internal import Synchronization

/// Whether a store takes writes. One that refuses them makes no commits itself either. Thread-safe.
final class WriteStanding: Sendable {
    private let refuses: Atomic<Bool>
    private let error: Mutex<RequestError?>
    private let cutOff = Atomic<Bool>(false)

    /// - Parameter leader: whom the store follows; nil for one that takes writes.
    init(leader: String?) {
        refuses = Atomic(leader != nil)
        error = Mutex(
            leader.map {
                RequestError(.failedPrecondition, "This server is a replica and takes no writes; write to \($0).")
            })
    }

    /// Why writes are refused; nil if they are not.
    var refusal: RequestError? { refuses.load(ordering: .acquiring) ? error.withLock { $0 } : nil }

    var takesWrites: Bool { !refuses.load(ordering: .acquiring) }

    /// From now on writes are taken.
    func accept() { refuses.store(false, ordering: .releasing) }

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
