public import DocumentCoding
import Synchronization

extension DocumentReference {
    /// Listens to the document.
    ///
    /// - Parameter listener: called on the queue of the settings with the document as it is, then after every change.
    ///   An error comes once, as the last call.
    /// - Returns: what ends the listener.
    @discardableResult
    public func addSnapshotListener(
        _ listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        addSnapshotListener(options: SnapshotListenOptions(), listener: listener)
    }

    /// Listens to the document, and if wanted to changes of its metadata alone.
    @discardableResult
    public func addSnapshotListener(
        includeMetadataChanges: Bool, listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        addSnapshotListener(
            options: SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges), listener: listener)
    }

    /// Listens to the document. A listener of the cache does not contact the server.
    @discardableResult
    public func addSnapshotListener(
        options: SnapshotListenOptions, listener: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        firestore.checkUsable()
        let box = UncheckedBox(listener)
        let registration = SnapshotListener<DocumentSnapshot>(on: firestore) { box.value($0, $1) }
        registration.start(
            SyncEngine.Subject(kind: .documents([name])), isOfCache: options.source == .cache,
            includesMetadataChanges: options.includeMetadataChanges
        ) { snapshot in
            DocumentSnapshot(
                reference: self, stored: snapshot.rows.first?.document,
                metadata: .of(hasPendingWrites: snapshot.hasPendingWrites, isFromCache: snapshot.isFromCache))
        }
        return registration
    }

    /// The document as it is, then after every change. Ending the iteration ends the listener.
    public var snapshots: SnapshotSequence<DocumentSnapshot> { snapshots(includeMetadataChanges: false) }

    /// The document as it is, then after every change. Ending the iteration ends the listener.
    public func snapshots(includeMetadataChanges: Bool) -> SnapshotSequence<DocumentSnapshot> {
        SnapshotSequence { [self] listener in
            addSnapshotListener(includeMetadataChanges: includeMetadataChanges, listener: listener)
        }
    }
}
