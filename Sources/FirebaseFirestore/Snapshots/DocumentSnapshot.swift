public import DocumentCoding
public import Foundation

/// The contents of a document when it was read, or the fact that it did not exist.
///
/// Fields are decoded on demand from the bytes of the server. Immutable and thread-safe.
public class DocumentSnapshot: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; the properties are constants of Sendable types.

    /// The document that was read.
    public let reference: DocumentReference
    /// `nil` if the document did not exist.
    let stored: VisibleDocument?

    /// The source of the contents.
    public final let metadata: SnapshotMetadata

    init(reference: DocumentReference, stored: VisibleDocument?, metadata: SnapshotMetadata = .fromServer) {
        self.reference = reference
        self.stored = stored
        self.metadata = metadata
    }

    /// Whether the document existed.
    public final var exists: Bool { stored != nil }

    /// The id of the document.
    public final var documentID: String { reference.documentID }

    /// All fields, or `nil` if the document did not exist. Numbers are `NSNumber`, times `Timestamp`, null `NSNull`.
    @discardableResult
    public func data() -> [String: Any]? { data(with: .none) }

    /// All fields, or `nil` if the document did not exist.
    ///
    /// - Parameter serverTimestampBehavior: what server timestamps of pending writes read as.
    @discardableResult
    public func data(with serverTimestampBehavior: ServerTimestampBehavior) -> [String: Any]? {
        stored.map { SnapshotValues.dictionary($0, of: reference, with: serverTimestampBehavior) }
    }

    /// The value of a field, or `nil` if there is no such field or no document.
    ///
    /// - Parameter field: a dotted `String` or a `FieldPath`; anything else is a programming error.
    @discardableResult
    public final func get(_ field: Any) -> Any? { get(field, serverTimestampBehavior: .none) }

    /// The value of a field, or `nil` if there is no such field or no document.
    @discardableResult
    public final func get(_ field: Any, serverTimestampBehavior: ServerTimestampBehavior) -> Any? {
        let path = SnapshotValues.fieldPath(field)
        return stored.flatMap { SnapshotValues.value($0, at: path, of: reference, with: serverTimestampBehavior) }
    }

    /// The value of a field, or `nil` if there is no such field or no document.
    public final subscript(field: Any) -> Any? { self.get(field) }

    /// Two snapshots are equal if they show the same document with the same content and metadata.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? DocumentSnapshot else { return false }
        return reference == other.reference && stored?.fields == other.stored?.fields
            && (stored == nil) == (other.stored == nil) && metadata == other.metadata
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(reference)
        hasher.combine(stored?.fields)
        return hasher.finalize()
    }

    public override var description: String { "<\(type(of: self)): \(reference.path) exists=\(exists)>" }
}

extension DocumentSnapshot {
    /// Makes a value of the document.
    ///
    /// - Throws: `DecodingError` where the document does not have the form of the type; for a document that does not
    ///   exist `DecodingError.valueNotFound`, unless the type is optional.
    public func data<T: Decodable>(
        as type: T.Type, with serverTimestampBehavior: ServerTimestampBehavior = .none,
        decoder: Firestore.Decoder = .standard
    ) throws -> T {
        try SnapshotValues.decode(type, stored, of: reference, with: serverTimestampBehavior, decoder: decoder)
    }
}

/// A document that a query found: it exists, so its data is never `nil`.
public final class QueryDocumentSnapshot: DocumentSnapshot, @unchecked Sendable {
    init(reference: DocumentReference, found stored: VisibleDocument, isFromCache: Bool = false) {
        super.init(
            reference: reference, stored: stored,
            metadata: .of(hasPendingWrites: stored.hasPendingWrites, isFromCache: isFromCache))
    }

    /// All fields.
    @discardableResult
    public override func data() -> [String: Any] { data(with: .none) }

    /// All fields.
    @discardableResult
    public override func data(with serverTimestampBehavior: ServerTimestampBehavior) -> [String: Any] {
        super.data(with: serverTimestampBehavior) ?? [:]
    }
}
