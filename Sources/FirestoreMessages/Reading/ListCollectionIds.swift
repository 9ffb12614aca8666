// ListCollectionIds: the collections below a document or the root.
// ListCollectionIdsRequest: 1 parent, 2 page_size, 3 page_token, 4 read_time.
// ListCollectionIdsResponse: 1 collection_ids*, 2 next_page_token.

package import DocumentModel

/// A request for the ids of the collections below a parent.
package struct ListCollectionIdsRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.ListCollectionIdsRequest

    static let consistencyFields = ReadConsistency.Fields(
        transaction: nil, newTransaction: nil, readTime: Field.readTime)

    /// The documents root of a database, or a document.
    package var parent: String
    /// The most ids wanted; 0 leaves the number to the server.
    package var pageSize: Int32
    /// The token of the page before, or empty.
    package var pageToken: String
    /// `.latest` or `.readTime`.
    package var consistency: ReadConsistency

    package init(parent: String, pageSize: Int32 = 0, pageToken: String = "", consistency: ReadConsistency = .latest) {
        self.parent = parent
        self.pageSize = pageSize
        self.pageToken = pageToken
        self.consistency = consistency
    }

    package init(wire: RawSpan) throws {
        self.init(parent: "")
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.parent: parent = try reader.string(tag)
            case Field.pageSize: pageSize = try reader.int32(tag)
            case Field.pageToken: pageToken = try reader.string(tag)
            default: if try !consistency.read(tag, from: &reader, Self.consistencyFields) { try reader.skip(tag) }
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(Field.parent, string: parent)
        writer.writeIfSet(Field.pageSize, int64: Int64(pageSize))
        writer.writeIfSet(Field.pageToken, string: pageToken)
        consistency.encode(into: &writer, Self.consistencyFields)
    }
}

/// A page of collection ids, ordered by their UTF-8 bytes.
package struct ListCollectionIdsResponse: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.ListCollectionIdsResponse

    package var collectionIDs: [String]
    /// Asks for the next page; empty after the last one.
    package var nextPageToken: String

    package init(collectionIDs: [String] = [], nextPageToken: String = "") {
        self.collectionIDs = collectionIDs
        self.nextPageToken = nextPageToken
    }

    package init(wire: RawSpan) throws {
        self.init()
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.collectionIds: collectionIDs.append(try reader.string(tag))
            case Field.nextPageToken: nextPageToken = try reader.string(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        for id in collectionIDs { writer.appendField(Field.collectionIds, string: id) }
        writer.writeIfSet(Field.nextPageToken, string: nextPageToken)
    }
}
