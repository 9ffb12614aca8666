// DeleteDocument: removes a document; the answer is empty.

internal import CFirestoreProto
package import DocumentModel

/// A request to remove a document; an absent one is fine without a precondition.
package struct DeleteDocumentRequest: TableMessage, Equatable, Sendable {
    /// The document's full resource name.
    package var name: String
    /// What must hold of the stored document.
    package var precondition: Precondition?

    package init(name: String, precondition: Precondition? = nil) {
        self.name = name
        self.precondition = precondition
    }

    static let table = unsafe MessageTable(
        DeleteDocumentRequest(name: ""), held__delete_document_request__init,
        google__firestore__v1__delete_document_request__init,
        [
            .text(\.name, \.name),
            .precondition(\.precondition, \.current_document, \.n_current_document),
        ])
}
