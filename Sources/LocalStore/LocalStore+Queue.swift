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
        defer { writer.finishReading() }
        var batch = LocalBatch(
            number: nextBatchNumber, identity: identity, request: request, localMicroseconds: configuration.clock(),
            database: configuration.database)
        batch.bases = try OverlayApplication.bases(of: batch) { (path) throws(RequestError) in
            try visibleState(LocalLocation(path: path))
        }
        let locations = batch.paths.map { LocalLocation(path: $0) }
        var states: [(DocumentState, wasPending: Bool)] = []
        for location in locations { states.append((try remoteState(location), isPending(location.path))) }
        remember(batch)
        do throws(RequestError) {
            put(LocalKey.batch(batch.number), batch.encoded())
            var changes: [LocalChange] = []
            for (location, (state, wasPending)) in zip(locations, states) {
                changes.append(try store(state, at: location, wasPending: wasPending))
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
        defer { writer.finishReading() }
        var states: [(LocalLocation, DocumentState)] = []
        for path in batch.paths {
            let location = LocalLocation(path: path)
            var state = try remoteState(location)
            change(batch, path, &state)
            states.append((location, state))
        }
        forget(batch)
        delete(LocalKey.batch(number))
        var changes: [LocalChange] = []
        for (location, state) in states { changes.append(try store(state, at: location, wasPending: true)) }
        try commit()
        return changes
    }
}
