// Documents of a client's store: the server's state, and what the program sees.

package import Basics
internal import DocumentModel
package import QueryEngine
internal import Storage

extension LocalStore {
    // MARK: Reading

    /// What the program sees of a document.
    ///
    /// - Parameter name: a full resource name; those of other databases are unknown.
    package func state(of name: String) throws(RequestError) -> MaybeDocument {
        guard let path = path(name) else { return .unknown }
        defer { finishReading() }
        return try visibleState(LocalLocation(path: path))
    }

    /// What the program would see of a document without the batches from a number on.
    ///
    /// - Parameter unstored: what the server has sent about the document, if the store had no room for it.
    package func state(
        of name: String, before number: UInt64, with unstored: RemoteUpdate? = nil
    ) throws(RequestError) -> MaybeDocument {
        guard let path = path(name) else { return .unknown }
        defer { finishReading() }
        let (location, pending) = (LocalLocation(path: path), batches(of: path))
        let hasLater = pending.last.map { $0.number >= number } ?? false
        if !hasLater, unstored == nil { return try visibleState(location) }
        var state = try remoteState(location)
        if let unstored, let newer = Self.newer(unstored, than: try remoteVersion(location)) { state = newer }
        for batch in pending where batch.number < number { _ = overlay.apply(batch, path: path, to: &state) }
        return state
    }

    func visibleState(_ location: LocalLocation) throws(RequestError) -> MaybeDocument {
        if let value = try value(forKey: location.key) { return .found(try LocalRecord.decode(value.byteSpan)) }
        if let remote = try remoteRecord(location) {
            let (state, visible) = try LocalRecord.decode(remote: remote.byteSpan)
            return visible == .missing
                ? .missing(microseconds: state.microseconds, isProvisional: state.isProvisional) : .unknown
        }
        guard let missing = try value(forKey: LocalKey.moved(location.key, to: LocalSpace.missing)) else {
            return .unknown
        }
        return try LocalRecord.decode(missing: missing.byteSpan)
    }

    /// What the server has sent or acknowledged.
    func remoteState(_ location: LocalLocation) throws(RequestError) -> MaybeDocument {
        guard let remote = try remoteRecord(location) else { return try visibleState(location) }
        return try LocalRecord.decode(remote: remote.byteSpan).0
    }

    /// The server's state of a document with pending writes.
    private func remoteRecord(_ location: LocalLocation) throws(RequestError) -> [UInt8]? {
        guard isPending(location.path) else { return nil }
        return try value(forKey: LocalKey.moved(location.key, to: LocalSpace.remote))
    }

    /// How new the server's state of a document is.
    struct RemoteVersion {
        var microseconds: UInt64 = 0
        var isProvisional = false
        var isMissing = false
    }

    private func remoteVersion(_ location: LocalLocation) throws(RequestError) -> RemoteVersion {
        if isPending(location.path) {
            let state = try remoteState(location)
            // Any state of the server is better than a part of it.
            let microseconds = state.isIncomplete ? 0 : state.microseconds
            var version = RemoteVersion(microseconds: microseconds, isProvisional: state.isProvisional)
            if case .missing = state { version.isMissing = true }
            return version
        }
        if let version = try storedVersion(location.key) { return version }
        guard var version = try storedVersion(LocalKey.moved(location.key, to: LocalSpace.missing)) else {
            return RemoteVersion()
        }
        version.isMissing = true
        return version
    }

    /// The version in a value of the spaces `documents` and `missing`, without a copy of the value.
    private func storedVersion(_ key: [UInt8]) throws(RequestError) -> RemoteVersion? {
        do throws(StorageError) {
            guard let stored = try writer.latest.value(forKey: key.byteSpan), stored.bytes.byteCount > 0 else {
                return nil
            }
            let flags = stored.bytes[byteAt: 0]
            let isPartial = flags & LocalRecord.partialFlag != 0
            return RemoteVersion(
                microseconds: isPartial ? 0 : LocalRecord.updateMicroseconds(in: stored.bytes),
                isProvisional: flags & LocalRecord.provisionalFlag != 0)
        } catch {
            throw RequestError(error)
        }
    }

    func entryByteCount(_ key: [UInt8]) throws(RequestError) -> Int? {
        do throws(StorageError) {
            guard let stored = try writer.latest.value(forKey: key.byteSpan) else { return nil }
            return stored.bytes.byteCount
        } catch {
            throw RequestError(error)
        }
    }

    /// Runs a query over what the program sees.
    ///
    /// - Parameters:
    ///   - usesIndexes: false reads the collection; for tests.
    ///   - body: called with each result in the query's order: the full resource name and the document.
    package func run(
        _ plan: QueryPlan, usingIndexes usesIndexes: Bool = true, _ body: (String, LocalDocument) -> Void
    ) throws(RequestError) {
        defer { finishReading() }
        var name = ByteBuffer(capacity: 256)
        name.append(utf8: namePrefix)
        let prefixByteCount = name.count
        let usage = createsIndexes && usesIndexes ? LocalIndexUsage() : nil
        let groups = usesIndexes ? indexes.groups : [:]
        var count = 0
        if isQueueEmpty, stale.isEmpty {
            try plan.runAll(over: LocalSource(latest: writer.latest, groups: groups, indexUsage: usage)) { row in
                name.truncate(to: prefixByteCount)
                name.append(row.path)
                count += 1
                body(String(repairingUTF8: name.bytes), Self.document(row))
            }
            return makeIndexes(lackedBy: usage, results: count)
        }
        var pending: [(row: Int, path: [UInt8])] = []
        var rows: [(name: String, document: LocalDocument)] = []
        try plan.runAll(over: LocalSource(latest: writer.latest, groups: groups, indexUsage: usage)) { row in
            let path = [UInt8](copying: row.path)
            if isPending(path) { pending.append((rows.count, path)) }
            rows.append((self.name(path), Self.document(row)))
        }
        // Flags and estimates of documents with pending writes.
        for (row, path) in pending {
            if let document = try visibleState(LocalLocation(path: path)).document { rows[row].document = document }
        }
        for (name, document) in rows { body(name, document) }
        makeIndexes(lackedBy: usage, results: rows.count)
    }

    /// Begins to make the indexes that a query lacks. The query has its results without them, also if there is no room
    /// for an index: a later query tries again.
    private func makeIndexes(lackedBy usage: LocalIndexUsage?, results: Int) {
        if let usage { try? makeIndexes(usage.wanted(results: results)) }
    }

    /// Notes that documents were read now: a collection of garbage removes others first.
    package func noteUse(of names: some Sequence<String>) {
        if configuration.bytesMax == nil { return }
        uses.begin()
        for name in names {
            if let path = path(name) { uses.note(LocalLocation(path: path).key) }
        }
    }

    /// How a query would be run. For tests and diagnostics.
    package func explain(_ plan: QueryPlan) throws(RequestError) -> String {
        defer { finishReading() }
        var execution = QueryExecution(plan)
        try execution.chooseOperators(
            LocalSource(latest: writer.latest, groups: indexes.groups, indexUsage: nil))
        return execution.tree
    }

    private static func document(_ row: borrowing QueryRow) -> LocalDocument {
        LocalDocument(
            fields: [UInt8](copying: row.fields), createMicroseconds: row.createMicroseconds,
            updateMicroseconds: row.updateMicroseconds)
    }

    // MARK: Changing

    /// Stores the server's state of a document, and what the program sees of it.
    ///
    /// - Parameters:
    ///   - wasPending: whether the document had pending writes before the change.
    ///   - previous: the state to which the pending batches were applied until now; nil if it is not known. While its
    ///     fields stay the same, the batches are not applied again.
    func store(
        _ remote: MaybeDocument, at location: LocalLocation, wasPending: Bool, previous: MaybeDocument? = nil
    ) throws(RequestError) -> LocalChange {
        let isPending = batchesOfDocument[location.path] != nil
        let visible: MaybeDocument
        if !isPending {
            visible = remote
        } else if let previous, let kept = try rebased(remote, previous, at: location) {
            visible = kept
        } else {
            visible = applyingPending(to: remote, at: location)
        }
        try putVisible(visible, at: location, isPending: isPending)
        let remoteKey = LocalKey.moved(location.key, to: LocalSpace.remote)
        if isPending {
            put(remoteKey, LocalRecord.encode(remote: remote, visible: visible, at: location))
        } else if wasPending {
            delete(remoteKey)
        }
        return LocalChange(name: name(location.path), state: visible)
    }

    /// Applies all pending batches of a document.
    private func applyingPending(to remote: MaybeDocument, at location: LocalLocation) -> MaybeDocument {
        var visible = remote
        var isRegular = true
        for batch in batches(of: location.path) {
            let isBatchRegular = overlay.apply(batch, path: location.path, to: &visible)
            if !isBatchRegular { isRegular = false }
        }
        batchesOfDocument[location.path]?.isRegular = isRegular
        return visible
    }

    /// What the program sees if a changed state has the fields of the one before: the same fields, with other times.
    ///
    /// - Returns: nil if the pending batches have to be applied again.
    private func rebased(
        _ remote: MaybeDocument, _ previous: MaybeDocument, at location: LocalLocation
    ) throws(RequestError) -> MaybeDocument? {
        guard !stale.contains(location.path),
            case .found(let new) = remote, case .found(let old) = previous, old.estimates.isEmpty,
            old.fields == new.fields, batchesOfDocument[location.path]?.isRegular ?? false,
            case .found(var visible) = try visibleState(location)
        else { return nil }
        visible.createMicroseconds = new.createMicroseconds
        visible.updateMicroseconds = new.updateMicroseconds
        return .found(visible)
    }

    /// Stores what the program sees of a document after a new batch, the last one of its batches.
    ///
    /// - Parameters:
    ///   - before: what the program saw before the batch. It is also the server's state if the document had no pending
    ///     writes.
    func store(
        _ batch: LocalBatch, after before: MaybeDocument, at location: LocalLocation, wasPending: Bool
    ) throws(RequestError) -> LocalChange {
        var visible = before
        let isRegular = overlay.apply(batch, path: location.path, to: &visible)
        let wasRegular = !wasPending || batchesOfDocument[location.path]?.isRegular ?? false
        batchesOfDocument[location.path]?.isRegular = isRegular && wasRegular
        try putVisible(visible, at: location, isPending: true)
        let remoteKey = LocalKey.moved(location.key, to: LocalSpace.remote)
        if !wasPending {
            put(remoteKey, LocalRecord.encode(remote: before, visible: visible, at: location))
        } else if LocalRecord.Kind(visible) != LocalRecord.Kind(before), let remote = try value(forKey: remoteKey) {
            put(remoteKey, try LocalRecord.settingVisible(LocalRecord.Kind(visible), inRemote: remote))
        }
        return LocalChange(name: name(location.path), state: visible)
    }

    /// Stores what the program sees of a document.
    private func putVisible(
        _ visible: MaybeDocument, at location: LocalLocation, isPending: Bool
    ) throws(RequestError) {
        try removeBytes(of: location)
        switch visible {
        case .found(let document):
            let value = LocalRecord.encode(document, at: location, lastUsed: uses.current)
            try index(location.key, path: location.path, to: value)
            put(location.key, value)
            byteCount += location.key.count + value.count
            removeMissing(location)
        case .missing(let microseconds, let isProvisional) where !isPending:
            try removeFound(location)
            let value = LocalRecord.encode(missing: microseconds, isProvisional: isProvisional, lastUsed: uses.current)
            put(LocalKey.moved(location.key, to: LocalSpace.missing), value)
            byteCount += location.key.count + value.count
        case .missing, .unknown:
            try removeFound(location)
            removeMissing(location)
        }
        noteEagerCandidate(location.path)
    }

    /// The bytes of a document no longer count.
    private func removeBytes(of location: LocalLocation) throws(RequestError) {
        present = []
        // A document is in one of the two spaces at most.
        for space in [LocalSpace.documents, LocalSpace.missing] where present.isEmpty {
            guard let old = try entryByteCount(LocalKey.moved(location.key, to: space)) else { continue }
            byteCount -= location.key.count + old
            present.insert(space)
        }
    }

    private func removeFound(_ location: LocalLocation) throws(RequestError) {
        guard present.contains(LocalSpace.documents) else { return }
        try index(location.key, path: location.path, to: nil)
        delete(location.key)
    }

    private func removeMissing(_ location: LocalLocation) {
        if present.contains(LocalSpace.missing) { delete(LocalKey.moved(location.key, to: LocalSpace.missing)) }
    }

    /// The names of documents with pending writes whose visible state differs from the server's state with all batches
    /// applied; none in a sound store. For tests.
    package func staleOverlays() throws(RequestError) -> [String] {
        defer { finishReading() }
        var stale: [String] = []
        for path in self.stale.union(batchesOfDocument.keys) {
            let location = LocalLocation(path: path)
            var expected = try remoteState(location)
            for batch in batches(of: path) { _ = overlay.apply(batch, path: path, to: &expected) }
            switch (expected, try visibleState(location)) {
            case (.found(let left), .found(let right)) where left == right: break
            case (.missing, .missing), (.unknown, .unknown): break
            default: stale.append(name(path))
            }
        }
        return stale
    }

    // MARK: Updates from the server

    /// Applies documents and targets that the server has sent, as one state.
    ///
    /// - Returns: what has changed for the program.
    package func apply(
        _ updates: [RemoteUpdate], targets: [TargetUpdate] = []
    ) throws(RequestError) -> [LocalChange] {
        var changes: [LocalChange] = []
        try apply(updates, targets: targets, changing: &changes)
        return changes
    }

    /// The same; many documents are several commits, and the targets are a part of the last one. So a target is never
    /// newer than its documents.
    ///
    /// - Parameter changes: gets what has changed for the program, also by the commits before one that fails.
    package func apply(
        _ updates: [RemoteUpdate], targets: [TargetUpdate] = [], changing changes: inout [LocalChange]
    ) throws(RequestError) {
        defer { finishReading() }
        var rest = updates[...]
        repeat {
            begin()
            var changed: [LocalChange] = []
            var byteCount = 0
            while byteCount < configuration.commitBytesMax, let update = rest.popFirst() {
                if let change = try applying(update) { changed.append(change) }
                byteCount += update.byteCount
            }
            if rest.isEmpty { for target in targets { try apply(target) } }
            try commit()
            changes += changed
        } while !rest.isEmpty
    }

    /// Collects the changes of one document that the server has sent.
    ///
    /// - Returns: what has changed for the program; nil if what is known is newer, or the same.
    func applying(_ update: RemoteUpdate) throws(RequestError) -> LocalChange? {
        guard let path = path(update.name) else { return nil }
        let location = LocalLocation(path: path)
        let known = try remoteVersion(location)
        guard let state = Self.newer(update, than: known) else {
            noteEagerCandidate(path)
            if configuration.bytesMax != nil { uses.note(location.key) }
            return nil
        }
        let isPending = isPending(path)
        let previous = isPending ? try remoteState(location) : nil
        return try store(state, at: location, wasPending: isPending, previous: previous)
    }

    /// Removes the server's state of documents that have changed on the server in an unknown way.
    ///
    /// - Returns: what has changed for the program.
    package func forget(_ names: [String]) throws(RequestError) -> [LocalChange] {
        defer { finishReading() }
        begin()
        var changes: [LocalChange] = []
        for name in names {
            guard let path = path(name) else { continue }
            changes.append(try store(.unknown, at: LocalLocation(path: path), wasPending: isPending(path)))
        }
        try commit()
        return changes
    }

    /// Whether the server's state of a document may be newer than one that was changed last at this time.
    ///
    /// - Parameter updateMicroseconds: nil for the answer that the document does not exist, which has no time: any
    ///   document may be newer.
    package func isNewer(_ name: String, than updateMicroseconds: UInt64?) throws(RequestError) -> Bool {
        guard let path = path(name) else { return false }
        defer { finishReading() }
        let version = try remoteVersion(LocalLocation(path: path))
        guard let updateMicroseconds else { return !version.isMissing && version.microseconds > 0 }
        return version.microseconds > updateMicroseconds
    }

    /// Whether a document has a write that states of the server up to a time do not contain: a pending one, or one that
    /// was acknowledged for a later time.
    package func awaitsServer(_ name: String, after microseconds: UInt64) throws(RequestError) -> Bool {
        guard let path = path(name) else { return false }
        if isPending(path) { return true }
        defer { finishReading() }
        let version = try remoteVersion(LocalLocation(path: path))
        return version.isProvisional && version.microseconds > microseconds
    }

    /// The new state of a document; nil if what is known is newer, or the same.
    ///
    /// A server that was restored to an earlier state has an older document, and reports it for a time at which the
    /// known one was there. Then the known one is lost.
    private static func newer(_ update: RemoteUpdate, than known: RemoteVersion) -> MaybeDocument? {
        switch update.content {
        case .found(let fields, let created, let updated):
            let isLost = updated < known.microseconds && update.readMicroseconds ?? 0 >= known.microseconds
            guard updated > known.microseconds || isLost || (updated == known.microseconds && known.isProvisional)
            else { return nil }
            return .found(LocalDocument(fields: fields, createMicroseconds: created, updateMicroseconds: updated))
        case .missing(let read):
            guard let read else {
                if known.isMissing { return nil }
                return .missing(microseconds: known.microseconds, isProvisional: false)
            }
            // A known absence that continues.
            if known.isMissing, !known.isProvisional, read >= known.microseconds { return nil }
            return read >= known.microseconds ? .missing(microseconds: read, isProvisional: false) : nil
        }
    }
}

extension QueryPlan {
    /// Calls `body` with all results.
    fileprivate func runAll(
        over source: borrowing LocalSource, _ body: (borrowing QueryRow) -> Void
    ) throws(RequestError) {
        var execution = QueryExecution(self)
        while true {
            let progress = try execution.next(from: source) { (row) throws(RequestError) in
                body(row)
                return .more
            }
            if progress == .finished { return }
        }
    }
}
