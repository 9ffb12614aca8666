// PartitionQuery: names at which a query can be cut into parts of about the same size.
// PartitionQueryRequest: 1 parent, 2 structured_query, 3 partition_count, 4 page_token, 5 page_size, 6 read_time.
// PartitionQueryResponse: 1 partitions*, 2 next_page_token.

package import DocumentModel

/// A request for the cursors that cut a collection group into partitions.
package struct PartitionQueryRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.PartitionQueryRequest

    static let consistencyFields = ReadConsistency.Fields(
        transaction: nil, newTransaction: nil, readTime: Field.readTime)

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
        self.init(parent: "", query: nil)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.parent: parent = try reader.string(tag)
            case Field.structuredQuery: query = try StructuredQuery(wire: try reader.span(tag))
            case Field.partitionCount: partitionCount = try reader.int64(tag)
            case Field.pageToken: pageToken = try reader.string(tag)
            case Field.pageSize: pageSize = try reader.int32(tag)
            default: if try !consistency.read(tag, from: &reader, Self.consistencyFields) { try reader.skip(tag) }
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(Field.parent, string: parent)
        if let query { writer.withLengthPrefix(field: Field.structuredQuery) { query.encode(into: &$0) } }
        writer.writeIfSet(Field.partitionCount, int64: partitionCount)
        writer.writeIfSet(Field.pageToken, string: pageToken)
        writer.writeIfSet(Field.pageSize, int64: Int64(pageSize))
        consistency.encode(into: &writer, Self.consistencyFields)
    }
}

/// A page of cursors, each a reference with `before` set, increasing.
package struct PartitionQueryResponse: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.PartitionQueryResponse

    package var partitions: [Cursor]
    /// Asks for the next page; empty after the last one.
    package var nextPageToken: String

    package init(partitions: [Cursor] = [], nextPageToken: String = "") {
        self.partitions = partitions
        self.nextPageToken = nextPageToken
    }

    package init(wire: RawSpan) throws {
        self.init()
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.partitions: partitions.append(try Cursor(wire: try reader.span(tag)))
            case Field.nextPageToken: nextPageToken = try reader.string(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        for cursor in partitions { writer.withLengthPrefix(field: Field.partitions) { cursor.encode(into: &$0) } }
        writer.writeIfSet(Field.nextPageToken, string: nextPageToken)
    }
}
