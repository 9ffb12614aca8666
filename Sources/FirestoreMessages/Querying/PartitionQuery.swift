// PartitionQuery: names at which a query can be cut into parts of about the same size.

internal import CFirestoreProto
package import DocumentModel

/// A request for the cursors that cut a collection group into partitions.
package struct PartitionQueryRequest: TableMessage, Equatable, Sendable {
    /// The documents root of a database.
    package var parent: String
    /// Nil where the sender set none, which servers refuse.
    package var query: StructuredQuery?
    /// The most cursors wanted on all pages together: one less than the partitions.
    package var partitionCount: Int64
    /// The token of the page before, or empty.
    package var pageToken: String
    /// The most cursors wanted on this page; 0 leaves the number to the server.
    package var pageSize: Int32
    /// `.latest` or `.readTime`.
    package var consistency: ReadConsistency

    package init(
        parent: String, query: StructuredQuery?, partitionCount: Int64 = 0, pageToken: String = "", pageSize: Int32 = 0,
        consistency: ReadConsistency = .latest
    ) {
        self.parent = parent
        self.query = query
        self.partitionCount = partitionCount
        self.pageToken = pageToken
        self.pageSize = pageSize
        self.consistency = consistency
    }

    static let table = unsafe MessageTable(
        PartitionQueryRequest(parent: "", query: nil), held__partition_query_request__init,
        google__firestore__v1__partition_query_request__init,
        [
            .text(\.parent, \.parent), .number(\.partitionCount, \.partition_count),
            .text(\.pageToken, \.page_token), .number(\.pageSize, \.page_size),
            .custom { held, message in
                guard unsafe held.query_type_case == HELD__PARTITION_QUERY_REQUEST__QUERY_TYPE_STRUCTURED_QUERY else {
                    return
                }
                message.query = try unsafe held.structured_query.lend { try StructuredQuery(wire: $0) }
            } write: { message, held, arena in
                guard let query = message.query else { return }
                unsafe held.query_type_case = HELD__PARTITION_QUERY_REQUEST__QUERY_TYPE_STRUCTURED_QUERY
                unsafe held.structured_query = arena.bytes(query.encode)
            },
            .consistency(
                \.consistency, \.consistency_selector_case,
                readTime: HELD__PARTITION_QUERY_REQUEST__CONSISTENCY_SELECTOR_READ_TIME, \.read_time),
        ])
}

/// A page of cursors, each a reference with `before` set, increasing.
package struct PartitionQueryResponse: TableMessage, Equatable, Sendable {
    package var partitions: [Cursor]
    /// Asks for the next page; empty after the last one.
    package var nextPageToken: String

    package init(partitions: [Cursor] = [], nextPageToken: String = "") {
        self.partitions = partitions
        self.nextPageToken = nextPageToken
    }

    static let table = unsafe MessageTable(
        PartitionQueryResponse(), held__partition_query_response__init,
        google__firestore__v1__partition_query_response__init,
        [.messages(\.partitions, \.partitions, \.n_partitions), .text(\.nextPageToken, \.next_page_token)])
}
