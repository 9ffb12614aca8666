// What a migration asks of its source, and what it learns of it.

import Basics
import DocumentModel
import FirestoreMessages
import HearthClient

/// The source of a migration.
struct MigrationSource: Sendable {
    let client: HearthClient
    let database: DatabaseName
    let patience: Patience

    /// What a source can do, and what it has.
    struct Survey: Sendable {
        /// The state that is copied.
        var time: TimestampValue
        /// Whether the source reads earlier states.
        var readsEarlierStates: Bool
        /// The number of documents; nil if the source does not count them.
        var documents: Int?
        /// Names at which the documents are cut into parts, in order.
        var cuts: [String]
        /// Whether the source says where to cut; otherwise the collections of the root are the parts.
        var partitions: Bool
    }

    /// Looks at the source. Fails at once if it cannot be reached or refuses the caller.
    ///
    /// - Parameter parts: parts that should be copied at the same time.
    func survey(parts: Int) async throws -> Survey {
        let time = try await now()
        let reads = try await readsEarlierStates(time)
        let consistency = reads ? ReadConsistency.readTime(time) : .latest
        let (cuts, partitions) = try await cuts(parts, consistency)
        return Survey(
            time: time, readsEarlierStates: reads, documents: try await count(consistency), cuts: cuts,
            partitions: partitions)
    }

    /// The present time of the source.
    func now() async throws -> TimestampValue {
        try await SubtreeReader.currentReadTime(client, .database(database))
    }

    private static let everything = StructuredQuery(
        from: [CollectionSelector(collectionID: "", allDescendants: true)], orderBy: [Order(field: .documentName)])

    private func readsEarlierStates(_ time: TimestampValue) async throws -> Bool {
        var query = Self.everything
        query.limit = 1
        let request = RunQueryRequest(parent: database.documentsRoot, query: query, consistency: .readTime(time))
        return try await unlessRefused { _ = try await client.runQuery(request) } != nil
    }

    private func count(_ consistency: ReadConsistency) async throws -> Int? {
        var query = Self.everything
        query.orderBy = []
        let request = RunAggregationQueryRequest(
            parent: database.documentsRoot,
            query: StructuredAggregationQuery(
                query: query, aggregations: [Aggregation(.count(upTo: nil), alias: "count")]),
            consistency: consistency)
        let totals = try await unlessRefused { try await client.runAggregation(request) }
        guard let bytes = totals?["count"], case .integer(let count) = try Value(wire: bytes.byteSpan) else {
            return nil
        }
        return Int(count)
    }

    /// Cuts of the collection groups whose ids the root has; documents of other groups lie between them.
    private func cuts(_ parts: Int, _ consistency: ReadConsistency) async throws -> ([String], isKnown: Bool) {
        var cuts: Set<String> = []
        let groups = try await rootCollections(consistency)
        for group in groups {
            let query = StructuredQuery(
                from: [CollectionSelector(collectionID: group, allDescendants: true)],
                orderBy: [Order(field: .documentName)])
            var request = PartitionQueryRequest(
                parent: database.documentsRoot, query: query, partitionCount: Int64(parts * Self.cutsPerPart),
                consistency: consistency)
            repeat {
                guard let page = try await unlessRefused({ try await client.partitionQuery(request) }) else {
                    return (groups.map(firstName).sorted { Self.compare($0, $1) < 0 }, false)
                }
                for cursor in page.partitions { if let name = try Self.name(cursor) { cuts.insert(name) } }
                request.pageToken = page.nextPageToken
            } while !request.pageToken.isEmpty
        }
        return (cuts.sorted { Self.compare($0, $1) < 0 }, true)
    }

    /// A name that is not after any of a collection at the root: numeric ids come first.
    private func firstName(_ collection: String) -> String {
        "\(database.documentsRoot)/\(collection)/__id-9223372036854775808__"
    }

    /// Parts that are small beside the whole finish at about the same time.
    private static let cutsPerPart = 4

    /// The ids of the collections of the root.
    func rootCollections(_ consistency: ReadConsistency = .latest) async throws -> [String] {
        var request = ListCollectionIdsRequest(
            parent: database.documentsRoot, pageSize: 300, consistency: consistency)
        var ids: [String] = []
        repeat {
            let page = try await client.listCollectionIds(request)
            ids += page.collectionIDs
            request.pageToken = page.nextPageToken
        } while !request.pageToken.isEmpty
        return ids
    }

    private static func name(_ cursor: Cursor) throws -> String? {
        guard let bytes = cursor.values.first?.bytes, case .reference(let name) = try Value(wire: bytes.byteSpan)
        else { return nil }
        return name
    }

    /// The order of documents in queries by name.
    static func compare(_ left: String, _ right: String) -> Int {
        left.withUTF8Span { left in right.withUTF8Span { ResourcePath.compareNames(left, $0) } }
    }

    /// The answer of a call; nil if the source does not serve such calls.
    nonisolated(nonsending) private func unlessRefused<Answer>(
        _ body: nonisolated(nonsending) () async throws -> Answer
    ) async throws -> Answer? {
        do {
            return try await body()
        } catch let error as RequestError where Self.isRefusal(error.code) {
            return nil
        }
    }

    /// Codes of a call that the server does not serve in this form.
    static func isRefusal(_ code: StatusCode) -> Bool {
        [.unimplemented, .invalidArgument, .failedPrecondition, .outOfRange].contains(code)
    }
}
