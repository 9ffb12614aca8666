import Calls
import EventLoops
import FirebaseCore
import FirestoreService

/// The Firestore service of an open store on one event loop. Made on any thread, then for the loop's thread.
final class LocalService: ServiceHandler, @unchecked Sendable {
    // Unchecked: after `init` only the loop's thread uses it.

    private let store: SharedStore
    private let loop: EventLoop
    /// Made by the first call.
    private var service: FirestoreService?

    init(of store: SharedStore, on loop: EventLoop) {
        self.store = store
        self.loop = loop
    }

    func begin(_ call: Call, payload: RawSpan) {
        if let service { return service.begin(call, payload) }
        let made = FirestoreService(store: store.store, log: Self.log)
        service = made
        loop.beforeEachWait { [weak made] in made?.loopWillWait() }
        made.begin(call, payload)
    }

    func abandoned(_ reason: CancellationReason) { service?.counters.callsAbandoned.add() }

    /// Ends the service: the store may be closed when all loops have done this.
    func close() { service = nil }

    /// Failures of the store itself; other errors reach the caller.
    private static let log = Log(level: .error) { line in
        FirebaseLog.write(.error, String(line.dropLast()))
    }
}
