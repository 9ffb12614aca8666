// Finding collections, one at a time.
//
// Collections of any id are found in the documents' keys. Where a collection's documents begin, its path can be read
// from the key, and one seek skips all of them to the next collection in path order. What is found is what exists in
// the source's state.
//
// Collections of one id are found in the catalogue, in the order of paths. It has no history, but contains every
// collection that ever held a document, so some of what is found may be empty. The list of the group says which of its
// entries they are (`GroupKey`); in a store without lists all entries are looked at.
//
// Paths too long for a key are in groups without order, as long ids are; a group is read as a whole.

package import Basics
internal import DocumentModel
internal import StoreFormat

/// What a search for the next collection has come to.
package enum NextCollection: Sendable {
    /// With this path.
    case found([UInt8])
    case nothing
    /// The search has passed as many deleted documents as it may at once, and continues at this key.
    case paused(at: [UInt8])
}

extension QuerySource where Self: ~Copyable {
    /// The first collection in path order that lies after a position and below a path. If an id is asked for, it may
    /// be empty.
    ///
    /// Path order compares segment by segment (numeric ids first, else UTF-8 bytes), a prefix first.
    ///
    /// - Parameters:
    ///   - position: a collection or document path; the result is greater. Empty: from the start.
    ///   - skipsBelow: the result does not lie below `position` either.
    ///   - parent: a document or collection path; empty means the whole database.
    ///   - collectionID: the last segment that the result must have; nil takes any.
    ///   - key: where the same search was paused.
    ///   - deletions: deleted documents that may be passed, at least 1. Those of a list of collections do not count.
    package borrowing func nextCollection(
        after position: [UInt8], skippingBelow skipsBelow: Bool = false, below parent: [UInt8], collectionID: [UInt8]?,
        from key: [UInt8]? = nil, passing deletions: inout Int
    ) throws(RequestError) -> NextCollection {
        let search = CollectionSearch(
            position: position, skipsBelow: skipsBelow, parent: parent, collectionID: collectionID, database: database)
        let outcome = try search.first(in: self, from: key, passing: &deletions)
        // A document that appears in the range searched could change the result.
        switch outcome {
        case .found(let found): if notesReads { try noteRead(search, until: found) }
        case .nothing: if notesReads { try noteRead(search) }
        case .paused: break
        }
        return outcome.next
    }

    /// The same within a query, whose scope is noted as a whole.
    ///
    /// - Parameter group: what the keys of the list of `collectionID` begin with; nil if it is not known yet.
    borrowing func nextCollectionOfQuery(
        after position: [UInt8], skippingBelow skipsBelow: Bool = false, below parent: [UInt8], collectionID: [UInt8]?,
        group: [UInt8]? = nil, from key: [UInt8]?, passing deletions: inout Int
    ) throws(RequestError) -> NextCollection {
        let search = CollectionSearch(
            position: position, skipsBelow: skipsBelow, parent: parent, collectionID: collectionID, group: group,
            database: database)
        return try search.first(in: self, from: key, passing: &deletions).next
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

    enum Outcome {
        case found(Found)
        case nothing
        /// See ``NextCollection/paused(at:)``.
        case paused(at: [UInt8])

        fileprivate var next: NextCollection {
            switch self {
            case .found(let found): .found(found.path)
            case .nothing: .nothing
            case .paused(let key): .paused(at: key)
            }
        }
    }

    private let position: [UInt8]
    private let skipsBelow: Bool
    private let parent: [UInt8]
    let collectionID: [UInt8]?
    /// What the keys of the list of `collectionID` begin with.
    private let group: [UInt8]?
    private let lower: [UInt8]
    private let upper: [UInt8]

    init(
        position: [UInt8], skipsBelow: Bool, parent: [UInt8], collectionID: [UInt8]?, group: [UInt8]? = nil,
        database: UInt32
    ) {
        self.group = group ?? collectionID.map { GroupKey.prefix(ofGroup: $0.byteSpan, database: database) }
        self.position = position
        self.skipsBelow = skipsBelow
        self.parent = parent
        self.collectionID = collectionID
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax + 8)
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

    /// Searches for all collections below a document (empty: everywhere), of one id or of all.
    init(below parent: [UInt8], collectionID: [UInt8]?, database: UInt32) {
        self.init(position: parent, skipsBelow: false, parent: parent, collectionID: collectionID, database: database)
    }

    private static func isCollection(_ path: [UInt8]) -> Bool {
        path.count { $0 == RelativePath.slash } % 2 == 0
    }

    func first<Source: QuerySource & ~Copyable>(
        in source: borrowing Source, from key: [UInt8]?, passing deletions: inout Int
    ) throws(RequestError) -> Outcome {
        if collectionID == nil || !source.hasCatalogue {
            return try firstByDocuments(source, from: key ?? lower, passing: &deletions)
        }
        return try firstInCatalogue(source).map { .found($0) } ?? .nothing
    }

    /// The part of the key space that was searched.
    func range(until found: Found?) -> (lower: [UInt8], upper: [UInt8]) { (lower, found?.end ?? upper) }

    // MARK: The catalogue

    /// The first collection in the catalogue that the search accepts.
    private func firstInCatalogue<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) -> Found? {
        var found: Found?
        try forEachInCatalogue(source) { (key, _, path) in
            let place = [KeySpace.documents.rawValue] + [UInt8](copying: key.extracting(1..<key.byteCount))
            guard DocumentKey.isCutCollection(byteCount: key.byteCount) else {
                if found == nil { found = Found(path: [UInt8](copying: path), end: place) }
                return .stop
            }
            // Of a group of long paths the first one: they come in no order.
            let end = DocumentKey.endOfGroup(Array(place.prefix(KeyLayout.pathOffset + KeyLayout.plainBytesMax)))
            if let known = found {
                if known.end != end { return .stop }
                if ResourcePath.compare(path, known.path.byteSpan) >= 0 { return .more }
            }
            found = Found(path: [UInt8](copying: path), end: end)
            return .more
        }
        return found
    }

    /// A collection's number and document count, and the version that these are of.
    struct Statistics {
        let number: UInt64
        let count: Int
        let versionMicroseconds: UInt64
    }

    /// Calls `body` with the collections in the catalogue that the search accepts, in the order of keys.
    ///
    /// - Parameter position: the key of the catalogue after which it begins; nil from the start.
    func forEachInCatalogue<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, after position: [UInt8]? = nil,
        _ body: (_ key: RawSpan, Statistics, _ path: RawSpan) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        let lower = position.map { $0 + [0] } ?? lower
        if let group {
            let isFound = try forEachListed(source, group, from: lower, body)
            if isFound { return }
            let marker = GroupKey.marker
            if try source.value(forKey: marker.byteSpan) != nil { return }
        }
        let catalogue = [KeySpace.catalogue.rawValue] + lower[1..<KeyLayout.pathOffset]
        var path = ByteBuffer(capacity: 256)
        guard var cursor = try cursor(source, catalogue, from: lower) else { return }
        while try cursor.next() {
            let stored = SourceValue(cursor.value, versionMicroseconds: cursor.versionMicroseconds)
            if try visit(cursor.key, stored, &path, body) == .stop { return }
        }
    }

    /// The same for the list of a group.
    ///
    /// - Returns: whether it has any collection from `lower` on.
    private func forEachListed<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ group: [UInt8], from lower: [UInt8],
        _ body: (_ key: RawSpan, Statistics, _ path: RawSpan) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> Bool {
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        var path = ByteBuffer(capacity: 256)
        guard var cursor = try cursor(source, group, from: lower) else { return true }
        var isFound = false
        while try cursor.next() {
            isFound = true
            GroupKey.writeCatalogueKey(of: cursor.key, into: &key)
            // The collection of a commit that the source does not see.
            guard let stored = try source.value(forKey: key.bytes) else { continue }
            if try visit(key.bytes, stored, &path, body) == .stop { break }
        }
        return isFound
    }

    /// A cursor over what the search covers in another space.
    ///
    /// - Parameter prefix: stands there in place of space and database.
    /// - Returns: nil if that is nothing.
    @_lifetime(borrow source)
    private func cursor<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ prefix: [UInt8], from lower: [UInt8]
    ) throws(RequestError) -> Source.Cursor? {
        let (lower, upper) = (prefix + lower[KeyLayout.pathOffset...], prefix + upper[KeyLayout.pathOffset...])
        if lower.byteSpan.compareBytes(upper.byteSpan) >= 0 { return nil }
        return try source.cursor(from: lower.byteSpan, to: upper.byteSpan, .ascending)
    }

    /// Calls `body` with a collection in the catalogue if the search accepts it.
    ///
    /// - Parameter path: gets the collection's path.
    private func visit(
        _ key: RawSpan, _ stored: SourceValue, _ path: inout ByteBuffer,
        _ body: (_ key: RawSpan, Statistics, _ path: RawSpan) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> ScanControl {
        guard let entry = CatalogueEntry(stored.bytes) else { throw .damagedCatalogue }
        path.reset()
        if DocumentKey.isCutCollection(byteCount: key.byteCount) {
            path.append(entry.path)
        } else {
            DocumentKey.appendCollectionPath(of: key, collectionByteCount: key.byteCount, to: &path)
        }
        if !accepts(path.bytes) { return .more }
        let statistics = Statistics(
            number: entry.number, count: entry.count, versionMicroseconds: stored.versionMicroseconds)
        return try body(key, statistics, path.bytes)
    }

    // MARK: Documents

    private func firstByDocuments<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, from lower: [UInt8], passing deletions: inout Int
    ) throws(RequestError) -> Outcome {
        if lower.byteSpan.compareBytes(upper.byteSpan) >= 0 { return .nothing }
        var path = ByteBuffer(capacity: 256)
        var next = ByteBuffer(capacity: KeyLayout.keyBytesMax + 8)
        var cursor = try source.cursor(from: lower.byteSpan, to: upper.byteSpan, .ascending)
        while try cursor.next(passing: &deletions) {
            guard let parts = DocumentKey.parts(of: cursor.key) else { throw .damagedDocument }
            if DocumentKey.isCutCollection(byteCount: parts.collectionByteCount) {
                let plain = KeyLayout.pathOffset + KeyLayout.plainBytesMax
                let group = [UInt8](copying: cursor.key.extracting(0..<plain))
                let end = DocumentKey.endOfGroup(group)
                if let found = try firstOfGroup(group, end: end, source) { return .found(Found(path: found, end: end)) }
                try cursor.seek(to: end.byteSpan)
                continue
            }
            path.reset()
            DocumentKey.appendCollectionPath(
                of: cursor.key, collectionByteCount: parts.collectionByteCount, to: &path)
            if accepts(path.bytes) {
                let end = [UInt8](copying: cursor.key.extracting(0..<parts.collectionByteCount))
                return .found(Found(path: path.copyBytes(), end: end))
            }
            next.reset()
            next.append(cursor.key.extracting(0..<parts.collectionByteCount))
            next.append(byte: KeyLayout.documentMarker + 1)
            try cursor.seek(to: next.bytes)
        }
        // The smallest key after the deleted document.
        return deletions > 0 ? .nothing : .paused(at: [UInt8](copying: cursor.key) + [0])
    }

    /// The first collection of a group that the search accepts.
    private func firstOfGroup<Source: QuerySource & ~Copyable>(
        _ group: [UInt8], end: [UInt8], _ source: borrowing Source
    ) throws(RequestError) -> [UInt8]? {
        var best: [UInt8]?
        var next = ByteBuffer(capacity: KeyLayout.keyBytesMax + 8)
        var cursor = try source.cursor(from: group.byteSpan, to: end.byteSpan, .ascending)
        while try cursor.next() {
            guard let parts = DocumentKey.parts(of: cursor.key),
                let path = CollectionSearch.storedCollectionPath(cursor.value)
            else { throw .damagedDocument }
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
        guard let record = StoredRecordView(value, versionMicroseconds: 0), record.path.byteCount > 0 else {
            return nil
        }
        return [UInt8](copying: DocumentKey.collectionPath(ofDocument: record.path))
    }

    /// Whether a collection is a result, apart from being the first.
    private func accepts(_ path: RawSpan) -> Bool {
        if !parent.isEmpty, !RelativePath.isBelow(path, parent.byteSpan) { return false }
        if !position.isEmpty {
            if ResourcePath.compare(path, position.byteSpan) <= 0 { return false }
            if skipsBelow, RelativePath.isBelow(path, position.byteSpan) { return false }
        }
        guard let collectionID else { return true }
        return RelativePath.lastSegment(path).equalsBytes(collectionID.byteSpan)
    }
}

/// Whether a loop over stored entries continues.
package enum ScanControl: Sendable {
    case more
    case stop
}
