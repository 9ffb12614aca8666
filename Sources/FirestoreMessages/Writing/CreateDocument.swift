// CreateDocument: a new document under a chosen or a generated id; the answer is the Document.
// CreateDocumentRequest: 1 parent, 2 collection_id, 3 document_id, 4 document, 5 mask.

package import DocumentModel

/// A request for a new document.
package struct CreateDocumentRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.CreateDocumentRequest

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
            case Field.parent: parent = try reader.string(tag)
            case Field.collectionId: collectionID = try reader.string(tag)
            case Field.documentId: documentID = try reader.string(tag)
            case Field.document: document = try DocumentMessage(wire: try reader.span(tag))
            case Field.mask: mask = try DocumentMask(wire: try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(Field.parent, string: parent)
        writer.writeIfSet(Field.collectionId, string: collectionID)
        writer.writeIfSet(Field.documentId, string: documentID)
        writer.withLengthPrefix(field: Field.document) { document.encode(into: &$0) }
        if let mask { writer.withLengthPrefix(field: Field.mask) { mask.encode(into: &$0) } }
    }
}
