// PartitionQuery: names at which a query can be cut into parts of about the same size.

package import Basics
internal import CFirestoreProto
package import DocumentModel

/// A request for the cursors that cut a collection group into partitions.
package struct PartitionQueryRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__partition_query_request__init, google__firestore__v1__partition_query_request__init)

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

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            let hasQuery =
                unsafe message.query_type_case == HELD__PARTITION_QUERY_REQUEST__QUERY_TYPE_STRUCTURED_QUERY
            let hasTime =
                unsafe message.consistency_selector_case
                == HELD__PARTITION_QUERY_REQUEST__CONSISTENCY_SELECTOR_READ_TIME
            return unsafe PartitionQueryRequest(
                parent: message.parent.text,
                query: hasQuery ? try message.structured_query.lend { try StructuredQuery(wire: $0) } : nil,
                partitionCount: message.partition_count, pageToken: message.page_token.text,
                pageSize: message.page_size,
                consistency: hasTime ? .readTime(TimestampValue(message.read_time)) : .latest)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.parent = arena.bytes(parent)
            if let query {
                unsafe message.query_type_case = HELD__PARTITION_QUERY_REQUEST__QUERY_TYPE_STRUCTURED_QUERY
                unsafe message.structured_query = arena.bytes { query.encode(into: &$0) }
            }
            unsafe message.partition_count = partitionCount
            unsafe message.page_token = arena.bytes(pageToken)
            unsafe message.page_size = pageSize
            if case .readTime(let time) = consistency {
                unsafe message.consistency_selector_case = HELD__PARTITION_QUERY_REQUEST__CONSISTENCY_SELECTOR_READ_TIME
                unsafe message.read_time = arena.timestamp(time)
            }
        }
    }
}

/// A page of cursors, each a reference with `before` set, increasing.
package struct PartitionQueryResponse: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__partition_query_response__init, google__firestore__v1__partition_query_response__init)

    package var partitions: [Cursor]
    /// Asks for the next page; empty after the last one.
    package var nextPageToken: String

    package init(partitions: [Cursor] = [], nextPageToken: String = "") {
        self.partitions = partitions
        self.nextPageToken = nextPageToken
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe PartitionQueryResponse(
                partitions: try elements(message.partitions, message.n_partitions) { cursor in
                    try unsafe cursor.lend { try Cursor(wire: $0) }
                }, nextPageToken: message.next_page_token.text)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_partitions, message.partitions) = arena.list(partitions) { cursor in
                unsafe arena.bytes { cursor.encode(into: &$0) }
            }
            unsafe message.next_page_token = arena.bytes(nextPageToken)
        }
    }
}
