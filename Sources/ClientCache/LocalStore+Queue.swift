// The mutation queue of a client's store.

package import Basics
internal import DocumentModel

extension LocalStore {
    /// Adds a batch to the queue and applies it for the program: to some documents later (``showRest(changing:)``) if
    /// they are large and the disk becomes full in the middle.
    ///
    /// - Parameters:
    ///   - request: a `CommitRequest` of this database. One that breaks a rule changes nothing for the program: the
    ///     server will reject it.
    ///   - identity: the identity under which the batch will be sent, also after a restart.
    /// - Returns: the number of the batch, and what has changed for the program.
    /// - Throws: RESOURCE_EXHAUSTED if the disk is full, or was in the middle of an earlier batch or change of the
    ///   user. Nothing is changed then.
    package func enqueue(
        _ request: [UInt8], identity: BatchIdentity
    ) throws(RequestError) -> (number: UInt64, changes: [LocalChange]) {
        if !stale.isEmpty { throw RequestError(.resourceExhausted, "The cache has no room for an earlier change.") }
        begin()
        defer { finishReading() }
        var batch = LocalBatch(
            number: nextBatchNumber, identity: identity, user: users.current, isUnclaimed: !users.isKnown,
            request: request, localMicroseconds: configuration.clock(), database: configuration.database)
        let locations = batch.paths.map { LocalLocation(path: $0) }
        var states: [(MaybeDocument, wasPending: Bool)] = []
        for location in locations { states.append((try visibleState(location), isPending(location.path))) }
        if batch.hasTransforms {
            let seen = Dictionary(uniqueKeysWithValues: zip(batch.paths, states))
            batch.bases = OverlayApplication.bases(of: batch) { path in seen[path] ?? (.unknown, false) }
        }
        remember(batch)
        users.note(batch)
        let lastVersion = writer.lastVersion
        var changes: [LocalChange] = []
        do throws(RequestError) {
            // No other process opens what is in memory.
            if configuration.directory != nil { put(LocalKey.batch(batch.number), batch.encoded()) }
            var shown: [LocalChange] = []
            for (location, (state, wasPending)) in zip(locations, states) {
                if draft.record.count >= configuration.commitBytesMax {
                    stale.insert(location.path)
                } else {
                    shown.append(try store(batch, after: state, at: location, wasPending: wasPending))
                }
            }
            try showPending(shown, changing: &changes)
        } catch {
            // The batch is in the first commit.
            if writer.lastVersion == lastVersion {
                forget(batch)
                stale = []
                throw error
            }
        }
        return (batch.number, changes)
    }

    /// Removes batches from the queue to which the server has replied, as one change: what is pending after them is
    /// applied again once for each document at most.
    ///
    /// - Parameter replies: in the order of the batches. Those to other batches have no effect. The first ones are
    ///   taken, as many as become one commit: see ``SettledBatches/replyCount``.
    /// - Throws: RESOURCE_EXHAUSTED if the disk is full. The batches stay in the queue then, and the same replies may
    ///   be given again.
    package func settle(_ replies: [BatchReply]) throws(RequestError) -> SettledBatches {
        begin()
        defer { finishReading() }
        let replies = replies.prefix(try countOfCommit(replies))
        var batches: [LocalBatch] = []
        var numbers: Set<UInt64> = []
        var documents = SettledDocuments()
        for reply in replies {
            guard let batch = batch(reply.number), numbers.insert(reply.number).inserted else { continue }
            batches.append(batch)
            for path in batch.paths { documents.append(batch, reply.outcome, at: path) }
        }
        var states: [(LocalLocation, new: MaybeDocument, previous: MaybeDocument?)] = []
        for document in documents.all {
            let location = LocalLocation(path: document.path)
            let remote = try remoteState(location)
            states.append((location, newState(of: document, remote), localResult(of: document, remote)))
        }
        let others = replies.compactMap { users.others.removeValue(forKey: $0.number) }
        for batch in batches { forget(batch) }
        var changed: [[UInt8]] = []
        do throws(RequestError) {
            var settled = SettledBatches()
            settled.replyCount = replies.count
            for (location, state, previous) in states {
                if draft.record.count >= configuration.commitBytesMax {
                    try commit(isUnfinished: true)
                    changed = settled.changes.compactMap { path($0.name) }
                    begin()
                }
                settled.changes.append(try store(state, at: location, wasPending: true, previous: previous))
            }
            if configuration.directory != nil { for batch in batches + others { delete(LocalKey.batch(batch.number)) } }
            let rest = stale.isEmpty ? [] : stale.subtracting(states.map(\.0.path))
            try commit(isUnfinished: !rest.isEmpty)
            stale = rest
            settled.acknowledgedNames = documents.all.filter(\.isAcknowledged).map { name($0.path) }
            return settled
        } catch {
            for batch in batches { putBack(batch) }
            for batch in others { users.others[batch.number] = batch }
            stale.formUnion(changed)
            throw error
        }
    }

    /// How many replies become one commit, from the first on.
    private func countOfCommit(_ replies: [BatchReply]) throws(RequestError) -> Int {
        // Nearly always they are few, and nobody has to look how large their documents are.
        let documentCount = replies.reduce(0) { $0 + (batch($1.number)?.paths.count ?? 0) }
        if documentCount <= configuration.commitBytesMax / Limits.documentBytes { return replies.count }
        var byteCount = 0
        var seen: Set<[UInt8]> = []
        for (index, reply) in replies.enumerated() {
            if byteCount >= configuration.commitBytesMax { return index }
            for path in batch(reply.number)?.paths ?? [] where seen.insert(path).inserted {
                byteCount += try entryByteCount(LocalLocation(path: path).key) ?? 0
            }
        }
        return replies.count
    }

    /// The server's state of a document after its batches.
    private func newState(of document: SettledDocument, _ remote: MaybeDocument) -> MaybeDocument {
        var state = remote
        for (batch, outcome) in document.batches {
            guard case .acknowledged(let results, let commitMicroseconds) = outcome else { continue }
            overlay.acknowledge(
                batch, path: document.path, results, commitMicroseconds: commitMicroseconds, to: &state)
        }
        return state
    }

    /// The state to which the batches after a document's first ones are applied; nil if the batches are others, or all.
    private func localResult(of document: SettledDocument, _ remote: MaybeDocument) -> MaybeDocument? {
        guard let pending = batchesOfDocument[document.path], pending.isRegular,
            pending.numbers.count > document.batches.count,
            pending.numbers.starts(with: document.batches.lazy.map(\.0.number))
        else { return nil }
        var state = remote
        for (batch, _) in document.batches where !overlay.apply(batch, path: document.path, to: &state) { return nil }
        return state
    }

    /// How many times a batch was applied to a document so far. For tests and measurements.
    package var appliedBatchCount: Int { overlay.appliedCount }
}
