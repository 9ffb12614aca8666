// GetDocument: one document, copied from the storage's page into the reply.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import QueryEngine

extension FirestoreService {
    func getDocument(_ call: Call, _ request: RawSpan) throws {
        let view = try GetDocumentRequestView(request)
        let name = try documentName(view.name)
        let access = try admit(call, view.name)
        let selection = view.mask?.selection
        if case .latest = view.consistency, access == nil {
            return try reader.withLatestDocument(name, coldRead) { (document) throws(RequestError) in
                // After the state is chosen.
                if let refusal = reader.newestReadRefusal { throw refusal }
                try send(call, name, document, selection)
            }
        }
        let selector = try view.consistency.selector(in: store)
        if try store.mustWait(for: selector) {
            let bytes = [UInt8](copying: view.name)
            let database = try database(name.databaseBytes)
            if let access, case .transaction = selector {
                try access.checkGet(name.pathBytes, judgedBeforeLocking(in: database))
            }
            return try withReadPoint(call, selector, in: database, locking: [bytes]) {
                try $0.sendDocument(
                    call, $0.documentName(bytes.byteSpan), at: $1, selection: selection, permittedBy: access)
            }
        }
        let point = try reader.readPoint(selector, inDatabase: name.databaseBytes)
        try sendDocument(call, name, at: point, selection: selection, permittedBy: access)
    }

    /// Ends the call with the document of this name as of a read point.
    ///
    /// - Parameter access: asked whether the document may be read; nil if it may.
    func sendDocument(
        _ call: Call, _ name: borrowing ResourceNameView, at point: ReadPoint, selection: FieldSelection?,
        permittedBy access: (any CallAccess)?
    ) throws(RequestError) {
        try access?.checkGet(name.pathBytes, judged(at: point))
        try reader.withDocument(name, at: point, coldRead) { (document) throws(RequestError) in
            try send(call, name, document, selection)
        }
    }

    @inline(__always)
    private func send(
        _ call: Call, _ name: borrowing ResourceNameView, _ document: FoundDocument?, _ selection: FieldSelection?
    ) throws(RequestError) {
        guard let document else {
            counters.documentsMissing.add()
            throw RequestError(
                .notFound, "Document (\(String(repairingUTF8: name.bytes))) not found.",
                documentName: String(repairingUTF8: name.bytes))
        }
        counters.countRead(name.pathBytes, of: String(repairingUTF8: name.databaseBytes))
        try withSelectedFields(document.fields, selection) { fields in
            succeed(call) { writer in
                writer.appendDocument(
                    name: document.name, fields: fields, createMicroseconds: document.createMicroseconds,
                    updateMicroseconds: document.updateMicroseconds)
            }
        }
    }

    /// Lends a document's fields, or those that a mask selects.
    @inline(__always)
    func withSelectedFields(
        _ fields: RawSpan, _ selection: FieldSelection?, _ body: (RawSpan) throws(RequestError) -> Void
    ) throws(RequestError) {
        guard let selection else { return try body(fields) }
        var selected = ByteBuffer()
        selection.append(fields, into: &selected)
        try body(selected.bytes)
    }
}

extension DocumentMask {
    /// The fields that a read mask lets through; none for an empty one.
    var selection: FieldSelection { FieldSelection(paths) }
}
