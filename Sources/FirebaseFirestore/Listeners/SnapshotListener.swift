import Basics
import DocumentModel
import FirestoreMessages
import Foundation
import Synchronization

/// One listener of the program: turns the events of its target into snapshots, and calls the program on its queue.
///
/// Thread-safe. Events come on the thread of the client's loop, `remove` from any thread.
final class SnapshotListener<Snapshot: Sendable>: ListenerRegistration, Sendable {
    private struct State {
        var isRemoved = false
        /// The target's number on the stream.
        var target: Int32?
        var stream: WatchStream?
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
    /// - Parameters:
    ///   - empty: the snapshot to report while no server can be reached.
    ///   - apply: makes the next snapshot of what has changed; called on one thread.
    func start(
        _ kind: ListenTarget.Kind, source: ListenSource, empty: @escaping @Sendable () -> Snapshot,
        apply: @escaping @Sendable ([String: StoredDocument?]) -> Snapshot
    ) {
        if source == .cache { return deliver(empty(), nil) }
        do throws(RequestError) {
            let stream = try firestore.client().watchStream(in: firestore.databaseName)
            let target = stream.add(kind, offline: { self.deliver(empty(), nil) }) { event in
                switch event {
                case .snapshot(let changes): self.deliver(apply(changes), nil)
                case .failure(let error): self.fail(error)
                }
            }
            let isRemoved = state.withLock { state in
                state.target = target
                state.stream = stream
                return state.isRemoved
            }
            if isRemoved { stream.remove(target) }
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
        let (stream, target) = state.withLock { state in
            state.isRemoved = true
            defer { state.stream = nil }
            return (state.stream, state.target)
        }
        if let stream, let target { stream.remove(target) }
    }
}

/// The registration of a listener that is called when all others are in agreement.
final class SyncListener: ListenerRegistration, Sendable {
    private let isRemoved = Mutex(false)
    private let registration: Mutex<(stream: WatchStream, number: Int32)?> = Mutex(nil)

    /// - Parameter listener: runs on the queue of the settings.
    init(on firestore: Firestore, _ listener: @escaping @Sendable () -> Void) {
        guard let stream = try? firestore.client().watchStream(in: firestore.databaseName) else { return }
        let number = stream.addSyncHandler { [weak self] in
            guard let self else { return }
            firestore.callBack {
                if !self.isRemoved.withLock({ $0 }) { listener() }
            }
        }
        registration.withLock { $0 = (stream, number) }
    }

    func remove() {
        isRemoved.withLock { $0 = true }
        let registration = registration.withLock { $0.take() }
        if let registration { registration.stream.remove(registration.number) }
    }
}
