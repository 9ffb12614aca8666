// The pending writes of the users of a program: those of one are applied, those of the others wait.

package import Basics

extension LocalStore {
    /// Whose pending writes the program sees; empty for nobody's.
    package var user: String { users.current }

    /// Whether ``use(user:)`` was called. Until then the user is that of the last process.
    package var isUserKnown: Bool { users.isKnown }

    /// Applies the pending writes of a user instead of those of the one before, which stay in the store. Cached
    /// documents are of all users.
    ///
    /// Batches that were written before the first call are those of its user, also those of earlier processes that
    /// ended before theirs.
    ///
    /// - Parameter user: empty for nobody.
    /// - Returns: what has changed for the program.
    /// - Throws: RESOURCE_EXHAUSTED if the disk is full. Nothing is changed then.
    package func use(user: String) throws(RequestError) -> [LocalChange] {
        begin()
        defer { finishReading() }
        let claimed = users.unclaimed.compactMap { number in batch(number)?.claimed(by: user) }
        if configuration.directory != nil {
            for batch in claimed { put(LocalKey.batch(batch.number), batch.encoded()) }
        }
        if user.hasSameUTF8(as: users.current) {
            try commit()
            for batch in claimed { replace(batch) }
            users.become(user)
            return []
        }
        let (before, othersBefore) = (queue, users.others)
        let after = users.others.values.filter { $0.user.hasSameUTF8(as: user) } + claimed
        var states: [[UInt8]: (remote: MaybeDocument, pending: [UInt64])] = [:]
        for path in (before + after).flatMap(\.paths) where states[path] == nil {
            let pending = Array((batchesOfDocument[path] ?? PendingDocument()).numbers)
            states[path] = (try remoteState(LocalLocation(path: path)), pending)
        }
        replaceQueue(by: after)
        for batch in after { users.others[batch.number] = nil }
        for batch in before where !users.unclaimed.contains(batch.number) { users.others[batch.number] = batch }
        do throws(RequestError) {
            var changes: [LocalChange] = []
            // Claimed batches alone change nothing that the program sees.
            for (path, state) in states where !state.pending.elementsEqual(batches(of: path).lazy.map(\.number)) {
                let location = LocalLocation(path: path)
                changes.append(try store(state.remote, at: location, wasPending: !state.pending.isEmpty))
            }
            put(LocalKey.user, Array(user.utf8))
            try commit()
            users.become(user)
            return changes
        } catch {
            replaceQueue(by: before)
            users.others = othersBefore
            throw error
        }
    }

    private func replaceQueue(by batches: [LocalBatch]) {
        for batch in queue { forget(batch) }
        for batch in batches.sorted(by: { $0.number < $1.number }) { remember(batch) }
    }
}
