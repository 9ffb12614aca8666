// Queries that were listened to, and their documents.

package import Basics
internal import DocumentModel
internal import StoreFormat

extension LocalStore {
    /// The target of a query, which is in use from now on.
    ///
    /// - Parameter canonical: bytes that identify the query.
    package func use(target canonical: [UInt8]) throws(RequestError) -> LocalTarget {
        begin()
        defer { finishReading() }
        var target = LocalTarget(canonical: canonical, id: nextTarget, lastUsed: uses.current)
        if let stored = try stored(target: canonical) {
            target = stored
            target.lastUsed = uses.current
        } else {
            nextTarget += 1
            targetByteCount += target.byteCount
        }
        put(LocalKey.target(canonical), target.encoded())
        try commit()
        activeTargets.insert(target.id)
        canonicals[target.id] = canonical
        return target
    }

    /// The target of a query if it was listened to before.
    package func stored(target canonical: [UInt8]) throws(RequestError) -> LocalTarget? {
        guard let value = try value(forKey: LocalKey.target(canonical)) else { return nil }
        let target = try LocalTarget(stored: value.byteSpan)
        // Another query with the same hash is as unlikely as a collision of SHA-256.
        return target.canonical == canonical ? target : nil
    }

    /// Nobody listens to the query any more. An eager collection may remove its documents from now on.
    package func release(target canonical: [UInt8]) throws(RequestError) {
        begin()
        defer { finishReading() }
        guard var target = try stored(target: canonical) else { return }
        activeTargets.remove(target.id)
        canonicals[target.id] = nil
        if configuration.isEager {
            for path in try members(of: target.id) { noteEagerCandidate(path) }
            try removeTarget(target)
        } else {
            target.lastUsed = uses.current
            put(LocalKey.target(canonical), target.encoded())
        }
        try commit()
    }

    /// A target's documents as of its last snapshot.
    package func documents(of target: UInt32) throws(RequestError) -> TargetDocuments {
        defer { finishReading() }
        var result = TargetDocuments()
        for path in try members(of: target) {
            let state = try remoteState(LocalLocation(path: path))
            if state == .unknown { result.isComplete = false }
            // The server has to send a provisional document again.
            result.times[UTF8Text(name(path))] = state.isProvisional ? 0 : state.microseconds
        }
        return result
    }

    func members(of target: UInt32) throws(RequestError) -> [[UInt8]] {
        var paths: [[UInt8]] = []
        var key = ByteBuffer(capacity: 128)
        let prefixByteCount = LocalKey.members(of: target).count
        try forEach(in: LocalKey.members(of: target)) { (member, value) throws(RequestError) in
            if value.byteCount > 0 {
                paths.append([UInt8](copying: value))
                return
            }
            DocumentKey.writeSubtree([UInt8]().byteSpan, database: LocalKey.database, into: &key)
            key.append(member.extracting(prefixByteCount..<member.byteCount))
            guard let path = try Self.path(ofUncut: key.bytes) else { throw .damagedDocument }
            paths.append(path)
        }
        return paths
    }

    /// The path of a document by its key; nil if the key has only a part of it.
    static func path(ofUncut key: RawSpan) throws(RequestError) -> [UInt8]? {
        guard let parts = DocumentKey.parts(of: key) else { throw .damagedDocument }
        if parts.isCut { return nil }
        var path = ByteBuffer(capacity: 128)
        DocumentKey.appendCollectionPath(of: key, collectionByteCount: parts.collectionByteCount, to: &path)
        path.append(byte: UInt8(ascii: "/"))
        DocumentKey.appendID(of: key, collectionByteCount: parts.collectionByteCount, to: &path)
        return path.copyBytes()
    }

    func apply(_ update: TargetUpdate) throws(RequestError) {
        for name in update.added {
            guard let path = path(name) else { continue }
            putMember(LocalLocation(path: path), of: update.id)
        }
        for name in update.removed {
            guard let path = path(name) else { continue }
            let location = LocalLocation(path: path)
            delete(LocalKey.member(update.id, location.key))
            noteEagerCandidate(path)
        }
        guard let canonical = canonicals[update.id], var target = try stored(target: canonical) else { return }
        target.token = update.token
        target.snapshotMicroseconds = update.snapshotMicroseconds
        put(LocalKey.target(canonical), target.encoded())
    }

    func putMember(_ location: LocalLocation, of target: UInt32) {
        put(LocalKey.member(target, location.key), location.isTruncated ? location.path : [])
    }

    /// Gives a target these documents, and no others.
    func replaceMembers(of target: UInt32, by paths: [[UInt8]]) throws(RequestError) {
        let kept = Set(paths)
        for path in try members(of: target) where !kept.contains(path) {
            delete(LocalKey.member(target, LocalLocation(path: path).key))
            noteEagerCandidate(path)
        }
        for path in kept { putMember(LocalLocation(path: path), of: target) }
    }

    func removeTarget(_ target: LocalTarget) throws(RequestError) {
        for path in try members(of: target.id) {
            delete(LocalKey.member(target.id, LocalLocation(path: path).key))
        }
        delete(LocalKey.target(target.canonical))
        targetByteCount -= target.byteCount
        canonicals[target.id] = nil
    }
}
