// DeleteDocument: removes a document; the answer is empty. DeleteDocumentRequest: 1 name, 2 current_document.

package import DocumentModel

/// A request to remove a document; an absent one is fine without a precondition.
package struct DeleteDocumentRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.DeleteDocumentRequest

    /// The document's full resource name.
    package var name: String
    /// What must hold of the stored document.
    package var precondition: Precondition?

    package init(name: String, precondition: Precondition? = nil) {
        self.name = name
        self.precondition = precondition
    }

    package init(wire: RawSpan) throws {
        self.init(name: "")
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.name: name = try reader.string(tag)
            case Field.currentDocument: precondition = try Precondition(wire: try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.writeIfSet(Field.name, string: name)
        if let precondition { writer.withLengthPrefix(field: Field.currentDocument) { precondition.encode(into: &$0) } }
    }
}
