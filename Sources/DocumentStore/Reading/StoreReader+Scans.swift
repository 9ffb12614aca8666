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

    /// What a step of a listing may look at, in documents.
    package static let documentsPerStep = 4_096

    /// Calls `body` with the next documents of a listing in name order; of one that shows missing documents also with
    /// ids that have no document but documents below them, and nil. Ends when `body` returns `stop`, and when so many
    /// documents were looked at, deleted ones included, that others should have their turn.
    ///
    /// - Parameters:
    ///   - cold: what reads do that meet something which is not in memory.
    ///   - documentsMax: what may be looked at.
    package func list(
        _ listing: inout DocumentListing, at point: ReadPoint, _ cold: ColdRead = .waits,
        documentsMax: Int = StoreReader.documentsPerStep,
        _ body: (_ documentID: RawSpan, FoundDocument?) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        let source = try source(at: point, cold)
        var name = ByteBuffer(capacity: 256)
        name.append(utf8: "\(listing.collection)/")
        let prefix = name.count
        let idOffset = listing.collection.utf8.count + 1
        var work = StepWork(budget: documentsMax)
        var locked: [[UInt8]] = []
        defer { source.lock(locked) }
        while !listing.isFinished {
            guard try listing.missing?.find(source, work) ?? true else { return }
            var missing = listing.missing
            defer { listing.missing = missing }
            let isComplete = try source.resume(&listing.scan, through: missing?.upcoming, &work) {
                (row) throws(RequestError) in
                let id = row.path.extracting(idOffset..<row.path.byteCount)
                if source.locksDocuments { locked.append([UInt8](copying: row.path)) }
                missing?.note(existing: id)
                name.truncate(to: prefix)
                name.append(id)
                let view = FoundDocument(
                    name: name.bytes, fields: row.fields, createMicroseconds: row.createMicroseconds,
                    updateMicroseconds: row.updateMicroseconds)
                return try body(id, view) == .more ? .more : .full
            }
            if !isComplete { return }
            guard let candidate = missing?.upcoming else {
                listing.isFinished = true
                return
            }
            if missing?.exists == false, try body(candidate.byteSpan, nil) == .stop { return }
            missing?.skip()
        }
    }

    /// Finds the next ids of a listing of collections.
    ///
    /// - Parameters:
    ///   - limit: ids that the listing shall have at most.
    ///   - cold: what reads do that meet something which is not in memory.
    ///   - documentsMax: what may be looked at.
    /// - Returns: whether these are found, or all. If not, so many deleted documents were passed that others should
    ///   have their turn.
    package func list(
        _ listing: inout CollectionIDListing, limit: Int, at point: ReadPoint, _ cold: ColdRead = .waits,
        documentsMax: Int = StoreReader.documentsPerStep
    ) throws(RequestError) -> Bool {
        let source = try source(at: point, cold)
        var deletions = StepWork(budget: documentsMax).deletionsMax
        while listing.ids.count < limit {
            let next = try source.nextCollection(
                after: listing.position, skippingBelow: listing.skipsBelow, below: listing.parent, collectionID: nil,
                from: listing.key, passing: &deletions)
            switch next {
            case .nothing: return true
            case .paused(let key):
                listing.key = key
                return false
            case .found(let path): listing.append(ChildPath.firstSegment(of: path, below: listing.parent))
            }
        }
        return true
    }

    /// How many documents the collection holds; a look-up when the point is the latest state, else a scan.
    package func documentCount(of collection: CollectionPath, at point: ReadPoint) throws(RequestError) -> Int {
        let source = try source(at: point)
        if let count = try source.documentCount(in: collection.utf8) { return count }
        return try source.scan(collection.utf8) { _ in .more }
    }
}

/// A listing of the documents of a collection, in steps (``StoreReader/list(_:at:_:documentsMax:_:)``).
package struct DocumentListing: Sendable {
    fileprivate let collection: CollectionPath
    fileprivate var scan: CollectionScan
    /// Nil if missing documents are not shown.
    fileprivate var missing: MissingDocuments?
    /// Whether all documents were listed.
    package fileprivate(set) var isFinished = false

    /// - Parameters:
    ///   - ids: the ids to list.
    ///   - showMissing: ids that have no document but documents below them too.
    package init(of collection: CollectionPath, ids: DocumentIDRange = .all, showMissing: Bool) {
        self.collection = collection
        scan = CollectionScan(collection.utf8, ids: ids, direction: .ascending)
        if showMissing { missing = MissingDocuments(collection: collection.utf8, ids: ids) }
    }
}

/// A listing of the ids of the collections directly below a document that hold a document or any descendant, in name
/// order, in steps (``StoreReader/list(_:limit:at:_:documentsMax:)``).
package struct CollectionIDListing: Sendable {
    fileprivate let parent: [UInt8]
    fileprivate private(set) var position: [UInt8]
    fileprivate private(set) var skipsBelow: Bool
    /// Where the search for the next one was paused.
    fileprivate var key: [UInt8]?
    /// The ids so far.
    package private(set) var ids: [String] = []

    /// - Parameters:
    ///   - parent: nil lists the root collections.
    ///   - after: only ids greater than this one; nil from the start.
    package init(below parent: DocumentPath?, after: String?) {
        self.parent = parent?.utf8 ?? []
        position = after.map { ChildPath.join(parent?.utf8 ?? [], Array($0.utf8)) } ?? self.parent
        skipsBelow = after != nil
    }

    fileprivate mutating func append(_ id: ArraySlice<UInt8>) {
        ids.append(String(decoding: id, as: UTF8.self))
        position = ChildPath.join(parent, Array(id))
        (skipsBelow, key) = (true, nil)
    }
}

/// The ids of a collection below which there are documents, one after the other.
private struct MissingDocuments: Sendable {
    let collection: [UInt8]
    let ids: DocumentIDRange
    /// The next such id within the range; nil if there is none, and before it is found.
    private(set) var upcoming: [UInt8]?
    /// Whether it has a document.
    private(set) var exists = false
    private var isFound = false
    private var last: [UInt8]?
    /// Where the search for the next one was paused.
    private var key: [UInt8]?

    init(collection: [UInt8], ids: DocumentIDRange) {
        self.collection = collection
        self.ids = ids
    }

    /// Finds the next id, unless that is done.
    /// - Returns: false if so many deleted documents were passed that others should have their turn.
    mutating func find<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ work: StepWork
    ) throws(RequestError) -> Bool {
        if isFound { return true }
        var from = last
        var skipsBelow = true
        if from == nil, let lower = ids.lower {
            from = lower.id
            skipsBelow = !lower.isInclusive
        }
        let position = from.map { ChildPath.join(collection, $0) } ?? collection
        var deletions = work.deletionsMax
        let next = try source.nextCollection(
            after: position, skippingBelow: from != nil && skipsBelow, below: collection, collectionID: nil, from: key,
            passing: &deletions)
        if case .paused(let key) = next {
            self.key = key
            return false
        }
        (isFound, exists, key) = (true, false, nil)
        guard case .found(let path) = next else { return true }
        let candidate = Array(ChildPath.firstSegment(of: path, below: collection))
        if let upper = ids.upper {
            let order = ResourceID.compare(candidate.byteSpan, upper.id.byteSpan)
            if order > 0 || (order == 0 && !upper.isInclusive) { return true }
        }
        upcoming = candidate
        return true
    }

    /// Notes that an id has a document.
    mutating func note(existing id: RawSpan) {
        if let upcoming, upcoming.byteSpan.equalsBytes(id) { exists = true }
    }

    /// Moves to the id after the next one.
    mutating func skip() { (last, upcoming, isFound) = (upcoming, nil, false) }
}
