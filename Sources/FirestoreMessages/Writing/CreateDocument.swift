// CreateDocument: a new document under a chosen or a generated id; the answer is the Document.

package import Basics
internal import CFirestoreProto
package import DocumentModel

/// A request for a new document.
package struct CreateDocumentRequest: FirestoreMessage, Equatable, Sendable {
    private static let layout = unsafe MessageLayout(
        held__create_document_request__init, google__firestore__v1__create_document_request__init)

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

    package init(wire: RawSpan) throws {
        self = try unsafe Self.layout.read(wire) { message in
            unsafe CreateDocumentRequest(
                parent: message.parent.text, collectionID: message.collection_id.text,
                documentID: message.document_id.text,
                document: try lendLast(message.document, message.n_document) { try DocumentMessage(wire: $0) }
                    ?? DocumentMessage(name: "", fields: []),
                mask: try lendLast(message.mask, message.n_mask) { try DocumentMask(wire: $0) })
        }
    }

    package func encode(into writer: inout ByteBuffer) {
        unsafe Self.layout.write(into: &writer) { message, arena in
            unsafe message.parent = arena.bytes(parent)
            unsafe message.collection_id = arena.bytes(collectionID)
            unsafe message.document_id = arena.bytes(documentID)
            unsafe (message.n_document, message.document) = arena.optional(document) { $0.encode(into: &$1) }
            unsafe (message.n_mask, message.mask) = arena.optional(mask) { $0.encode(into: &$1) }
        }
    }
}
