// Where a collection group can be cut into parts of about the same size, without reading it.
//
//     catalogue    a/x/posts 300   b/posts 9,000,000   c/posts 40        sizes, in name order; passed over twice
//     ranks             0 ......... 3,000,113 ........ 6,000,226         of the cuts, for three parts
//     keys                          b/posts/K41        b/posts/X07       found in the collections that hold a cut
//
// The catalogue says how many documents each collection holds. A collection that holds no cut is never looked into; in
// one that does, the document of a rank is found by counting keys if the collection is small, and else by a sample of
// its keys (`KeySampler`). Sizes are those of now, whatever state is read: a cut is only a name, which need not exist,
// and parts need only be about even.
//
// A step that meets what is not in memory throws `pending` and keeps what it has found: the next one continues from
// there.

package import Basics
package import DocumentModel
internal import StoreFormat

/// The search for the cuts of one collection group, in steps.
package struct GroupPartitioner {
    /// A part has at least so many documents (semantics page, section 3).
    package static let documentsPerPartition = 128

    /// A collection that holds cuts, and which.
    private struct Holder {
        let collection: [UInt8]
        let count: Int
        /// Ranks in the collection, increasing.
        var ranks: [Int] = []
    }

    private enum Phase {
        case measuring, placing
        /// In the last of `holders`.
        case finding
    }

    /// What is known of the collection that is looked into.
    private struct Finding {
        /// The last key that was counted.
        var position: [UInt8]?
        /// Keys counted.
        var rank = 0
        /// Cuts found.
        var found = 0
        var sampler = KeySampler()
    }

    package let database: DatabaseName
    private let collectionID: [UInt8]
    private let cutsMax: Int
    private var phase = Phase.measuring
    /// The last catalogue key that was looked at.
    private var position: [UInt8]?
    private var total = 0
    /// Rank of the first document of the next collection.
    private var rank = 0
    private var nextCut = 1
    private var holders: [Holder] = []
    private var finding = Finding()
    /// Paths found, in no order until the end.
    private var cuts: [[UInt8]] = []

    /// Collections of the group looked at in one step.
    private static let collectionsPerStep = 4_096
    /// In collections up to this size keys are counted.
    private static let countedDocuments = 16_384
    /// Leaves sampled in larger ones: so many for each cut, within bounds that keep a step short.
    private static let leavesPerCut = 48
    private static let leavesMax = 1_024

    /// - Parameters:
    ///   - parent: full resource name of the documents root.
    ///   - cuts: the most cuts wanted, at least 1.
    /// - Throws: `INVALID_ARGUMENT` unless the query is a whole collection group in the order of names.
    package init(_ query: StructuredQuery, parent: RawSpan, cuts: Int) throws(RequestError) {
        let plan = try QueryPlan(query, parent: parent)
        guard case .descendants(parent: [], collectionID: let id?) = plan.matcher.scope else {
            throw .invalidArgument("Only a collection group of the whole database can be partitioned.")
        }
        guard query.filter == nil, query.startAt == nil, query.endAt == nil, query.offset == 0, query.limit == nil,
            query.findNearest == nil
        else {
            throw .invalidArgument(
                "A query with filters, cursors, offset, limit or find_nearest cannot be partitioned.")
        }
        guard query.orderBy.allSatisfy({ $0.field.isDocumentName && $0.direction == .ascending }) else {
            throw .invalidArgument("A partition query must be ordered by __name__ ascending only.")
        }
        database = plan.database
        collectionID = id
        cutsMax = cuts
    }

    /// The paths of the cuts, increasing; final once `next` returned true.
    package var result: [[UInt8]] { cuts }

    /// Works for some milliseconds.
    /// - Returns: whether the result is there.
    /// - Throws: `pending`, after which it is called again.
    package mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source
    ) throws(RequestError) -> Bool {
        switch phase {
        case .measuring:
            if try readCatalogue(source, { search, _, count in search.total += count }) {
                let parts = min(cutsMax + 1, total / Self.documentsPerPartition)
                if parts < 2 { return true }
                phase = .placing
            }
            return false
        case .placing:
            if try readCatalogue(source, { search, path, count in search.place(path, count) }) { phase = .finding }
            return false
        case .finding:
            if let holder = holders.last {
                try find(holder, source)
                holders.removeLast()
                finding = Finding()
                return false
            }
        }
        cuts.sort { ResourcePath.compare($0.byteSpan, $1.byteSpan) < 0 }
        return true
    }

    // MARK: The catalogue

    /// Calls `body` with the group's collections, in name order as far as keys are; as many as one step may read.
    /// - Returns: whether these were the last.
    private mutating func readCatalogue<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ body: (inout GroupPartitioner, _ path: RawSpan, _ count: Int) -> Void
    ) throws(RequestError) -> Bool {
        let search = CollectionSearch(below: [], collectionID: collectionID, database: source.database)
        var left = Self.collectionsPerStep
        try search.forEachInCatalogue(source, after: position) { (key, entry, path) in
            if left == 0 { return .stop }
            left -= 1
            if entry.count > 0 { body(&self, path, entry.count) }
            position = [UInt8](copying: key)
            return .more
        }
        if left == 0 { return false }
        position = nil
        return true
    }

    /// Takes note of the cuts that fall into a collection.
    private mutating func place(_ path: RawSpan, _ count: Int) {
        let parts = min(cutsMax + 1, total / Self.documentsPerPartition)
        var holder: Holder?
        while nextCut < parts {
            let cut = Int((Double(total) * Double(nextCut) / Double(parts)).rounded())
            if cut >= rank + count { break }
            if holder == nil { holder = Holder(collection: [UInt8](copying: path), count: count) }
            holder?.ranks.append(max(cut - rank, 0))
            nextCut += 1
        }
        rank += count
        if let holder { holders.append(holder) }
    }

    // MARK: Inside a collection

    private mutating func find<Source: QuerySource & ~Copyable>(
        _ holder: Holder, _ source: borrowing Source
    ) throws(RequestError) {
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        DocumentKey.writeCollection(holder.collection.byteSpan, database: source.database, into: &key)
        key.append(byte: KeyLayout.documentMarker)
        let prefix = key.copyBytes()
        if holder.count <= Self.countedDocuments { return try count(holder, source, prefix) }
        let leaves = min(max(holder.ranks.count * Self.leavesPerCut, 64), Self.leavesMax)
        try finding.sampler.sample(source, below: prefix, leaves: leaves)
        let keys = finding.sampler.keys(atFractions: holder.ranks.map { Double($0) / Double(holder.count) })
        for key in keys.dropFirst(finding.found) {
            if let stored = try source.value(forKey: key.byteSpan) {
                try add(key.byteSpan, stored.bytes, stored.versionMicroseconds)
            }
            finding.found += 1
        }
    }

    /// Finds the cuts of a small collection by counting its keys.
    private mutating func count<Source: QuerySource & ~Copyable>(
        _ holder: Holder, _ source: borrowing Source, _ prefix: [UInt8]
    ) throws(RequestError) {
        let lower = finding.position.map { $0 + [0] } ?? prefix
        var cursor = try source.cursor(from: lower.byteSpan, to: KeySampler.end(of: prefix).byteSpan, .ascending)
        while finding.found < holder.ranks.count, try cursor.next() {
            if finding.rank == holder.ranks[finding.found] {
                try add(cursor.key, cursor.value, cursor.versionMicroseconds)
                while finding.found < holder.ranks.count, holder.ranks[finding.found] == finding.rank {
                    finding.found += 1
                }
            }
            finding.rank += 1
            finding.position = [UInt8](copying: cursor.key)
        }
    }

    private mutating func add(_ key: RawSpan, _ value: RawSpan, _ versionMicroseconds: UInt64) throws(RequestError) {
        var path = ByteBuffer(capacity: 256)
        guard let parts = DocumentKey.parts(of: key),
            let record = StoredRecordView(value, versionMicroseconds: versionMicroseconds),
            KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path)
        else { throw .damagedDocument }
        cuts.append(path.copyBytes())
    }
}
