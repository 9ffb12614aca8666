import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages

/// A document that has changed, for all sessions of a hub. Confined to the thread of the hub.
///
/// The first session that sends it reads and encodes it; the others that send it at the same version copy the bytes.
/// The hub has them forgotten when it takes the next changes, so sessions that wait hold names only.
final class ChangedDocument {
    /// The path below `documents`.
    let path: [UInt8]
    private var encoded: (version: UInt64, document: EncodedDocument?)?

    init(path: [UInt8]) { self.path = path }

    /// The document at a version that has been read already; nil if it has not.
    func document(at version: UInt64) -> EncodedDocument?? {
        guard let encoded, encoded.version == version else { return nil }
        return .some(encoded.document)
    }

    func keep(_ document: EncodedDocument?, at version: UInt64) { encoded = (version, document) }

    func forget() { encoded = nil }
}

/// A stored document as it is sent.
struct EncodedDocument {
    /// The field `document` of a `DocumentChange`.
    let bytes: [UInt8]
    /// Where the `fields` entries are in `bytes`.
    let fields: Range<Int>
    let updateMicroseconds: UInt64
    let createMicroseconds: UInt64

    init(_ document: borrowing LentDocument, namePrefix: [UInt8]) {
        var writer = ByteBuffer(capacity: namePrefix.count + document.path.byteCount + document.fields.byteCount + 64)
        fields = ListenResponseWriter.appendDocument(
            ListenResponseWriter.Name(prefix: namePrefix.byteSpan, path: document.path), fields: document.fields,
            createMicroseconds: document.createMicroseconds, updateMicroseconds: document.updateMicroseconds,
            to: &writer)
        bytes = writer.copyBytes()
        updateMicroseconds = document.updateMicroseconds
        createMicroseconds = document.createMicroseconds
    }
}
