// Bundles and named queries.

package import Basics
internal import DocumentModel

extension LocalStore {
    /// When the bundle with this id that was loaded last was made, in microseconds since 1970; nil if none was loaded.
    package func bundleCreateMicroseconds(_ id: String) throws(RequestError) -> UInt64? {
        defer { finishReading() }
        guard let value = try value(forKey: LocalKey.bundle(id)) else { return nil }
        var reader = WireReader(value.byteSpan)
        guard let created = try? reader.fixed64() else {
            throw RequestError(.dataLoss, "A bundle in the cache is damaged.")
        }
        // Another id with the same hash is as unlikely as a collision of SHA-256.
        return value[reader.position...].elementsEqual(id.utf8) ? created : nil
    }

    /// The query that a bundle has given this name.
    package func namedQuery(_ name: String) throws(RequestError) -> LocalNamedQuery? {
        defer { finishReading() }
        guard let value = try value(forKey: LocalKey.namedQuery(name)) else { return nil }
        do throws(InvalidDocument) {
            let query = try LocalNamedQuery(stored: value.byteSpan)
            return query.name == name ? query : nil
        } catch {
            throw RequestError(.dataLoss, "A named query in the cache is damaged.")
        }
    }

    /// Applies the documents of a bundle that are newer than the cached ones, and remembers its queries and the bundle
    /// itself. Many documents are several commits, and the queries and the bundle are a part of the last one.
    ///
    /// - Parameter changes: gets what has changed for the program, also by the commits before one that fails.
    package func load(_ bundle: LocalBundle, changing changes: inout [LocalChange]) throws(RequestError) {
        begin()
        defer { finishReading() }
        var changed: [LocalChange] = []
        var members: [[UInt8]] = []
        for (name, content) in bundle.documents {
            if draft.record.count >= configuration.commitBytesMax {
                try commit()
                changes += changed
                changed = []
                begin()
            }
            if let change = try applying(RemoteUpdate(name: name.string, content: content)) { changed.append(change) }
            if case .found = content, let path = path(name.string) { members.append(path) }
        }
        var target = LocalTarget(canonical: bundle.canonical, id: nextTarget, lastUsed: uses.current)
        if let stored = try stored(target: bundle.canonical) {
            target = stored
            target.lastUsed = uses.current
        } else {
            nextTarget += 1
            targetByteCount += target.byteCount
        }
        try replaceMembers(of: target.id, by: members)
        put(LocalKey.target(bundle.canonical), target.encoded())
        var seen: Set<[UInt8]> = []
        for result in bundle.results where seen.insert(result.canonical).inserted { try seed(result) }
        for query in bundle.queries { put(LocalKey.namedQuery(query.name), query.encoded()) }
        var record = ByteBuffer(capacity: 32)
        record.append(littleEndian: bundle.createMicroseconds)
        record.append(utf8: bundle.id)
        put(LocalKey.bundle(bundle.id), record.copyBytes())
        try commit()
        changes += changed
        // Eager collection keeps the documents as long as the store is open.
        if configuration.isEager {
            activeTargets.insert(target.id)
            bundleTargets.insert(target.id)
        }
    }

    /// Makes the result of a query what a listener continues from, unless the store has a later one.
    private func seed(_ result: LocalBundle.QueryResult) throws(RequestError) {
        var target = LocalTarget(canonical: result.canonical, id: nextTarget, lastUsed: uses.current)
        if let stored = try stored(target: result.canonical) {
            // A listener has the target, and the server sends it what is newer.
            if activeTargets.contains(stored.id) || stored.snapshotMicroseconds >= result.readMicroseconds { return }
            target = stored
            target.lastUsed = uses.current
        } else {
            nextTarget += 1
            targetByteCount += target.byteCount
        }
        target.token = []
        target.snapshotMicroseconds = result.readMicroseconds
        try replaceMembers(of: target.id, by: result.documents.compactMap { path($0) })
        put(LocalKey.target(result.canonical), target.encoded())
    }
}
