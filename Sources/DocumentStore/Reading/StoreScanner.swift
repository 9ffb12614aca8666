// Query execution's view of the store: one read point, walked in name order.

package import Basics
package import DocumentModel
internal import KeyValueStore

/// A `DocumentScanner` over the store. Valid on the thread of the reader that made it.
package struct StoreScanner: DocumentScanner, ~Copyable {
    let reader: StoreReader
    let point: ReadPoint
    /// The condition of the query that is run, for transactions.
    let filter: DocumentFilter?
    /// The query that is run.
    var query: QueryMatcher?

    package mutating func scanCollection(
        _ collection: RawSpan, ids range: DocumentIDRange, direction: SortDirection,
        _ body: (borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        guard let database = point.databaseNumber else { return }
        let scan = CollectionScan(collection, database: database, ids: range, isDescending: direction == .descending)
        let snapshot = try reader.snapshot(at: point)
        var stoppedAt: [UInt8]?
        do throws(RequestError) {
            if let transaction = point.transaction, transaction.kind == .pessimistic {
                stoppedAt = try runLocking(scan, snapshot, collection, database, transaction, body)
            } else {
                stoppedAt = try scan.run(snapshot, body)
            }
        } catch {
            // What was seen before the failure counts as read; the whole range covers it.
            try note(scan.walked(stoppedAt: nil, matches: filter, at: point.version))
            throw error
        }
        try note(scan.walked(stoppedAt: stoppedAt, matches: filter, at: point.version))
    }

    package mutating func nextCollection(
        after position: RawSpan, skippingBelow skipsBelow: Bool, below parent: RawSpan, collectionID: RawSpan?
    ) throws(RequestError) -> [UInt8]? {
        try reader.firstCollection(
            after: position, skippingBelow: skipsBelow, within: parent, collectionID: collectionID, at: point,
            filter: filter)
    }

    /// Locks the documents that fulfil the query as they are met. What is met already cannot be waited for: if it changes before
    /// the lock is there, the transaction's commit finds out.
    private func runLocking(
        _ scan: borrowing CollectionScan, _ snapshot: borrowing EngineSnapshot, _ collection: RawSpan, _ database: UInt32,
        _ transaction: Transaction, _ body: (borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) -> [UInt8]? {
        var locked: [UInt64] = []
        var path = WireWriter(capacity: 256)
        var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)
        path.append(collection)
        path.append(byte: UInt8(ascii: "/"))
        let prefix = path.count
        defer { if !locked.isEmpty { reader.store.lockScanned(transaction, locked) } }
        return try scan.run(snapshot) { (document) throws(RequestError) in
            path.truncate(to: prefix)
            path.append(document.documentID)
            if filter?(path.bytes, document.fields) ?? true {
                DocumentKey.write(path.bytes, database: database, into: &key)
                locked.append(ByteTable.hash(key.bytes))
            }
            return try body(document)
        }
    }

    func note(_ range: ReadRange?) throws(RequestError) {
        guard let transaction = point.transaction, var range else { return }
        range.query = query.map(ObjectIdentifier.init)
        try transaction.noteRead(range)
    }

    package var remembersReads: Bool { point.transaction != nil }

    package mutating func endReads(at last: [UInt8], _ orders: [Order]) {
        guard let transaction = point.transaction, let query else { return }
        transaction.narrowReads(of: ObjectIdentifier(query)) { path, fields in
            guard query.matches(path: path, fields: fields) else { return false }
            var key = WireWriter(capacity: 128)
            guard SortKey.append(path: path, fields: fields, order: orders, into: &key) else { return false }
            return key.bytes.compareBytes(last.byteSpan) <= 0
        }
    }
}
