// The mutation queue of a client's store.

package import Basics
package import DocumentModel

extension LocalStore {
    /// Adds a batch to the queue and applies it for the program.
    ///
    /// - Parameters:
    ///   - request: a `CommitRequest` of this database. One that breaks a rule changes nothing for the program: the
    ///     server will reject it.
    ///   - identity: the identity under which the batch will be sent, also after a restart.
    /// - Returns: the number of the batch, and what has changed for the program.
    package func enqueue(
        _ request: [UInt8], identity: BatchIdentity
    ) throws(RequestError) -> (number: UInt64, changes: [LocalChange]) {
        begin()
        defer { finishReading() }
        var batch = LocalBatch(
            number: nextBatchNumber, identity: identity, request: request, localMicroseconds: configuration.clock(),
            database: configuration.database)
        let locations = batch.paths.map { LocalLocation(path: $0) }
        var states: [(DocumentState, wasPending: Bool)] = []
        for location in locations { states.append((try visibleState(location), isPending(location.path))) }
        if batch.hasTransforms {
            let documents = Dictionary(uniqueKeysWithValues: zip(batch.paths, states.map(\.0.document)))
            batch.bases = OverlayApplication.bases(of: batch) { path in documents[path] ?? nil }
        }
        remember(batch)
        do throws(RequestError) {
            // No other process opens what is in memory.
            if configuration.directory != nil { put(LocalKey.batch(batch.number), batch.encoded()) }
            var changes: [LocalChange] = []
            for (location, (state, wasPending)) in zip(locations, states) {
                changes.append(try store(batch, after: state, at: location, wasPending: wasPending))
            }
            try commit()
            return (batch.number, changes)
        } catch {
            forget(batch)
            throw error
        }
    }

    /// The server has committed a batch.
    ///
    /// - Parameters:
    ///   - results: one for each write of the batch.
    ///   - commitMicroseconds: the time of the commit.
    /// - Returns: what has changed for the program.
    package func acknowledge(
        _ number: UInt64, results: [WriteResult], commitMicroseconds: UInt64
    ) throws(RequestError) -> [LocalChange] {
        try remove(number) { batch, path, state in
            overlay.acknowledge(batch, path: path, results, commitMicroseconds: commitMicroseconds, to: &state)
        }
    }

    /// The server has refused a batch: its changes are undone.
    ///
    /// - Returns: what has changed for the program.
    package func reject(_ number: UInt64) throws(RequestError) -> [LocalChange] {
        try remove(number) { _, _, _ in }
    }

    private func remove(
        _ number: UInt64, _ change: (LocalBatch, [UInt8], inout DocumentState) -> Void
    ) throws(RequestError) -> [LocalChange] {
        guard let batch = batch(number) else { return [] }
        begin()
        defer { finishReading() }
        var states: [(LocalLocation, new: DocumentState, previous: DocumentState?)] = []
        for path in batch.paths {
            let location = LocalLocation(path: path)
            let remote = try remoteState(location)
            var state = remote
            change(batch, path, &state)
            states.append((location, state, localResult(of: batch, path, remote)))
        }
        forget(batch)
        if configuration.directory != nil { delete(LocalKey.batch(number)) }
        var changes: [LocalChange] = []
        for (location, state, previous) in states {
            changes.append(try store(state, at: location, wasPending: true, previous: previous))
        }
        try commit()
        return changes
    }

    /// The state to which the batches after a document's first one are applied; nil if the batch is another, or the
    /// last one.
    private func localResult(of batch: LocalBatch, _ path: [UInt8], _ remote: DocumentState) -> DocumentState? {
        guard let pending = batchesOfDocument[path], pending.isRegular, pending.numbers.count > 1,
            pending.numbers.first == batch.number
        else { return nil }
        var state = remote
        return overlay.apply(batch, path: path, to: &state) ? state : nil
    }
}
