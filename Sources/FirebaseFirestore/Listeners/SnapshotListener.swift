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
        /// What the stream knows the listener by.
        var number: Int32?
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
        connect { stream in
            stream.add(kind, offline: { self.deliver(empty(), nil) }) { event in
                switch event {
                case .snapshot(let changes): self.deliver(apply(changes), nil)
                case .failure(let error): self.fail(error)
                }
            }
        }
    }

    /// Registers with the stream of the client.
    /// - Parameter add: returns the number to remove the registration by.
    private func connect(_ add: (WatchStream) -> Int32) {
        do throws(RequestError) {
            let stream = try firestore.client().watchStream(in: firestore.databaseName)
            let number = add(stream)
            let isRemoved = state.withLock { state in
                state.number = number
                state.stream = stream
                return state.isRemoved
            }
            if isRemoved { stream.remove(number) }
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
        let (stream, number) = state.withLock { state in
            state.isRemoved = true
            defer { state.stream = nil }
            return (state.stream, state.number)
        }
        if let stream, let number { stream.remove(number) }
    }
}

extension SnapshotListener<Void> {
    /// Begins to report each time that all listeners of the stream have been called, at first soon.
    func startAgreements() {
        connect { stream in stream.addSyncHandler { self.deliver((), nil) } }
    }
}
