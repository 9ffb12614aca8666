// Query execution's view of the store: one read point, walked in name order.

package import DocumentModel
internal import KeyValueStore

/// A `DocumentScanner` over the store. Valid on the thread of the reader that made it.
package struct StoreScanner: DocumentScanner, ~Copyable {
    let reader: StoreReader
    let point: ReadPoint
    /// The condition of the query that is run, for transactions.
    let filter: DocumentFilter?

    package mutating func scanCollection(
        _ collection: RawSpan, ids range: DocumentIDRange, direction: SortDirection,
        _ body: (borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        guard let database = point.databaseNumber else { return }
        let scan = CollectionScan(collection, database: database, ids: range, isDescending: direction == .descending)
        let snapshot = try reader.snapshot(at: point)
        var stoppedAt: [UInt8]?
        do throws(RequestError) {
            stoppedAt = try scan.run(snapshot, body)
        } catch {
            // What was seen before the failure counts as read; the whole range covers it.
            try note(scan.walked(stoppedAt: nil, matches: filter))
            throw error
        }
        try note(scan.walked(stoppedAt: stoppedAt, matches: filter))
    }

    package mutating func nextCollection(
        after position: RawSpan, below parent: RawSpan, collectionID: RawSpan?
    ) throws(RequestError) -> [UInt8]? {
        try reader.firstCollection(
            after: position, skippingBelow: false, within: parent, collectionID: collectionID, at: point,
            filter: filter)
    }

    private func note(_ range: ReadRange?) throws(RequestError) {
        if let transaction = point.transaction, let range { try transaction.noteRead(range) }
    }
}
