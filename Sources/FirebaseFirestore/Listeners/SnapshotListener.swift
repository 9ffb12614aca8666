import Basics
import DocumentModel
import FirestoreMessages
import Foundation
import Synchronization

/// One listener of the program: turns the snapshots of its view into those of the SDK, and calls the program on its
/// queue.
///
/// Thread-safe. Snapshots come on the engine's queue, `remove` from any thread.
final class SnapshotListener<Snapshot: Sendable>: ListenerRegistration, Sendable {
    private struct State {
        var isRemoved = false
        /// What the engine knows the listener by.
        var id: SyncEngine.ListenerID?
        var engine: SyncEngine?
    }

    private let firestore: Firestore
    private let state = Mutex(State())
    private let report: @Sendable (Snapshot?, (any Error)?) -> Void

    /// - Parameter report: calls the program; runs on the queue of the settings.
    init(on firestore: Firestore, report: @escaping @Sendable (Snapshot?, (any Error)?) -> Void) {
        self.firestore = firestore
        self.report = report
    }

    /// Begins to listen.
    ///
    /// - Parameter make: makes a snapshot of the SDK; called on the engine's queue.
    func start(
        _ subject: SyncEngine.Subject, isOfCache: Bool, includesMetadataChanges: Bool,
        make: @escaping @Sendable (ViewSnapshot) -> Snapshot
    ) {
        connect { engine in
            engine.listen(
                subject, isOfCache: isOfCache, includesMetadataChanges: includesMetadataChanges,
                deliver: { self.deliver(make($0), nil) }, fail: { self.fail($0) })
        }
    }

    /// Registers with the engine.
    /// - Parameter add: returns what to remove the registration by.
    private func connect(_ add: (SyncEngine) -> SyncEngine.ListenerID) {
        do throws(RequestError) {
            let engine = try firestore.engine()
            let id = add(engine)
            let isRemoved = state.withLock { state in
                state.id = id
                state.engine = engine
                return state.isRemoved
            }
            if isRemoved { engine.unlisten(id) }
        } catch {
            fail(error)
        }
    }

    private func deliver(_ snapshot: Snapshot?, _ error: (any Error)?) {
        firestore.callBack { [self] in
            if !state.withLock({ $0.isRemoved }) { report(snapshot, error) }
        }
    }

    /// The listener ends with an error.
    private func fail(_ error: RequestError) {
        firestore.callBack { [self] in
            let isFirst = state.withLock { state in
                defer { state.isRemoved = true }
                return !state.isRemoved
            }
            if isFirst { report(nil, error.asNSError) }
        }
    }

    func remove() {
        let (engine, id) = state.withLock { state in
            state.isRemoved = true
            defer { state.engine = nil }
            return (state.engine, state.id)
        }
        if let engine, let id { engine.unlisten(id) }
    }
}

extension SnapshotListener<Void> {
    /// Begins to report each time that all listeners that a change concerns have been called, at first soon.
    func startSyncReports() {
        connect { engine in engine.addSyncListener { self.deliver((), nil) } }
    }
}
