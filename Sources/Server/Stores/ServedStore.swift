// A store that a server serves. It can be closed and opened again while the server runs.
//
//     close   each loop refuses calls for the store, and ends its streams ──► the store is closed
//             ──► no reader is in use ──► the directory is free
//     open    each loop makes services for the new store ──► calls are taken
//
// Calls of other stores notice nothing. A call that is under way ends with what the closed store answers: UNAVAILABLE,
// or ABORTED for a transaction.

internal import Basics
internal import Dispatch
package import DocumentStore
internal import EventLoops
internal import FirestoreService
internal import Synchronization

/// Something still reads a store that was closed, so that its directory cannot be opened again.
package struct StoreInUse: Error, CustomStringConvertible {
    let name: String

    package var description: String { "the store \(name) was closed and is still being read" }
}

/// One store of a server, whichever is open at the time. Thread-safe; ``close()`` and ``open(_:leader:)`` are for one
/// thread, which is not that of a loop, while the loops run.
package final class ServedStore: Sendable {
    private struct Place {
        let loop: EventLoop
        let store: LoopBound<LoopStore>
    }

    private struct State {
        var store: DocumentStore
        var leader: KnownLeader?
        var places: [Place] = []
    }

    package let name: String
    private let state: Mutex<State>
    private let isServing: Atomic<Bool>

    /// How long readers may still use a store that was closed, in milliseconds.
    private static let readersMilliseconds: UInt64 = 10_000

    init(name: String, _ store: DocumentStore, leader: KnownLeader?) {
        self.name = name
        state = Mutex(State(store: store, leader: leader))
        isServing = Atomic(true)
    }

    /// A store that cannot be opened yet: ``open(_:leader:)`` does so. Calls for it are refused until then.
    init(away name: String, _ configuration: StoreConfiguration, leader: KnownLeader?) throws {
        self.name = name
        state = Mutex(State(store: try .closed(for: configuration), leader: leader))
        isServing = Atomic(false)
    }

    /// The store that is open, or was open last: a closed one refuses what it is asked for.
    package var store: DocumentStore { state.withLock { $0.store } }

    /// Who takes the writes of the store; nil if this server always does.
    var leader: KnownLeader? { state.withLock { $0.leader } }

    /// False from the beginning of ``close()`` to the end of ``open(_:leader:)``.
    package var isOpen: Bool { isServing.load(ordering: .acquiring) }

    /// Whether the log of the store lies in a database that cannot be reached.
    package var isCutOff: Bool { store.isCutOff }

    /// A loop has services for the store. Before the server accepts connections.
    func attach(_ store: LoopStore, on loop: EventLoop) {
        let place = Place(loop: loop, store: LoopBound(store))
        state.withLock { $0.places.append(place) }
    }

    /// Lets go of the loops' services, which hold this store. The loops have ended.
    func detach() { state.withLock { $0.places = [] } }

    /// Closes the store: calls for it are refused, and those under way end. Blocks.
    ///
    /// - Throws: if something reads it for so long that its directory cannot be opened again yet.
    package func close() throws(StoreInUse) {
        isServing.store(false, ordering: .releasing)
        onLoops { $0.retire() }
        let store = store
        store.close()
        let end = SystemClock.monotonicMilliseconds() + Self.readersMilliseconds
        while true {
            // What reads of the last turn have shared. A closed store has no further ones.
            onLoops { $0.releaseSnapshots() }
            if store.releaseDirectory() { return }
            guard SystemClock.monotonicMilliseconds() < end else { throw StoreInUse(name: name) }
            SystemThread.sleep(microseconds: 5_000)
        }
    }

    /// Serves a store in place of the one that was closed. Blocks.
    ///
    /// - Parameter leader: who takes the writes; nil if this server always does.
    package func open(_ store: DocumentStore, leader: KnownLeader?) {
        state.withLock { state in
            state.store = store
            state.leader = leader
        }
        onLoops { $0.renew() }
        isServing.store(true, ordering: .releasing)
    }

    /// Has each loop do something, and waits for all of them.
    private func onLoops(_ body: @escaping @Sendable (LoopStore) -> Void) {
        let places = state.withLock { $0.places }
        let done = DispatchSemaphore(value: 0)
        for place in places {
            place.loop.execute {
                body(place.store.value)
                done.signal()
            }
        }
        for _ in places { done.wait() }
    }
}
