// One result of a pipeline.

public import DocumentCoding
import DocumentModel
import FirestoreMessages

/// A result of a pipeline: a document, or what stages have made of documents. Immutable and thread-safe.
public struct PipelineResult: Sendable {
    /// The document; nil for totals and other results that are not documents.
    public let ref: DocumentReference?
    /// When the document was created.
    public let createTime: Timestamp?
    /// When the document was changed last.
    public let updateTime: Timestamp?
    private let firestore: Firestore
    private let fields: [UInt8]

    init(_ message: DocumentMessage, _ firestore: Firestore) {
        self.firestore = firestore
        fields = message.fields
        ref = message.name.isEmpty ? nil : DocumentReference(name: message.name, owner: firestore)
        createTime = message.createTime.map { Timestamp(seconds: $0.seconds, nanoseconds: $0.nanoseconds) }
        updateTime = message.updateTime.map { Timestamp(seconds: $0.seconds, nanoseconds: $0.nanoseconds) }
    }

    /// The document's id; nil for results that are not documents.
    public var id: String? { ref?.documentID }

    /// All fields, as `DocumentSnapshot` returns them.
    public var data: [String: Any] {
        SnapshotValues.readable("a result of a pipeline", otherwise: [:]) { () throws(MalformedDocument) in
            try DocumentFields.dictionary(from: fields.span.bytes, owner: firestore)
        }
    }

    /// The value at a path with dots between its names; nil if there is none.
    public func get(_ fieldName: String) -> Any? { self.get(DocumentCoding.FieldPath.ofDotted(fieldName)) }

    /// The value at a path; nil if there is none.
    public func get(_ fieldPath: DocumentCoding.FieldPath) -> Any? {
        SnapshotValues.readable("a result of a pipeline", otherwise: nil) { () throws(MalformedDocument) in
            try DocumentFields.value(at: fieldPath, in: fields.span.bytes, owner: firestore)
        }
    }

    /// The value of a field; nil if there is none.
    public func get(_ field: Field) -> Any? { self.get(field.fieldName) }
}
