// Removing documents that are not needed.

package import Basics
internal import DocumentModel
internal import StoreFormat

/// What a garbage collection has removed.
package struct CollectionResult: Sendable, Equatable {
    package var targets = 0
    package var documents = 0
}

/// What listeners need of a document.
package enum ListenerUse: Sendable {
    case none
    /// One shows it, or showed it before a local write, and no target has that write: the server has not sent it yet.
    case shown
    /// The target of a listener has it. It may be removed when it leaves the target or the target is released; the
    /// store notices both.
    case covered
}

/// What a garbage collection may remove.
private struct GarbageCandidate {
    enum Kind {
        case target(LocalTarget)
        /// An entry of the spaces `documents` or `missing`, by its key.
        case document([UInt8])
    }

    /// The number of the last use.
    let use: UInt32
    let kind: Kind

    /// Whether it goes first: it was used before. A query goes before the documents that its use alone keeps.
    func precedes(_ other: GarbageCandidate) -> Bool {
        if use != other.use { return use < other.use }
        if case .target = kind, case .document = other.kind { return true }
        return false
    }
}

extension LocalStore {
    /// Whether documents have to be removed for the cache to have its size again.
    package var isTooLarge: Bool {
        configuration.bytesMax.map { byteCount + entryByteCount + targetByteCount > $0 } ?? false
    }

    /// Removes what was used longest ago until the cache has its size again, and no more: queries that nobody listens
    /// to, and documents. A document is used when it changes or is read, and as long as a query that has it is used. A
    /// query is used as long as it has a listener. Documents stay that have pending writes or that a query in use has.
    ///
    /// - Parameter isShown: whether a listener shows the document with this name, which then stays.
    package func collectGarbage(
        keeping isShown: (String) -> Bool = { _ in false }
    ) throws(RequestError) -> CollectionResult {
        var result = CollectionResult()
        guard isTooLarge else { return result }
        defer { finishReading() }
        let candidates = try garbageCandidates()
        var next = 0
        while isTooLarge, next < candidates.count {
            begin()
            let end = min(next + Self.removalsPerCommit, candidates.count)
            while isTooLarge, next < end {
                switch candidates[next].kind {
                case .target(let target):
                    try removeTarget(target)
                    result.targets += 1
                case .document(let key):
                    if try removeGarbage(key, keeping: isShown) { result.documents += 1 }
                }
                next += 1
            }
            try commit()
        }
        return result
    }

    private static let removalsPerCommit = 500

    /// What may be removed, in the order in which it is.
    private func garbageCandidates() throws(RequestError) -> [GarbageCandidate] {
        var candidates: [GarbageCandidate] = []
        // Of all queries.
        var uses: [UInt32: UInt32] = [:]
        try forEach(in: [LocalSpace.targets]) { (_, value) throws(RequestError) in
            let target = try LocalTarget(stored: value)
            uses[target.id] = activeTargets.contains(target.id) ? LocalUses.now : target.lastUsed
            if uses[target.id] != LocalUses.now {
                candidates.append(GarbageCandidate(use: target.lastUsed, kind: .target(target)))
            }
        }
        // Of the documents of queries, by their keys without space and database.
        var usesOfMembers: [[UInt8]: UInt32] = [:]
        try forEach(in: [LocalSpace.members]) { (key, _) throws(RequestError) in
            let (target, tail) = LocalKey.parts(ofMember: key)
            usesOfMembers[tail] = max(usesOfMembers[tail] ?? 0, uses[target] ?? 0)
        }
        let pending = Set(pendingKeys)
        for space in [LocalSpace.documents, LocalSpace.missing] {
            try forEach(in: [space]) { (stored, value) throws(RequestError) in
                let key = [UInt8](copying: stored)
                let documentKey = LocalKey.moved(key, to: LocalSpace.documents)
                let own = max(LocalRecord.lastUsed(in: value), self.uses.lastUse(of: documentKey))
                let use = max(own, usesOfMembers[Array(key[KeyLayout.pathOffset...])] ?? 0)
                if use == LocalUses.now || pending.contains(documentKey) { return }
                candidates.append(GarbageCandidate(use: use, kind: .document(key)))
            }
        }
        return candidates.sorted { $0.precedes($1) }
    }

    /// - Returns: whether the entry was removed.
    private func removeGarbage(_ key: [UInt8], keeping isShown: (String) -> Bool) throws(RequestError) -> Bool {
        guard let value = try value(forKey: key) else { return false }
        if key.first == LocalSpace.documents {
            var path = ByteBuffer(capacity: 128)
            try Self.writePath(key: key.byteSpan, value: value.byteSpan, into: &path)
            if isShown(name(path.copyBytes())) { return false }
        }
        try removeEntry(key, value)
        return true
    }

    /// Removes an entry of the spaces `documents` or `missing`.
    private func removeEntry(_ key: [UInt8], _ value: [UInt8]) throws(RequestError) {
        byteCount -= key.count + value.count
        removedByteCount += key.count + value.count
        try indexRemoval(of: key, value)
        delete(key)
    }

    /// What gives the disk space of removed documents back, by writing what is left again. It takes a time in
    /// proportion to the size of the cache, and may run on any thread, while the store is used and after it is closed.
    ///
    /// - Returns: nil if too little was removed since the last time for that to be worth it, or if the store is in
    ///   memory.
    package func makeSpaceReclamation() -> (@Sendable () -> Void)? {
        guard configuration.directory != nil, removedByteCount * Self.reclaimedFraction > byteCount else { return nil }
        removedByteCount = 0
        return { [engine] in
            // A full disk or a closed store: the engine gives the space back later, as it merges.
            guard (try? engine.checkpointNow()) != nil else { return }
            try? engine.sweepHistoryNow()
        }
    }

    /// Space is given back if this part of the cache was removed.
    private static let reclaimedFraction = 8

    private var pendingKeys: [[UInt8]] {
        pendingNames.compactMap { path($0) }.map { LocalLocation(path: $0).key }
    }

    /// Removes documents that no listener covers, if the store is configured to.
    ///
    /// A document that is covered is looked at once, not again with each change of others.
    ///
    /// - Parameters:
    ///   - oldestRead: the moment of the oldest read on its way, whose result may depend on documents that changed from
    ///     this moment on: these stay. Nil without reads.
    ///   - use: what listeners need of the document with this name. The store does not look through their targets.
    package func collectEagerly(
        before oldestRead: Int? = nil, keeping use: (String) -> ListenerUse
    ) throws(RequestError) {
        guard configuration.isEager, hasEagerCandidates(hasReads: oldestRead != nil) else { return }
        begin()
        defer { finishReading() }
        var kept: [[UInt8]: Int] = [:]
        var keptForReads = 0
        for (path, moment) in eagerCandidates where !isPending(path) {
            if let oldestRead, moment >= oldestRead {
                kept[path] = moment
                keptForReads += 1
                continue
            }
            switch use(name(path)) {
            case .covered: continue
            case .shown:
                kept[path] = moment
                continue
            case .none: break
            }
            try removeUncovered(LocalLocation(path: path))
        }
        keepEagerCandidates(kept, dueToReads: keptForReads)
        try commit()
    }

    /// Removes a document that no listener needs, unless a bundle has it.
    private func removeUncovered(_ location: LocalLocation) throws(RequestError) {
        for target in bundleTargets {
            eagerLookUpCount += 1
            if try value(forKey: LocalKey.member(target, location.key)) != nil { return }
        }
        for space in [LocalSpace.documents, LocalSpace.missing] {
            let key = LocalKey.moved(location.key, to: space)
            if let value = try value(forKey: key) { try removeEntry(key, value) }
        }
    }
}
