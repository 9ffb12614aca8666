// ListDocuments: the documents of a collection, page by page.

package import Basics
internal import CFirestoreProto
package import DocumentModel

/// A request for a page of a collection.
package struct ListDocumentsRequest: TableMessage, Equatable, Sendable {
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

    static let table = unsafe MessageTable(
        ListDocumentsRequest(parent: "", collectionID: ""), held__list_documents_request__init,
        google__firestore__v1__list_documents_request__init,
        [
            .text(\.parent, \.parent), .text(\.collectionID, \.collection_id), .number(\.pageSize, \.page_size),
            .text(\.pageToken, \.page_token), .text(\.orderBy, \.order_by), .optional(\.mask, \.mask, \.n_mask),
            .flag(\.showMissing, \.show_missing),
            .custom { held, message in
                message.consistency = unsafe consistency(of: held)
            } write: { message, held, arena in
                switch message.consistency {
                case .transaction(let id):
                    unsafe held.consistency_selector_case =
                        HELD__LIST_DOCUMENTS_REQUEST__CONSISTENCY_SELECTOR_TRANSACTION
                    unsafe held.transaction = arena.bytes(id)
                case .readTime(let time):
                    unsafe held.consistency_selector_case = HELD__LIST_DOCUMENTS_REQUEST__CONSISTENCY_SELECTOR_READ_TIME
                    unsafe held.read_time = arena.timestamp(time)
                case .latest: break
                case .newTransaction: preconditionFailure("a listing cannot begin a transaction")
                }
            },
        ])
}

extension ListDocumentsRequest {
    private static func consistency(of message: Held__ListDocumentsRequest) -> ReadConsistency {
        switch unsafe message.consistency_selector_case {
        case HELD__LIST_DOCUMENTS_REQUEST__CONSISTENCY_SELECTOR_TRANSACTION:
            unsafe .transaction(message.transaction.array)
        case HELD__LIST_DOCUMENTS_REQUEST__CONSISTENCY_SELECTOR_READ_TIME:
            unsafe .readTime(TimestampValue(message.read_time))
        default: .latest
        }
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

    package func encode(into writer: inout ByteBuffer) {
        for document in documents { writer.withLengthPrefix(field: Field.documents) { document.encode(into: &$0) } }
        writer.writeIfSet(Field.nextPageToken, string: nextPageToken)
    }
}
