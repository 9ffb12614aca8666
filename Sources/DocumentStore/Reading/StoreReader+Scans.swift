// Reading many: queries' scanners, listings, collection ids, counts.

package import Basics
package import DocumentModel
internal import KeyValueStore

extension StoreReader {
    /// What query execution walks.
    ///
    /// - Parameter matcher: the query's condition. In a transaction a later change conflicts only if the document fulfilled
    ///   it before or after; nil counts every change within what was scanned.
    package func scanner(at point: ReadPoint, matching matcher: QueryMatcher? = nil) -> StoreScanner {
        var filter: DocumentFilter?
        if let matcher { filter = { path, fields in matcher.matches(path: path, fields: fields) } }
        return StoreScanner(reader: self, point: point, filter: filter, query: matcher)
    }

    /// Visits the documents of a collection in name order; with `showMissing` also ids that have no document but
    /// documents below them, lent as nil.
    ///
    /// - Parameter ids: the ids to visit.
    package func listDocuments(
        in collection: CollectionPath, ids: DocumentIDRange = .all, showMissing: Bool, at point: ReadPoint,
        _ body: (_ documentID: RawSpan, FoundDocument?) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        var scanner = scanner(at: point)
        var name = WireWriter(capacity: 256)
        name.append(utf8: "\(collection)/")
        let prefix = name.count
        var missing = showMissing ? MissingDocuments(collection: collection.utf8, ids: ids) : nil
        var wasStopped = false
        try scanner.scanCollection(collection.utf8.byteSpan, ids: ids, direction: .ascending) {
            (document) throws(RequestError) in
            while let id = try missing?.next(before: document.documentID, reader: self, point: point) {
                if try body(id.byteSpan, nil) == .stop {
                    wasStopped = true
                    return .stop
                }
            }
            name.truncate(to: prefix)
            name.append(document.documentID)
            let view = FoundDocument(
                name: name.bytes, fields: document.fields, createMicroseconds: document.createMicroseconds,
                updateMicroseconds: document.updateMicroseconds)
            let control = try body(document.documentID, view)
            if control == .stop { wasStopped = true }
            return control
        }
        if wasStopped { return }
        while let id = try missing?.next(before: nil, reader: self, point: point) {
            if try body(id.byteSpan, nil) == .stop { return }
        }
    }

    /// The ids of the collections directly below `parent` (nil: of the root collections) that hold a document or any
    /// descendant, in name order.
    ///
    /// - Parameters:
    ///   - after: only ids greater than this one; nil from the start.
    ///   - limit: at most so many.
    package func collectionIDs(
        below parent: DocumentPath?, after: String?, limit: Int, at point: ReadPoint
    ) throws(RequestError) -> [String] {
        let parentPath = parent?.utf8 ?? []
        var position = parentPath
        if let after { position = ChildPath.join(parentPath, Array(after.utf8)) }
        var skipsBelow = after != nil
        var ids: [String] = []
        while ids.count < limit {
            let found = try firstCollection(
                after: position.byteSpan, skippingBelow: skipsBelow, within: parentPath.byteSpan, collectionID: nil,
                at: point)
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
        if let count = try cataloguedCount(of: collection.utf8.byteSpan, at: point) { return count }
        var count = 0
        var scanner = scanner(at: point)
        try scanner.scanCollection(collection.utf8.byteSpan, ids: .all, direction: .ascending) { _ in
            count += 1
            return .more
        }
        return count
    }

    /// The catalogue's count, when it is that of the point's state.
    /// - Parameter collection: the collection's relative path.
    func cataloguedCount(of collection: RawSpan, at point: ReadPoint) throws(RequestError) -> Int? {
        // A transaction must remember what it counted: the scan does that.
        guard point.transaction == nil, let database = point.databaseNumber else { return nil }
        var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)
        DocumentKey.writeCatalogue(collection, database: database, into: &key)
        let snapshot = try snapshot(at: point)
        let stored: StoredValue?
        do throws(StorageError) { stored = try snapshot.value(forKey: key.bytes) } catch { throw RequestError(error) }
        // The catalogue has no history: an entry may be of a later state than the one asked for.
        guard let stored, stored.version <= point.version else { return nil }
        return CatalogueEntry(stored.bytes)?.count
    }
}

extension StoreReader {
    /// The sum of the catalogue's counts below a document (empty: everywhere), of collections of one id or of all, when they are those
    /// of the point's state.
    func cataloguedCount(
        below parent: [UInt8], collectionID: [UInt8]?, at point: ReadPoint
    ) throws(RequestError) -> Int? {
        // As for a single collection.
        guard point.transaction == nil, let database = point.databaseNumber else { return nil }
        let search = CollectionSearch(
            position: parent, skipsBelow: false, parent: parent, collectionID: collectionID, database: database)
        let snapshot = try snapshot(at: point)
        var count: Int? = 0
        do throws(StorageError) {
            try search.visitCatalogue(snapshot) { (_, entry, _) in
                if entry.version > point.version { count = nil }
                count? += entry.count
                return count == nil ? .stop : .more
            }
        } catch {
            throw RequestError(error)
        }
        return count
    }
}

/// Ids of a collection that have no document, merged into a walk over those that have one.
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

    /// The next missing id that comes before `id` (nil: the next at all) within the range. Passes over `id` itself, which
    /// has a document.
    mutating func next(
        before id: RawSpan?, reader: StoreReader, point: ReadPoint
    ) throws(RequestError) -> [UInt8]? {
        if !isStarted {
            isStarted = true
            try advance(after: nil, reader: reader, point: point)
        }
        while let candidate = upcoming {
            if let id {
                let order = ResourceID.compare(candidate.byteSpan, id)
                if order > 0 { return nil }
                try advance(after: candidate, reader: reader, point: point)
                if order == 0 { return nil }
            } else {
                try advance(after: candidate, reader: reader, point: point)
            }
            return candidate
        }
        return nil
    }

    private mutating func advance(after id: [UInt8]?, reader: StoreReader, point: ReadPoint) throws(RequestError) {
        var from = id
        var skipsBelow = true
        if from == nil, let lower = ids.lower {
            from = lower.id
            skipsBelow = !lower.isInclusive
        }
        let position = from.map { ChildPath.join(collection, $0) } ?? collection
        let found = try reader.firstCollection(
            after: position.byteSpan, skippingBelow: from != nil && skipsBelow, within: collection.byteSpan,
            collectionID: nil, at: point)
        upcoming = found.map { Array(ChildPath.firstSegment(of: $0, below: collection)) }
        if let candidate = upcoming, let upper = ids.upper {
            let order = ResourceID.compare(candidate.byteSpan, upper.id.byteSpan)
            if order > 0 || (order == 0 && !upper.isInclusive) { upcoming = nil }
        }
    }
}

/// Relative paths as byte arrays.
enum ChildPath {
    /// A path one segment longer.
    static func join(_ parent: [UInt8], _ id: [UInt8]) -> [UInt8] {
        parent.isEmpty ? id : parent + [UInt8(ascii: "/")] + id
    }

    /// The segment of `path` that follows `parent`, which it begins with.
    static func firstSegment(of path: [UInt8], below parent: [UInt8]) -> ArraySlice<UInt8> {
        let rest = path[(parent.isEmpty ? 0 : parent.count + 1)...]
        return rest[..<(rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex)]
    }
}
