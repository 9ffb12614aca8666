// From stored bytes to what programs ask for.

import DocumentCoding
import DocumentModel
import FirebaseCore
import Foundation

/// Reads the fields of snapshots.
enum SnapshotValues {
    static func dictionary(
        _ document: VisibleDocument, of reference: DocumentReference, with behavior: ServerTimestampBehavior
    ) -> [String: Any] {
        readable(reference.name, otherwise: [:]) { () throws(MalformedDocument) in
            try DocumentFields.dictionary(from: document.fields(with: behavior).span.bytes, owner: reference.owner)
        }
    }

    /// The path that a program gave; anything but a dotted `String` or a `FieldPath` is a programming error.
    static func fieldPath(_ field: Any) -> DocumentCoding.FieldPath {
        do {
            return try DocumentCoding.FieldPath.reading(field)
        } catch {
            programmingError(error.description)
        }
    }

    static func value(
        _ document: VisibleDocument, at path: DocumentCoding.FieldPath, of reference: DocumentReference,
        with behavior: ServerTimestampBehavior
    ) -> Any? {
        if path.isDocumentID { return reference.documentID }
        return readable(reference.name, otherwise: nil) { () throws(MalformedDocument) in
            try DocumentFields.value(
                at: path, in: document.fields(with: behavior).span.bytes, owner: reference.owner)
        }
    }

    /// The value of a `Value` message.
    static func value(_ bytes: [UInt8], of firestore: Firestore) -> Any {
        readable("a total", otherwise: NSNull()) { () throws(MalformedDocument) in
            try DocumentFields.value(from: bytes.span.bytes, owner: firestore)
        }
    }

    static func decode<T: Decodable>(
        _ type: T.Type, _ document: VisibleDocument?, of reference: DocumentReference,
        with serverTimestampBehavior: ServerTimestampBehavior, decoder: FirestoreDecoder
    ) throws -> T {
        guard let document else { return try decoder.decodeMissing(type) }
        let fields = document.fields(with: serverTimestampBehavior)
        return try decoder.decode(type, fromDocumentBytes: fields.span.bytes, of: reference)
    }

    /// Bytes that cannot be read are the server's fault. `data()` and its relatives cannot throw, and a client must not
    /// die of what a server sends: such a document reads as empty, and the log reports it.
    static func readable<Result>(
        _ what: String, otherwise: Result, _ body: () throws(MalformedDocument) -> Result
    ) -> Result {
        do {
            return try body()
        } catch {
            FirebaseLog.write(.error, "The server sent data that cannot be read (\(what)): \(error)")
            return otherwise
        }
    }
}
