// CreateDocument: a new document under a chosen or a generated id; the answer is the Document.
// CreateDocumentRequest: 1 parent, 2 collection_id, 3 document_id, 4 document, 5 mask.

package import DocumentModel

/// A request for a new document.
package struct CreateDocumentRequest: FirestoreMessage, Equatable, Sendable {
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
        self.init(parent: "", collectionID: "", document: DocumentMessage(name: "", fields: []))
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case 1: parent = try reader.string(tag)
            case 2: collectionID = try reader.string(tag)
            case 3: documentID = try reader.string(tag)
            case 4: document = try DocumentMessage(wire: try reader.span(tag))
            case 5: mask = try DocumentMask(wire: try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(1, string: parent)
        writer.writeIfSet(2, string: collectionID)
        writer.writeIfSet(3, string: documentID)
        writer.withLengthPrefix(field: 4) { document.encode(into: &$0) }
        if let mask { writer.withLengthPrefix(field: 5) { mask.encode(into: &$0) } }
    }
}
