// CreateDocument, UpdateDocument and DeleteDocument: one write each, answered with the document as the write left it.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages

extension FirestoreService {
    func createDocument(_ call: Call, _ request: RawSpan) throws {
        let message = try CreateDocumentRequest(wire: request)
        guard message.document.name.isEmpty else {
            throw RequestError.invalidArgument("document.name must not be set")
        }
        guard !message.collectionID.isEmpty else {
            throw RequestError.invalidArgument("collectionId is the empty string.")
        }
        let id = message.documentID.isEmpty ? GeneratedID.random() : message.documentID
        try ResourceID.check(message.collectionID, isCollection: true)
        try ResourceID.check(id, isCollection: false)
        let name = "\(message.parent)/\(message.collectionID)/\(id)"
        try write(call, name, mask: message.mask) { (writes, name) throws(RequestError) in
            try writes.update(name, fields: message.document.fields.span.bytes, precondition: .exists(false))
        }
    }

    func updateDocument(_ call: Call, _ request: RawSpan) throws {
        let message = try UpdateDocumentRequest(wire: request)
        try write(call, message.document.name, mask: message.mask) { (writes, name) throws(RequestError) in
            try writes.update(
                name, fields: message.document.fields.span.bytes, mask: message.updateMask,
                precondition: message.precondition)
        }
    }

    func deleteDocument(_ call: Call, _ request: RawSpan) throws {
        let message = try DeleteDocumentRequest(wire: request)
        let (writes, access) = try writeList(call, message.name) { (writes, name) throws(RequestError) in
            try writes.delete(name, precondition: message.precondition)
        }
        commit(call, writes, permittedBy: access) { service, _ in service.succeed(call) { _ in } }
    }

    /// Commits one write and answers with the document as of that commit, whatever came after it. Who may write it gets
    /// this answer, also if rules do not permit to read it: the write is applied.
    private func write(
        _ call: Call, _ name: String, mask: DocumentMask?,
        _ build: (inout WriteList, RawSpan) throws(RequestError) -> Void
    ) throws(RequestError) {
        let (writes, access) = try writeList(call, name, build)
        let database = writes.database
        let selection = mask?.selection
        commit(call, writes, permittedBy: access) { service, result in
            let commitTime = TimestampValue(microseconds: Int64(clamping: result.commitMicroseconds))
            try service.withReadPoint(call, .time(commitTime), in: database) { service, point in
                try name.withUTF8Span { (name) throws(RequestError) in
                    try service.sendDocument(
                        call, service.documentName(name), at: point, selection: selection, permittedBy: nil)
                }
            }
        }
    }

    /// A list of the one write that `build` appends for the document of this name.
    private func writeList(
        _ call: Call, _ name: String,
        _ build: (inout WriteList, RawSpan) throws(RequestError) -> Void
    ) throws(RequestError) -> (WriteList, (any CallAccess)?) {
        try name.withUTF8Span { (name) throws(RequestError) in
            let view = try documentName(name)
            let access = try admit(call, name)
            var writes = WriteList(database: try database(view.databaseBytes))
            try build(&writes, name)
            return (writes, access)
        }
    }
}

/// Ids that the server makes up.
package enum GeneratedID {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")

    /// Twenty random letters and digits: 119 bits.
    package static func random() -> String {
        String((0..<20).map { _ in alphabet[Int.random(in: 0..<alphabet.count)] })
    }
}
