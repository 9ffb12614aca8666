// GetDocument: one document. GetDocumentRequest: 1 name, 2 mask, 3 transaction | 5 read_time. The response is a
// Document.

package import Basics
package import DocumentModel

/// A request for one document, with its own storage.
package struct GetDocumentRequest: FirestoreMessage, Equatable, Sendable {
    private typealias Field = FieldNumber.GetDocumentRequest

    static let consistencyFields = ReadConsistency.Fields(
        transaction: Field.transaction, newTransaction: nil, readTime: Field.readTime)

    /// The document's full resource name.
    package var name: String
    /// The fields wanted; nil asks for all, an empty mask for none.
    package var mask: DocumentMask?
    package var consistency: ReadConsistency

    package init(name: String, mask: DocumentMask? = nil, consistency: ReadConsistency = .latest) {
        self.name = name
        self.mask = mask
        self.consistency = consistency
    }

    package init(wire: RawSpan) throws {
        let view = try GetDocumentRequestView(wire)
        guard let name = String(validatingUTF8: view.name) else { throw InvalidDocument(.invalidUTF8, offset: 0) }
        self.init(name: name, mask: view.mask, consistency: view.consistency)
    }

    package func encode(into writer: inout ByteBuffer) {
        writer.writeIfSet(Field.name, string: name)
        if let mask { writer.withLengthPrefix(field: Field.mask) { mask.encode(into: &$0) } }
        consistency.encode(into: &writer, Self.consistencyFields)
    }
}

/// A request for one document, lent; allocates nothing unless it has a mask or a transaction.
package struct GetDocumentRequestView: ~Escapable {
    private typealias Field = FieldNumber.GetDocumentRequest

    /// The document's full resource name; not checked.
    package private(set) var name: RawSpan
    package private(set) var mask: DocumentMask?
    package private(set) var consistency = ReadConsistency.latest

    @_lifetime(copy wire)
    package init(_ wire: RawSpan) throws {
        name = wire.extracting(first: 0)
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.name: name = try reader.span(tag)
            case Field.mask: mask = try DocumentMask(wire: try reader.span(tag))
            default:
                if try !consistency.read(tag, from: &reader, GetDocumentRequest.consistencyFields) {
                    try reader.skip(tag)
                }
            }
        }
    }
}
