// The pending writes of the users of a program: those of one are applied, those of the others wait.
//
// A change of the user changes what the program sees of every document with pending writes of either user; a new batch,
// and the reply to one, change the documents of the batch. That may be more than a commit of the engine can have. Then
// it is several: the first one has a mark, each one some of the documents, and the last one removes the mark. A store
// that is opened with the mark looks at all documents with pending writes again.
//
//     | user, claims, mark, documents | documents | ... | documents, no mark           |
//     | new batch, mark, documents    | documents | ... | documents, no mark           |
//     | mark, documents               | documents | ... | documents, no batch, no mark |

package import Basics
internal import DocumentModel
internal import StoreFormat

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
    /// - Throws: RESOURCE_EXHAUSTED if the disk is full: see ``use(user:changing:)``.
    package func use(user: String) throws(RequestError) -> [LocalChange] {
        var changes: [LocalChange] = []
        try use(user: user, changing: &changes)
        return changes
    }

    /// The same; large documents are several commits.
    ///
    /// - Parameter changes: gets what has changed for the program, also by the commits before one that fails.
    /// - Throws: RESOURCE_EXHAUSTED if the disk is full. Nothing is changed by a first commit that fails. After one
    ///   that fails later some documents show the batches of the new user, and further batches are refused until
    ///   another call succeeds, for this user or for another one.
    package func use(user: String, changing changes: inout [LocalChange]) throws(RequestError) {
        begin()
        defer { finishReading() }
        let earlier = (queue: queue, users: users, stale: stale)
        let lastVersion = writer.lastVersion
        if isUnfinished || !user.hasSameUTF8(as: users.current) { put(LocalKey.user, Array(user.utf8)) }
        if !users.unclaimed.isEmpty { claimBatches(by: user) }
        let all = allBatches
        replaceQueue(by: all.filter { $0.user.hasSameUTF8(as: user) })
        users.others = [:]
        for batch in all where !batch.user.hasSameUTF8(as: user) { users.others[batch.number] = batch }
        // Claimed batches alone change nothing that the program sees.
        let numbers = PendingDocument.numbers(of: earlier.queue)
        for path in Set(numbers.keys).union(batchesOfDocument.keys)
        where !(numbers[path] ?? []).elementsEqual(batches(of: path).lazy.map(\.number)) { stale.insert(path) }
        do throws(RequestError) {
            try showPending(changing: &changes)
            users.become(user)
        } catch {
            if writer.lastVersion == lastVersion {
                replaceQueue(by: earlier.queue)
                (users, stale) = (earlier.users, earlier.stale)
            }
            throw error
        }
    }

    /// Gives the batches from before the user was known to a user.
    private func claimBatches(by user: String) {
        for number in users.unclaimed { if let batch = batch(number) { replace(batch.claimed(by: user)) } }
        users.claim(before: nextBatchNumber, by: user, oldest: allBatches.first?.number ?? 0)
        // No other process opens what is in memory.
        if configuration.directory != nil { put(LocalKey.claims, users.encodedClaims()) }
    }

    private func replaceQueue(by batches: [LocalBatch]) {
        for batch in queue { forget(batch) }
        for batch in batches.sorted(by: { $0.number < $1.number }) { remember(batch) }
    }

    /// Commits what was collected, and applies the pending batches of the user to the documents that do not show them.
    ///
    /// - Parameters:
    ///   - collected: what the first commit changes for the program.
    ///   - changes: gets what has changed, also by the commits before one that fails.
    func showPending(
        _ collected: [LocalChange] = [], changing changes: inout [LocalChange]
    ) throws(RequestError) {
        var shown = collected
        while true {
            var paths: [[UInt8]] = []
            for path in stale {
                if draft.record.count >= configuration.commitBytesMax { break }
                let location = LocalLocation(path: path)
                shown.append(try store(try remoteState(location), at: location, wasPending: true))
                paths.append(path)
            }
            let isLast = paths.count == stale.count
            try commit(isUnfinished: !isLast)
            stale.subtract(paths)
            changes += shown
            if isLast { return }
            shown = []
            begin()
        }
    }

    /// Commits what was collected, and the mark if further commits belong to it.
    func commit(isUnfinished: Bool) throws(RequestError) {
        if isUnfinished, !self.isUnfinished { put(LocalKey.unfinished, []) }
        if !isUnfinished, self.isUnfinished { delete(LocalKey.unfinished) }
        try commit()
        self.isUnfinished = isUnfinished
    }

    /// Whether documents do not show pending batches of the user, because the disk was full.
    package var isUnshown: Bool { !stale.isEmpty }

    /// Applies the pending batches to the documents that do not show them. Not while a change of the user has not come
    /// to its end.
    ///
    /// - Parameter changes: gets what has changed for the program, also by the commits before one that fails.
    /// - Throws: RESOURCE_EXHAUSTED if the disk is full.
    package func showRest(changing changes: inout [LocalChange]) throws(RequestError) {
        defer { finishReading() }
        begin()
        try showPending(changing: &changes)
    }

    /// Ends a change that a crash has interrupted. On a full disk the next write or change of the user does that.
    func finishChange() throws(RequestError) {
        guard try value(forKey: LocalKey.unfinished) != nil else { return }
        isUnfinished = true
        stale = Set(allBatches.flatMap(\.paths))
        try forEach(in: [LocalSpace.remote]) { (key, _) throws(RequestError) in
            if let path = try path(ofRemote: key) { stale.insert(path) }
        }
        begin()
        var changes: [LocalChange] = []
        do throws(RequestError) { try showPending(changing: &changes) } catch {
            if error.code != .resourceExhausted { throw error }
        }
    }

    /// The path of a document with a record of the space `remote`; nil for one with a long path that the program does
    /// not see.
    private func path(ofRemote key: RawSpan) throws(RequestError) -> [UInt8]? {
        let key = LocalKey.moved([UInt8](copying: key), to: LocalSpace.documents)
        if let path = try Self.path(ofUncut: key.byteSpan) { return path }
        guard let value = try value(forKey: key) else { return nil }
        var path = ByteBuffer(capacity: 128)
        try Self.writePath(key: key.byteSpan, value: value.byteSpan, into: &path)
        return path.copyBytes()
    }
}
