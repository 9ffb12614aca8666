// ListDocuments: the documents of a collection, page by page.
// ListDocumentsRequest: 1 parent, 2 collection_id, 3 page_size, 4 page_token, 6 order_by, 7 mask,
// 8 transaction | 10 read_time, 12 show_missing. ListDocumentsResponse: 1 documents*, 2 next_page_token.

package import DocumentModel

/// A request for a page of a collection.
package struct ListDocumentsRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.ListDocumentsRequest

    static let consistencyFields = ReadConsistency.Fields(
        transaction: Field.transaction, newTransaction: nil, readTime: Field.readTime)

    /// The documents root of a database, or a document.
    package var parent: String
    /// The collection below the parent; empty asks for all of them.
    package var collectionID: String
    /// The most documents wanted; 0 leaves the number to the server.
    package var pageSize: Int32
    /// The token of the page before, or empty.
    package var pageToken: String
    /// An order as text, for example `a desc, __name__`; empty orders by name.
    package var orderBy: String
    /// The fields wanted; nil asks for all, an empty mask for none.
    package var mask: DocumentMask?
    package var consistency: ReadConsistency
    /// Whether documents that do not exist but have descendants are listed too, by name alone.
    package var showMissing: Bool

    package init(
        parent: String, collectionID: String, pageSize: Int32 = 0, pageToken: String = "", orderBy: String = "",
        mask: DocumentMask? = nil, consistency: ReadConsistency = .latest, showMissing: Bool = false
    ) {
        self.parent = parent
        self.collectionID = collectionID
        self.pageSize = pageSize
        self.pageToken = pageToken
        self.orderBy = orderBy
        self.mask = mask
        self.consistency = consistency
        self.showMissing = showMissing
    }

    package init(wire: RawSpan) throws {
        self.init(parent: "", collectionID: "")
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.parent: parent = try reader.string(tag)
            case Field.collectionId: collectionID = try reader.string(tag)
            case Field.pageSize: pageSize = try reader.int32(tag)
            case Field.pageToken: pageToken = try reader.string(tag)
            case Field.orderBy: orderBy = try reader.string(tag)
            case Field.mask: mask = try DocumentMask(wire: try reader.span(tag))
            case Field.showMissing: showMissing = try reader.boolean(tag)
            default: if try !consistency.read(tag, from: &reader, Self.consistencyFields) { try reader.skip(tag) }
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(Field.parent, string: parent)
        writer.writeIfSet(Field.collectionId, string: collectionID)
        writer.writeIfSet(Field.pageSize, int64: Int64(pageSize))
        writer.writeIfSet(Field.pageToken, string: pageToken)
        writer.writeIfSet(Field.orderBy, string: orderBy)
        if let mask { writer.withLengthPrefix(field: Field.mask) { mask.encode(into: &$0) } }
        consistency.encode(into: &writer, Self.consistencyFields)
        writer.writeIfSet(Field.showMissing, boolean: showMissing)
    }
}

/// A page of a collection. Servers write it piece by piece while they scan; this form is for readers.
package struct ListDocumentsResponse: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.ListDocumentsResponse

    /// In the order asked for; a missing document has no times.
    package var documents: [DocumentMessage]
    /// Asks for the next page; empty after the last one.
    package var nextPageToken: String

    package init(documents: [DocumentMessage] = [], nextPageToken: String = "") {
        self.documents = documents
        self.nextPageToken = nextPageToken
    }

    package init(wire: RawSpan) throws {
        self.init()
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.documents: documents.append(try DocumentMessage(wire: try reader.span(tag)))
            case Field.nextPageToken: nextPageToken = try reader.string(tag)
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        for document in documents { writer.withLengthPrefix(field: Field.documents) { document.encode(into: &$0) } }
        writer.writeIfSet(Field.nextPageToken, string: nextPageToken)
    }
}
