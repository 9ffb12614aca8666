// UpdateDocument: sets a document or some of its fields, creating it if need be; the answer is the Document.
// UpdateDocumentRequest: 1 document, 2 update_mask, 3 mask, 4 current_document.

package import DocumentModel

/// A request to set a document.
package struct UpdateDocumentRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.UpdateDocumentRequest

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
        self.init(document: DocumentMessage(name: "", fields: []))
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.document: document = try DocumentMessage(wire: try reader.span(tag))
            case Field.updateMask: updateMask = try DocumentMask(wire: try reader.span(tag))
            case Field.mask: mask = try DocumentMask(wire: try reader.span(tag))
            case Field.currentDocument: precondition = try Precondition(wire: try reader.span(tag))
            default: try reader.skip(tag)
            }
        }
    }

    package func encode(into writer: inout WireWriter) {
        writer.withLengthPrefix(field: Field.document) { document.encode(into: &$0) }
        if let updateMask { writer.withLengthPrefix(field: Field.updateMask) { updateMask.encode(into: &$0) } }
        if let mask { writer.withLengthPrefix(field: Field.mask) { mask.encode(into: &$0) } }
        if let precondition { writer.withLengthPrefix(field: Field.currentDocument) { precondition.encode(into: &$0) } }
    }
}
