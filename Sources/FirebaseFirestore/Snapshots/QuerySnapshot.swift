// The results of a query at one moment.

public import Foundation

/// The documents that a query found, in its order. Immutable and thread-safe.
public final class QuerySnapshot: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; the properties are constants of Sendable types.

    /// The query that was run.
    public let query: Query
    /// The documents found, in the query's order.
    public let documents: [QueryDocumentSnapshot]

    /// The source of the contents.
    public let metadata: SnapshotMetadata
    /// The changes since the snapshot before; `nil` for a query that was read once.
    private let changes: [DocumentChange]?

    init(
        query: Query, documents: [QueryDocumentSnapshot], changes: [DocumentChange]? = nil,
        metadata: SnapshotMetadata = .fromServer
    ) {
        self.query = query
        self.documents = documents
        self.changes = changes
        self.metadata = metadata
    }

    /// How many documents were found.
    public var count: Int { documents.count }
    /// Whether none was found.
    public var isEmpty: Bool { documents.isEmpty }
    /// What changed since the snapshot before; for a query that was read once, every document was added.
    public var documentChanges: [DocumentChange] { documentChanges(includeMetadataChanges: false) }

    /// The changes since the previous snapshot. Changes of metadata are included on request.
    @discardableResult
    public func documentChanges(includeMetadataChanges: Bool) -> [DocumentChange] {
        if let changes { return changes }
        return documents.enumerated().map { index, document in
            DocumentChange(type: .added, document: document, oldIndex: UInt(NSNotFound), newIndex: UInt(index))
        }
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? QuerySnapshot else { return false }
        return query == other.query && documents == other.documents && metadata == other.metadata
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(query)
        hasher.combine(documents.count)
        return hasher.finalize()
    }
}

/// What happened to a document in a query's results.
public enum DocumentChangeType: Int, Sendable {
    /// The document is new in the results.
    case added
    /// The document has changed and is still in the results.
    case modified
    /// The document is no longer in the results.
    case removed
}

/// A change of one document between two snapshots of a query. Immutable and thread-safe.
public final class DocumentChange: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; the properties are constants of Sendable types.

    /// The kind of change.
    public let type: DocumentChangeType
    /// The document after the change; before it, if the document was removed.
    public let document: QueryDocumentSnapshot
    /// The place in the snapshot before, `UInt(NSNotFound)` for an added document.
    public let oldIndex: UInt
    /// The place in this snapshot, `UInt(NSNotFound)` for a removed document.
    public let newIndex: UInt

    init(type: DocumentChangeType, document: QueryDocumentSnapshot, oldIndex: UInt, newIndex: UInt) {
        self.type = type
        self.document = document
        self.oldIndex = oldIndex
        self.newIndex = newIndex
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? DocumentChange else { return false }
        return type == other.type && document == other.document && oldIndex == other.oldIndex
            && newIndex == other.newIndex
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(type)
        hasher.combine(document)
        return hasher.finalize()
    }
}
