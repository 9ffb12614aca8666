// Finding collections, one step for each.
//
// Collections of any id are found by walking over the documents. Where a collection's documents begin, its path can be read from
// the key, and one seek leads past all of them to the next collection in path order. So what is found is what exists at the
// version read, at any version.
//
// Collections of one id are found in the catalogue, whose entries lie side by side in the order of paths. It has no history, but
// knows every collection that ever held a document, so some of what is found may be empty.
//
// Paths too long for a key lie in groups without order, as long ids do; a group is looked through as a whole.

internal import Basics
internal import DocumentModel
internal import KeyValueStore

extension StoreReader {
    /// The first collection that holds a document, or if an id is asked for ever held one, in path order, after a position and below a path.
    ///
    /// - Parameters:
    ///   - position: a collection or document path; the answer is greater. Empty: from the start.
    ///   - skipsBelow: the answer does not lie below `position` either.
    ///   - parent: a document or collection path below which the answer lies; empty means the whole database.
    ///   - collectionID: the last segment that the answer must have; nil takes any.
    ///   - filter: the query that asks, for transactions.
    func firstCollection(
        after position: RawSpan, skippingBelow skipsBelow: Bool, within parent: RawSpan, collectionID: RawSpan?,
        at point: ReadPoint, filter: DocumentFilter? = nil
    ) throws(RequestError) -> [UInt8]? {
        guard let database = point.databaseNumber else { return nil }
        var wantedID: [UInt8]?
        if let collectionID { wantedID = [UInt8](copying: collectionID) }
        let search = CollectionSearch(
            position: [UInt8](copying: position), skipsBelow: skipsBelow, parent: [UInt8](copying: parent),
            collectionID: wantedID, database: database)
        let snapshot = try snapshot(at: point)
        let found: CollectionSearch.Found?
        do throws(StorageError) { found = try search.run(snapshot) } catch { throw RequestError(error) }
        if let transaction = point.transaction, let range = search.walked(until: found, matches: filter, at: point.version) {
            try transaction.noteRead(range)
        }
        return found?.path
    }
}

/// One search.
struct CollectionSearch {
    /// A collection, and the key at which the search could stop.
    struct Found {
        var path: [UInt8]
        /// The first key that was not looked at.
        var end: [UInt8]
    }

    private let position: [UInt8]
    private let skipsBelow: Bool
    private let parent: [UInt8]
    private let collectionID: [UInt8]?
    private let lower: [UInt8]
    private let upper: [UInt8]

    init(position: [UInt8], skipsBelow: Bool, parent: [UInt8], collectionID: [UInt8]?, database: UInt32) {
        self.position = position
        self.skipsBelow = skipsBelow
        self.parent = parent
        self.collectionID = collectionID
        var key = WireWriter(capacity: KeyLayout.keyBytesMaximum + 8)
        DocumentKey.writeSubtree(parent.byteSpan, database: database, into: &key)
        let start = key.copyBytes()
        key.appendAfterGroup()
        upper = key.copyBytes()
        let isCut = DocumentKey.writeSubtree(position.byteSpan, database: database, into: &key)
        if !isCut, !position.isEmpty {
            if skipsBelow {
                key.appendAfterGroup()
            } else if CollectionSearch.isCollection(position) {
                // Past the collection's own documents.
                key.append(byte: KeyLayout.documentMarker + 1)
            }
        }
        lower = start.byteSpan.compareBytes(key.bytes) > 0 ? start : key.copyBytes()
    }

    /// Looks for all collections of an id.
    init(ofGroup id: [UInt8], database: UInt32) {
        self.init(position: [], skipsBelow: false, parent: [], collectionID: id, database: database)
    }

    private static func isCollection(_ path: [UInt8]) -> Bool {
        path.count { $0 == UInt8(ascii: "/") } % 2 == 0
    }

    func run(_ snapshot: borrowing EngineSnapshot) throws(StorageError) -> Found? {
        collectionID == nil ? try runOverDocuments(snapshot) : try runOverCatalogue(snapshot)
    }

    /// The first collection in the catalogue that the search accepts.
    private func runOverCatalogue(_ snapshot: borrowing EngineSnapshot) throws(StorageError) -> Found? {
        var found: Found?
        try visitCatalogue(snapshot) { (key, entry, path) in
            let place = [KeySpace.documents.rawValue] + [UInt8](copying: key.extracting(1..<key.byteCount))
            guard DocumentKey.isCutCollection(byteCount: key.byteCount) else {
                if found == nil { found = Found(path: [UInt8](copying: path), end: place) }
                return .stop
            }
            // Of a group of long paths the first one: they come in no order.
            let end = DocumentKey.endOfGroup(Array(place.prefix(KeyLayout.pathOffset + KeyLayout.plainBytesMaximum)))
            if let known = found {
                if known.end != end { return .stop }
                if ResourcePath.compare(path, known.path.byteSpan) >= 0 { return .more }
            }
            found = Found(path: [UInt8](copying: path), end: end)
            return .more
        }
        return found
    }

    /// Visits the collections in the catalogue that the search accepts, in the order of keys.
    func visitCatalogue(
        _ snapshot: borrowing EngineSnapshot,
        _ body: (_ key: RawSpan, _ entry: borrowing VersionedCatalogueEntry, _ path: RawSpan) throws(StorageError) -> ScanControl
    ) throws(StorageError) {
        let lower = CollectionSearch.inCatalogue(lower)
        let upper = CollectionSearch.inCatalogue(upper)
        if lower.byteSpan.compareBytes(upper.byteSpan) >= 0 { return }
        var path = WireWriter(capacity: 256)
        var cursor = try snapshot.cursor(from: lower.byteSpan, to: upper.byteSpan)
        while try cursor.next() {
            guard let entry = CatalogueEntry(cursor.value) else {
                throw StorageError(.corrupt, "a catalogue entry is damaged")
            }
            path.reset()
            if DocumentKey.isCutCollection(byteCount: cursor.key.byteCount) {
                path.append(entry.path)
            } else {
                DocumentKey.appendCollectionPath(of: cursor.key, collectionByteCount: cursor.key.byteCount, to: &path)
            }
            if !accepts(path.bytes) { continue }
            let figures = VersionedCatalogueEntry(number: entry.number, count: entry.count, version: cursor.version)
            if try body(cursor.key, figures, path.bytes) == .stop { return }
        }
    }

    /// The figures of a collection, and the version that they are of.
    struct VersionedCatalogueEntry {
        let number: UInt64
        let count: Int
        let version: CommitVersion
    }

    /// Where a key of the documents would be in the catalogue.
    private static func inCatalogue(_ key: [UInt8]) -> [UInt8] { [KeySpace.catalogue.rawValue] + key[1...] }

    private func runOverDocuments(_ snapshot: borrowing EngineSnapshot) throws(StorageError) -> Found? {
        if lower.byteSpan.compareBytes(upper.byteSpan) >= 0 { return nil }
        var path = WireWriter(capacity: 256)
        var next = WireWriter(capacity: KeyLayout.keyBytesMaximum + 8)
        var cursor = try snapshot.cursor(from: lower.byteSpan, to: upper.byteSpan)
        while try cursor.next() {
            guard let parts = DocumentKey.parts(of: cursor.key) else {
                throw StorageError(.corrupt, "a document key is malformed")
            }
            if DocumentKey.isCutCollection(byteCount: parts.collectionByteCount) {
                let plain = KeyLayout.pathOffset + KeyLayout.plainBytesMaximum
                let group = [UInt8](copying: cursor.key.extracting(0..<plain))
                let end = DocumentKey.endOfGroup(group)
                if let found = try firstOfGroup(group, end: end, snapshot) { return Found(path: found, end: end) }
                try cursor.seek(to: end.byteSpan)
                continue
            }
            path.reset()
            DocumentKey.appendCollectionPath(
                of: cursor.key, collectionByteCount: parts.collectionByteCount, to: &path)
            if accepts(path.bytes) {
                let end = [UInt8](copying: cursor.key.extracting(0..<parts.collectionByteCount))
                return Found(path: path.copyBytes(), end: end)
            }
            next.reset()
            next.append(cursor.key.extracting(0..<parts.collectionByteCount))
            next.append(byte: KeyLayout.documentMarker + 1)
            try cursor.seek(to: next.bytes)
        }
        return nil
    }

    /// The first collection of a group that the search accepts.
    private func firstOfGroup(
        _ group: [UInt8], end: [UInt8], _ snapshot: borrowing EngineSnapshot
    ) throws(StorageError) -> [UInt8]? {
        var best: [UInt8]?
        var next = WireWriter(capacity: KeyLayout.keyBytesMaximum + 8)
        var cursor = try snapshot.cursor(from: group.byteSpan, to: end.byteSpan)
        while try cursor.next() {
            guard let parts = DocumentKey.parts(of: cursor.key),
                let path = CollectionSearch.storedCollectionPath(cursor.value)
            else { throw StorageError(.corrupt, "a document's entry is damaged") }
            if accepts(path.byteSpan) {
                if let known = best {
                    if ResourcePath.compare(path.byteSpan, known.byteSpan) < 0 { best = path }
                } else {
                    best = path
                }
            }
            next.reset()
            next.append(cursor.key.extracting(0..<parts.collectionByteCount))
            next.append(byte: KeyLayout.documentMarker + 1)
            try cursor.seek(to: next.bytes)
        }
        return best
    }

    /// The path of a document's collection, from its record.
    private static func storedCollectionPath(_ value: RawSpan) -> [UInt8]? {
        guard let record = StoredRecordView(value, versionMicroseconds: 0), record.path.byteCount > 0 else { return nil }
        return [UInt8](copying: DocumentKey.collectionPath(ofDocument: record.path))
    }

    /// Whether a collection is an answer, apart from being the first.
    private func accepts(_ path: RawSpan) -> Bool {
        if !parent.isEmpty, !CollectionSearch.isBelow(path, parent) { return false }
        if !position.isEmpty {
            if ResourcePath.compare(path, position.byteSpan) <= 0 { return false }
            if skipsBelow, CollectionSearch.isBelow(path, position) { return false }
        }
        guard let collectionID else { return true }
        var start = path.byteCount
        while start > 0, path[byteAt: start - 1] != UInt8(ascii: "/") { start -= 1 }
        return path.extracting(start..<path.byteCount).equalsBytes(collectionID.byteSpan)
    }

    private static func isBelow(_ path: RawSpan, _ parent: [UInt8]) -> Bool {
        path.byteCount > parent.count && path.startsWith(parent.byteSpan)
            && path[byteAt: parent.count] == UInt8(ascii: "/")
    }

    /// The part of the key space that the answer rests on: a document that appears there could change it.
    func walked(until found: Found?, matches: DocumentFilter?, at version: CommitVersion) -> ReadRange? {
        let end = found?.end ?? upper
        if lower.byteSpan.compareBytes(end.byteSpan) >= 0 { return nil }
        return ReadRange(lower: lower, upper: end, collectionID: collectionID, matches: matches, version: version)
    }
}
