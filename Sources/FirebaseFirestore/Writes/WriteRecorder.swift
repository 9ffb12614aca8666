// The writes of a batch or a transaction, recorded in order, with the rules that concern several of them.

import Basics
import DocumentCoding
import DocumentModel
import FirestoreMessages

/// Collects the writes of one commit.
struct WriteRecorder {
    private(set) var writes: CommitWrites
    /// The names of the written documents, once for each write.
    private(set) var documents: [String] = []
    /// A failure that the commit will end in without being sent, found while recording.
    private(set) var failure: RequestError?
    /// Documents whose last recorded write deletes them.
    private var deleted: Set<UTF8Text> = []

    init(database: DatabaseName) { writes = CommitWrites(database: database) }

    /// Replaces a document, or merges into it where the data has a mask.
    mutating func set(_ name: String, _ data: DocumentWriteData, precondition: Precondition? = nil) {
        set(
            name, fields: data.fields.span.bytes, mask: data.mask, precondition: precondition,
            transforms: data.transforms)
    }

    /// Replaces a document, or merges into it where there is a mask.
    mutating func set(
        _ name: String, fields: RawSpan, mask: [String]? = nil, precondition: Precondition? = nil,
        transforms: [FieldTransformData]
    ) {
        documents.append(name)
        if !deleted.isEmpty { deleted.remove(UTF8Text(name)) }
        writes.set(
            name, fields: fields, mask: mask, precondition: precondition,
            transforms: transforms.map(EncodedTransform.init))
    }

    /// Changes fields of a document that must exist.
    mutating func update(_ name: String, _ data: DocumentWriteData) {
        if deleted.contains(UTF8Text(name)) {
            fail(.invalidArgument("Cannot update a document after it was deleted in the same commit: \(name)"))
        }
        documents.append(name)
        writes.set(
            name, fields: data.fields, mask: data.mask ?? [], precondition: .exists(true),
            transforms: data.transforms.map(EncodedTransform.init))
    }

    /// Deletes a document.
    mutating func delete(_ name: String) {
        documents.append(name)
        deleted.insert(UTF8Text(name))
        writes.delete(name)
    }

    /// Whether a recorded write is to a document.
    func writes(to name: String) -> Bool { documents.contains { $0.hasSameUTF8(as: name) } }

    /// Lets the commit end in `error`; the first one counts.
    mutating func fail(_ error: RequestError) {
        if failure == nil { failure = error }
    }
}

extension EncodedTransform {
    init(_ data: FieldTransformData) {
        self.init(path: DocumentCoding.FieldPath.serverFormat(data.path), operation: data.operation)
    }
}
