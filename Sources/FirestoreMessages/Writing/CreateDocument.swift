// CreateDocument: a new document under a chosen or a generated id; the answer is the Document.

internal import CFirestoreProto
package import DocumentModel

/// A request for a new document.
package struct CreateDocumentRequest: TableMessage, Equatable, Sendable {
    /// The documents root of a database, or a document.
    package var parent: String
    /// The collection below the parent.
    package var collectionID: String
    /// The new document's id; empty lets the server choose one.
    package var documentID: String
    /// The document; its name must be empty.
    package var document: DocumentMessage
    /// The fields wanted in the answer; nil asks for all.
    package var mask: DocumentMask?

    package init(
        parent: String, collectionID: String, documentID: String = "", document: DocumentMessage,
        mask: DocumentMask? = nil
    ) {
        self.parent = parent
        self.collectionID = collectionID
        self.documentID = documentID
        self.document = document
        self.mask = mask
    }

    static let table = unsafe MessageTable(
        CreateDocumentRequest(parent: "", collectionID: "", document: DocumentMessage(name: "", fields: [])),
        held__create_document_request__init, google__firestore__v1__create_document_request__init,
        [
            .text(\.parent, \.parent), .text(\.collectionID, \.collection_id), .text(\.documentID, \.document_id),
            .message(\.document, \.document, \.n_document), .optional(\.mask, \.mask, \.n_mask),
        ])
}
