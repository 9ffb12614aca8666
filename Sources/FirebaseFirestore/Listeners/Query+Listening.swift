import Synchronization

extension Query {
    /// Listens to the query.
    ///
    /// - Parameter listener: called on the queue of the settings with all results, then after every change of them. An
    ///   error comes once, as the last call.
    /// - Returns: what ends the listener.
    @discardableResult
    public func addSnapshotListener(
        _ listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        addSnapshotListener(options: SnapshotListenOptions(), listener: listener)
    }

    /// Listens to the query, and if wanted to changes of metadata alone.
    @discardableResult
    public func addSnapshotListener(
        includeMetadataChanges: Bool, listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        addSnapshotListener(
            options: SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges), listener: listener)
    }

    /// Listens to the query. A listener of the cache does not contact the server.
    @discardableResult
    public func addSnapshotListener(
        options: SnapshotListenOptions, listener: @escaping (QuerySnapshot?, (any Error)?) -> Void
    ) -> any ListenerRegistration {
        firestore.checkUsable()
        let definition = definition
        enforcing { () throws(RuleViolation) in try QueryRules.checkExecutable(definition) }
        let box = UncheckedBox(listener)
        let registration = SnapshotListener<QuerySnapshot>(on: firestore) { box.value($0, $1) }
        let includesMetadataChanges = options.includeMetadataChanges
        registration.start(
            SyncEngine.Subject(self), isOfCache: options.source == .cache,
            includesMetadataChanges: includesMetadataChanges
        ) { snapshot in
            QuerySnapshot(
                query: self, rows: snapshot.rows, changes: snapshot.changes,
                includesMetadataChanges: includesMetadataChanges,
                metadata: .of(hasPendingWrites: snapshot.hasPendingWrites, isFromCache: snapshot.isFromCache))
        }
        return registration
    }

    /// The results, then after every change of them. Ending the iteration ends the listener.
    public var snapshots: SnapshotSequence<QuerySnapshot> { snapshots(includeMetadataChanges: false) }

    /// The results, then after every change of them. Ending the iteration ends the listener.
    public func snapshots(includeMetadataChanges: Bool) -> SnapshotSequence<QuerySnapshot> {
        SnapshotSequence { [self] listener in
            addSnapshotListener(includeMetadataChanges: includeMetadataChanges, listener: listener)
        }
    }
}

extension Firestore {
    /// Calls a listener when all snapshot listeners that a change concerns have been called.
    ///
    /// - Parameter listener: called on the queue of the settings, at first soon.
    /// - Returns: what ends the listener.
    @discardableResult
    public func addSnapshotsInSyncListener(_ listener: @escaping () -> Void) -> any ListenerRegistration {
        checkUsable()
        let box = UncheckedBox(listener)
        // Without a client there is nothing to agree on.
        let registration = SnapshotListener<Void>(on: self) { agreement, _ in
            if agreement != nil { box.value() }
        }
        registration.startSyncReports()
        return registration
    }
}

extension SyncEngine.Subject {
    /// What a listener to a query listens to.
    init(_ query: Query) {
        let definition = query.definition
        self.init(
            kind: .query(parent: query.firestore.parentName(of: definition), definition.structuredQuery()),
            isReversed: definition.isReversed, limit: definition.limit.map { Int($0.count) })
    }
}
