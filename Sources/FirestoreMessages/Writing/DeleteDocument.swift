// DeleteDocument: removes a document; the answer is empty.

package import Basics
internal import CFirestoreProto
package import DocumentModel

/// A request to remove a document; an absent one is fine without a precondition.
package struct DeleteDocumentRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__delete_document_request__init, google__firestore__v1__delete_document_request__init)

    /// The document's full resource name.
    package var name: String
    /// What must hold of the stored document.
    package var precondition: Precondition?

    package init(name: String, precondition: Precondition? = nil) {
        self.name = name
        self.precondition = precondition
    }

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe DeleteDocumentRequest(
                name: message.name.text,
                precondition: try lendLast(message.current_document, message.n_current_document) {
                    try Precondition(wire: $0)
                } ?? nil)
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.name = arena.bytes(name)
            unsafe (message.n_current_document, message.current_document) = arena.optional(precondition) {
                $0.encode(into: &$1)
            }
        }
    }
}
