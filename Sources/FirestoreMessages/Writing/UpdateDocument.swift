// UpdateDocument: sets a document or some of its fields, creating it if need be; the answer is the Document.

package import Basics
internal import CFirestoreProto
package import DocumentModel

/// A request to set a document.
package struct UpdateDocumentRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__update_document_request__init, google__firestore__v1__update_document_request__init)

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

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe UpdateDocumentRequest(
                document: try lendLast(message.document, message.n_document) { try DocumentMessage(wire: $0) }
                    ?? DocumentMessage(name: "", fields: []),
                updateMask: try lendLast(message.update_mask, message.n_update_mask) { try DocumentMask(wire: $0) },
                mask: try lendLast(message.mask, message.n_mask) { try DocumentMask(wire: $0) },
                precondition: try lendLast(message.current_document, message.n_current_document) {
                    try Precondition(wire: $0)
                } ?? nil)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe (message.n_document, message.document) = arena.optional(document) { $0.encode(into: &$1) }
            unsafe (message.n_update_mask, message.update_mask) = arena.optional(updateMask) { $0.encode(into: &$1) }
            unsafe (message.n_mask, message.mask) = arena.optional(mask) { $0.encode(into: &$1) }
            unsafe (message.n_current_document, message.current_document) = arena.optional(precondition) {
                $0.encode(into: &$1)
            }
        }
    }
}
