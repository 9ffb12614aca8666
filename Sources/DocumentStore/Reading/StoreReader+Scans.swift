// Reading many: queries' scanners, listings, collection ids, counts.

package import Basics
package import DocumentModel
package import QueryEngine
package import Storage
internal import StoreFormat

extension StoreReader {
    /// One state of the store as a source for queries. Keep it for one page.
    ///
    /// - Parameter matcher: the query's condition. In a transaction a later change conflicts only if the document
    ///   matches it before or after; nil counts every change within what was read.
    /// - Parameter cold: what reads do that meet something which is not in memory.
    package func source(
        at point: ReadPoint, matching matcher: QueryMatcher? = nil, _ cold: ColdRead = .waits
    ) throws(RequestError) -> StoreSource {
        var filter: DocumentFilter?
        if let matcher { filter = { path, fields in matcher.matches(path: path, fields: fields) } }
        return try StoreSource(self, at: point, filter: filter, matcher: matcher, cold)
    }

    /// Calls `body` with the documents of a collection in name order; with `showMissing` also with ids that have no
    /// document but documents below them, and nil.
    ///
    /// - Parameters:
    ///   - ids: the ids to list.
    ///   - cold: what reads do that meet something which is not in memory.
    package func listDocuments(
        in collection: CollectionPath, ids: DocumentIDRange = .all, showMissing: Bool, at point: ReadPoint,
        _ cold: ColdRead = .waits,
        _ body: (_ documentID: RawSpan, FoundDocument?) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        let source = try source(at: point, cold)
        var name = ByteBuffer(capacity: 256)
        name.append(utf8: "\(collection)/")
        let prefix = name.count
        let idOffset = collection.utf8.count + 1
        var missing = showMissing ? MissingDocuments(collection: collection.utf8, ids: ids) : nil
        var wasStopped = false
        var locked: [[UInt8]] = []
        defer { source.lock(locked) }
        try source.scan(collection.utf8, ids: ids) { (row) throws(RequestError) in
            let id = row.path.extracting(idOffset..<row.path.byteCount)
            if source.locksDocuments { locked.append([UInt8](copying: row.path)) }
            while let missingID = try missing?.next(before: id, source) {
                if try body(missingID.byteSpan, nil) == .stop {
                    wasStopped = true
                    return .full
                }
            }
            name.truncate(to: prefix)
            name.append(id)
            let view = FoundDocument(
                name: name.bytes, fields: row.fields, createMicroseconds: row.createMicroseconds,
                updateMicroseconds: row.updateMicroseconds)
            if try body(id, view) == .more { return .more }
            wasStopped = true
            return .full
        }
        if wasStopped { return }
        while let id = try missing?.next(before: nil, source) {
            if try body(id.byteSpan, nil) == .stop { return }
        }
    }

    /// The ids of the collections directly below `parent` (nil: of the root collections) that hold a document or any
    /// descendant, in name order.
    ///
    /// - Parameters:
    ///   - after: only ids greater than this one; nil from the start.
    ///   - limit: at most so many.
    ///   - cold: what reads do that meet something which is not in memory.
    package func collectionIDs(
        below parent: DocumentPath?, after: String?, limit: Int, at point: ReadPoint, _ cold: ColdRead = .waits
    ) throws(RequestError) -> [String] {
        let parentPath = parent?.utf8 ?? []
        var position = parentPath
        if let after { position = ChildPath.join(parentPath, Array(after.utf8)) }
        var skipsBelow = after != nil
        var ids: [String] = []
        let source = try source(at: point, cold)
        while ids.count < limit {
            let found = try source.nextCollection(
                after: position, skippingBelow: skipsBelow, below: parentPath, collectionID: nil)
            guard let found else { break }
            let id = ChildPath.firstSegment(of: found, below: parentPath)
            ids.append(String(decoding: id, as: UTF8.self))
            position = ChildPath.join(parentPath, Array(id))
            skipsBelow = true
        }
        return ids
    }

    /// How many documents the collection holds; a look-up when the point is the latest state, else a scan.
    package func documentCount(of collection: CollectionPath, at point: ReadPoint) throws(RequestError) -> Int {
        let source = try source(at: point)
        if let count = try source.documentCount(in: collection.utf8) { return count }
        return try source.scan(collection.utf8) { _ in .more }
    }
}

/// Ids of a collection that have no document, merged with those that have one.
private struct MissingDocuments {
    let collection: [UInt8]
    let ids: DocumentIDRange
    /// The next id that has documents below it.
    private var upcoming: [UInt8]?
    private var isStarted = false

    init(collection: [UInt8], ids: DocumentIDRange) {
        self.collection = collection
        self.ids = ids
    }

    /// The next missing id that comes before `id` (nil: the next at all) within the range. Passes over `id` itself,
    /// which has a document.
    mutating func next<Source: QuerySource & ~Copyable>(
        before id: RawSpan?, _ source: borrowing Source
    ) throws(RequestError) -> [UInt8]? {
        if !isStarted {
            isStarted = true
            try advance(after: nil, source)
        }
        while let candidate = upcoming {
            if let id {
                let order = ResourceID.compare(candidate.byteSpan, id)
                if order > 0 { return nil }
                try advance(after: candidate, source)
                if order == 0 { return nil }
            } else {
                try advance(after: candidate, source)
            }
            return candidate
        }
        return nil
    }

    private mutating func advance<Source: QuerySource & ~Copyable>(
        after id: [UInt8]?, _ source: borrowing Source
    ) throws(RequestError) {
        var from = id
        var skipsBelow = true
        if from == nil, let lower = ids.lower {
            from = lower.id
            skipsBelow = !lower.isInclusive
        }
        let position = from.map { ChildPath.join(collection, $0) } ?? collection
        let found = try source.nextCollection(
            after: position, skippingBelow: from != nil && skipsBelow, below: collection, collectionID: nil)
        upcoming = found.map { Array(ChildPath.firstSegment(of: $0, below: collection)) }
        if let candidate = upcoming, let upper = ids.upper {
            let order = ResourceID.compare(candidate.byteSpan, upper.id.byteSpan)
            if order > 0 || (order == 0 && !upper.isInclusive) { upcoming = nil }
        }
    }
}
