// What a transaction must know of a query: the keys of all documents that could be results, now or later.
//
// They follow from the query alone. They are noted before the operators are chosen and before anything is read, so that
// no choice of operators can leave out a part: an index without entries and a group without collections read nothing,
// but a document that is written later can match all the same.

package import Basics
package import DocumentModel
internal import StoreFormat

extension QueryPlan {
    /// Notes the query's scope, as far as names can be results. `Limit` narrows it when the query ends at its limit.
    func noteReads<Source: QuerySource & ~Copyable>(in source: borrowing Source) throws(RequestError) {
        if let points { return try notePoints(points, in: source) }
        switch matcher.scope {
        case .collection(let path):
            // Nil: no document of the collection has a name that the filter admits.
            guard let ids = names.ids(in: path) else { return }
            try source.noteRead(of: path, ids)
        case .children(let parent):
            try source.noteRead(CollectionSearch(below: parent, collectionID: nil, database: source.database))
        case .descendants(let parent, let collectionID):
            try source.noteRead(CollectionSearch(below: parent, collectionID: collectionID, database: source.database))
        }
    }

    private func notePoints<Source: QuerySource & ~Copyable>(
        _ points: [[UInt8]], in source: borrowing Source
    ) throws(RequestError) {
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        for path in points {
            DocumentKey.write(path.byteSpan, database: source.database, into: &key)
            let bytes = key.copyBytes()
            try source.noteRead(from: bytes, to: bytes + [0], collectionID: nil)
        }
    }
}

extension QuerySource where Self: ~Copyable {
    /// Notes the documents of a collection with ids in a range.
    borrowing func noteRead(of collection: [UInt8], _ ids: DocumentIDRange) throws(RequestError) {
        let keys = CollectionKeys(collection.byteSpan, ids, database: database)
        if !keys.isEmpty { try noteRead(from: keys.lower, to: keys.upper, collectionID: nil) }
    }

    /// Notes the part of the key space that a search went through: up to the collection that it found, or all of it.
    borrowing func noteRead(
        _ search: CollectionSearch, until found: CollectionSearch.Found? = nil
    ) throws(RequestError) {
        let (lower, upper) = search.range(until: found)
        guard lower.byteSpan.compareBytes(upper.byteSpan) < 0 else { return }
        try noteRead(from: lower, to: upper, collectionID: search.collectionID)
    }

    /// Calls `body` with the documents of a collection, by id, until it returns `full`, and notes those that it passed.
    ///
    /// - Parameters:
    ///   - collection: the collection's path below `documents`.
    ///   - ids: the ids to read, any UTF-8.
    /// - Returns: the number of documents that were read.
    @discardableResult
    package borrowing func scan(
        _ collection: [UInt8], ids: DocumentIDRange = .all, direction: SortDirection = .ascending,
        _ body: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Int {
        var scan = CollectionScan(collection, ids: ids, direction: direction)
        var work = StepWork(budget: .max)
        _ = try resume(&scan, &work, body)
        return work.documents
    }

    /// Continues a scan until `body` returns `full` or the step's budget is spent, and notes what it has passed.
    ///
    /// - Parameter end: the last id of an ascending scan to read now; nil reads all.
    /// - Returns: whether all of these were read.
    package borrowing func resume(
        _ scan: inout CollectionScan, through end: [UInt8]? = nil, _ work: inout StepWork,
        _ body: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Bool {
        var isComplete = false
        do throws(RequestError) {
            if let end {
                isComplete = try scan.next(through: end, from: self, &work, into: body)
                if isComplete { scan.skip(through: end) }
            } else {
                try scan.next(from: self, &work, into: body)
                isComplete = scan.isFinished
            }
        } catch {
            // What was read before the failure counts as read; the whole range contains it.
            if notesReads { try noteRead(of: scan.collection, scan.ids) }
            throw error
        }
        if notesReads, let passed = scan.passed { try noteRead(of: scan.collection, passed) }
        return isComplete
    }
}
