// Whether the server takes work: the reply of /readyz to load balancers.

internal import DocumentStore
internal import Storage
internal import Synchronization

final class Readiness: Sendable {
    private let stores: [ServedStore]
    private let isDraining = Atomic(false)

    init(_ stores: [ServedStore]) {
        self.stores = stores
    }

    /// From now on the server only finishes what it has.
    func drain() { isDraining.store(true, ordering: .relaxed) }

    /// Why new work should go elsewhere; nil when it should not.
    var notReadyReason: String? {
        if isDraining.load(ordering: .relaxed) { return "the server is draining" }
        // A store whose database is away is so at every server: the others are served here as well as anywhere.
        let isCutOff = stores.map(\.isCutOff)
        let isAnyReached = isCutOff.contains(false)
        for (store, isCutOff) in zip(stores, isCutOff) {
            if isCutOff, isAnyReached { continue }
            guard let reason = Self.reason(of: store) else { continue }
            return stores.count == 1 ? reason : "\(store.name): \(reason)"
        }
        return nil
    }

    private static func reason(of served: ServedStore) -> String? {
        guard served.isOpen else {
            return served.isCutOff
                ? "the database of the store \(served.name) cannot be reached"
                : "the store \(served.name) is being opened again"
        }
        let store = served.store
        let engine = store.statistics.engine
        if engine.hasFailed {
            return "the log cannot be written or data is damaged; commits are refused until a restart"
        }
        if let shortage = engine.shortage {
            return "the disk is full; commits other than deletes are refused: \(shortage.message)"
        }
        if let refusal = engine.refusal {
            return "files cannot be written; commits are refused until that succeeds: \(refusal.message)"
        }
        let lagSeconds = store.lagMicroseconds / 1_000_000
        if lagSeconds > lagSecondsMax { return "the state of the replica is \(lagSeconds) seconds old" }
        return nil
    }

    /// Age of a replica's state from which on reads should go elsewhere.
    private static let lagSecondsMax: UInt64 = 30
}
