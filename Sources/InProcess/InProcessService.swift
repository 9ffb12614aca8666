import Calls
import EventLoops
import FirestoreService
import HearthClient

/// The Firestore service of an open store on one event loop. Made on any thread, then for the loop's thread.
final class InProcessService: StoreService, @unchecked Sendable {
    // Unchecked: after `init` only the loop's thread uses it.

    private let store: SharedStore
    private let loop: EventLoop
    private let log: Log
    /// Made by the first call.
    private var service: FirestoreService?

    /// - Parameter log: takes failures of the store itself; other errors reach the caller.
    init(of store: SharedStore, on loop: EventLoop, log: ClientLog?) {
        self.store = store
        self.loop = loop
        self.log = Log(level: .error) { line in log?(.error) { String(line.dropLast()) } }
    }

    func begin(_ call: Call, payload: RawSpan) {
        if let service { return service.begin(call, payload) }
        let made = FirestoreService(store: store.store, log: log)
        service = made
        loop.beforeEachWait { [weak made] in made?.loopWillWait() }
        made.begin(call, payload)
    }

    func abandoned(_ reason: CancellationReason) { service?.counters.callsAbandoned.add() }

    /// Ends the service: the store may be closed when all loops have done this.
    func close() { service = nil }
}
