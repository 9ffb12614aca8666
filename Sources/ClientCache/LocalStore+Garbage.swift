// Removing documents that are not needed.

package import Basics
internal import DocumentModel
internal import StoreFormat

/// What a garbage collection has removed.
package struct CollectionResult: Sendable, Equatable {
    package var targets = 0
    package var documents = 0
}

extension LocalStore {
    /// Whether documents have to be removed for the cache to have its size again.
    package var isTooLarge: Bool { configuration.bytesMax.map { byteCount + entryByteCount > $0 } ?? false }

    /// Removes what was used longest ago until the cache has its size again: queries that nobody listens to, and
    /// documents that belong to no query and have no pending writes. A tenth of them at a time.
    ///
    /// - Parameter targetsMax: the most queries to remove at a time.
    package func collectGarbage(targetsMax: Int = 1000) throws(RequestError) -> CollectionResult {
        var result = CollectionResult()
        while isTooLarge {
            let removed = try collectOnce(targetsMax: targetsMax)
            if removed == CollectionResult() { return result }
            result.targets += removed.targets
            result.documents += removed.documents
        }
        return result
    }

    private func collectOnce(targetsMax: Int) throws(RequestError) -> CollectionResult {
        begin()
        defer { finishReading() }
        var targets: [LocalTarget] = []
        try forEach(in: [LocalSpace.targets]) { (_, value) throws(RequestError) in
            let target = try LocalTarget(stored: value)
            if !activeTargets.contains(target.id) { targets.append(target) }
        }
        var members: Set<[UInt8]> = []
        try forEach(in: [LocalSpace.members]) { (key, _) throws(RequestError) in
            members.insert([UInt8](copying: key.extracting(KeyLayout.pathOffset..<key.byteCount)))
        }
        // Documents of no query by their last use.
        var orphans: [(lastUsed: UInt32, key: [UInt8])] = []
        for space in [LocalSpace.documents, LocalSpace.missing] {
            try forEach(in: [space]) { (key, value) throws(RequestError) in
                let tail = [UInt8](copying: key.extracting(KeyLayout.pathOffset..<key.byteCount))
                if !members.contains(tail) {
                    orphans.append((LocalRecord.lastUsed(in: value), [UInt8](copying: key)))
                }
            }
        }
        let pending = Set(pendingKeys)
        orphans.removeAll { pending.contains(LocalKey.moved($0.key, to: LocalSpace.documents)) }
        let uses = (targets.map(\.lastUsed) + orphans.map(\.lastUsed)).sorted()
        guard !uses.isEmpty else { return CollectionResult() }
        let limit = uses[max(0, (uses.count + 9) / 10 - 1)]
        var result = CollectionResult()
        for target in targets.sorted(by: { $0.lastUsed < $1.lastUsed }) where target.lastUsed <= limit {
            if result.targets == targetsMax { break }
            try removeTarget(target)
            result.targets += 1
        }
        for (lastUsed, key) in orphans where lastUsed <= limit {
            if let value = try value(forKey: key) {
                byteCount -= key.count + value.count
                try indexRemoval(of: key, value)
            }
            delete(key)
            result.documents += 1
        }
        try commit()
        return result
    }

    private var pendingKeys: [[UInt8]] {
        pendingNames.compactMap { path($0) }.map { LocalLocation(path: $0).key }
    }

    /// Removes documents that no listener covers, if the store is configured to. Not to be called while a read is on
    /// its way: its result may depend on them.
    ///
    /// - Parameter isShown: whether a listener shows the document with this name. An acknowledged write is shown before
    ///   the server sends the document, so no target covers it yet.
    package func collectEagerly(keeping isShown: (String) -> Bool) throws(RequestError) {
        guard configuration.isEager, !keepsAll, !eagerCandidates.isEmpty else { return }
        begin()
        defer { finishReading() }
        var kept: Set<[UInt8]> = []
        for path in eagerCandidates where !isPending(path) {
            if isShown(name(path)) {
                kept.insert(path)
                continue
            }
            let location = LocalLocation(path: path)
            var isCovered = false
            for target in activeTargets where try value(forKey: LocalKey.member(target, location.key)) != nil {
                isCovered = true
                break
            }
            if isCovered { continue }
            for space in [LocalSpace.documents, LocalSpace.missing] {
                let key = LocalKey.moved(location.key, to: space)
                guard let value = try value(forKey: key) else { continue }
                byteCount -= key.count + value.count
                try indexRemoval(of: key, value)
                delete(key)
            }
        }
        eagerCandidates = kept
        try commit()
    }
}
