// One result of a pipeline.

public import DocumentCoding
import DocumentModel
import FirestoreMessages
import Foundation

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

    /// All fields, without the name of the document, which is in ``ref``. The value of one that is null is nil; within
    /// maps and arrays null is `NSNull`.
    public var data: [String: (any Sendable)?] {
        var fields = SnapshotValues.readable("a result of a pipeline", otherwise: [:]) {
            () throws(MalformedDocument) in
            try DocumentFields.dictionary(from: self.fields.span.bytes, owner: firestore)
        }
        fields["__name__"] = nil
        return fields.mapValues { Self.sendable($0) }
    }

    /// The value at a path with dots between its names; nil if there is none, or if it is null.
    public func get(_ fieldName: String) -> (any Sendable)? { self.get(DocumentCoding.FieldPath.ofDotted(fieldName)) }

    /// The value at a path; nil if there is none, or if it is null.
    public func get(_ fieldPath: DocumentCoding.FieldPath) -> (any Sendable)? {
        let value = SnapshotValues.readable("a result of a pipeline", otherwise: nil) { () throws(MalformedDocument) in
            try DocumentFields.value(at: fieldPath, in: fields.span.bytes, owner: firestore)
        }
        return value.flatMap { Self.sendable($0) }
    }

    /// The value of a field; nil if there is none, or if it is null.
    public func get(_ field: Field) -> (any Sendable)? { self.get(field.fieldName) }

    /// All types that values of documents have are immutable. `Any` does not say so; it has the same layout.
    private static func sendable(_ value: Any) -> (any Sendable)? {
        value is NSNull ? nil : unsafe unsafeBitCast(value as Any, to: (any Sendable).self)
    }
}
