// UpdateDocument: sets a document or some of its fields, creating it if need be; the answer is the Document.

internal import CFirestoreProto
package import DocumentModel

/// A request to set a document.
package struct UpdateDocumentRequest: TableMessage, Equatable, Sendable {
    /// The document by its full name.
    package var document: DocumentMessage
    /// The fields to change; nil replaces the document. Present and empty differs from absent.
    package var updateMask: DocumentMask?
    /// The fields wanted in the answer; nil asks for all.
    package var mask: DocumentMask?
    /// What must hold of the stored document.
    package var precondition: Precondition?

    package init(
        document: DocumentMessage, updateMask: DocumentMask? = nil, mask: DocumentMask? = nil,
        precondition: Precondition? = nil
    ) {
        self.document = document
        self.updateMask = updateMask
        self.mask = mask
        self.precondition = precondition
    }

    static let table = unsafe MessageTable(
        UpdateDocumentRequest(document: DocumentMessage(name: "", fields: [])), held__update_document_request__init,
        google__firestore__v1__update_document_request__init,
        [
            .message(\.document, \.document, \.n_document), .optional(\.updateMask, \.update_mask, \.n_update_mask),
            .optional(\.mask, \.mask, \.n_mask),
            .precondition(\.precondition, \.current_document, \.n_current_document),
        ])
}
