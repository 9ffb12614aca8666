// The results of a query at one moment.

import DocumentCoding
public import Foundation
import Synchronization

/// A result of a query, without its snapshot object.
struct SnapshotRow: Sendable {
    /// The full resource name.
    var name: String
    var document: VisibleDocument
}

/// A change of a row between two snapshots.
struct SnapshotRowChange: Sendable {
    var type: DocumentChangeType
    var row: SnapshotRow
    /// The place before the change; nil for an added row.
    var oldIndex: Int?
    /// The place after the change; nil for a removed row.
    var newIndex: Int?
    /// Whether only metadata has changed.
    var isMetadata = false
}

/// The documents that a query found, in its order. Immutable and thread-safe.
///
/// The snapshots of the documents are made when they are first asked for.
public final class QuerySnapshot: NSObject, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; the properties are constants of Sendable types, and a lock guards the rest.

    /// The query that was run.
    public let query: Query
    /// The source of the contents.
    public let metadata: SnapshotMetadata

    private let rows: RowList
    /// The changes since the snapshot before; `nil` if every document was added.
    private let changes: [SnapshotRowChange]?
    /// Whether the listener asked for changes of metadata alone.
    private let includesMetadataChanges: Bool
    private let made = Mutex<[QueryDocumentSnapshot]?>(nil)

    init(
        query: Query, rows: RowList, changes: [SnapshotRowChange]? = nil, includesMetadataChanges: Bool = true,
        metadata: SnapshotMetadata = .fromServer
    ) {
        self.query = query
        self.rows = rows
        self.changes = changes
        self.includesMetadataChanges = includesMetadataChanges
        self.metadata = metadata
    }

    /// The documents found, in the query's order.
    public var documents: [QueryDocumentSnapshot] {
        made.withLock { made in
            if let made { return made }
            let documents = rows.compactMap { snapshot(of: $0) }
            made = documents
            return documents
        }
    }

    private func snapshot(of row: SnapshotRow) -> QueryDocumentSnapshot? {
        guard let reference = DocumentReference(name: row.name, owner: query.firestore) else { return nil }
        return QueryDocumentSnapshot(
            reference: reference, found: row.document, isFromCache: metadata.isFromCache)
    }

    /// How many documents were found.
    public var count: Int { rows.count }
    /// Whether none was found.
    public var isEmpty: Bool { rows.isEmpty }
    /// What changed since the snapshot before; for a query that was read once, every document was added.
    public var documentChanges: [DocumentChange] { documentChanges(includeMetadataChanges: false) }

    /// The changes since the previous snapshot.
    ///
    /// - Parameter includeMetadataChanges: whether documents of which only the metadata has changed are included; true
    ///   for a listener without changes of metadata is a programming error.
    @discardableResult
    public func documentChanges(includeMetadataChanges: Bool) -> [DocumentChange] {
        if includeMetadataChanges, !includesMetadataChanges {
            programmingError(
                """
                To include metadata changes with your document changes, you must call addSnapshotListener(options:) \
                with withIncludeMetadataChanges(true).
                """)
        }
        guard let changes else {
            return documents.enumerated().map { index, document in
                DocumentChange(type: .added, document: document, oldIndex: UInt(NSNotFound), newIndex: UInt(index))
            }
        }
        return changes.compactMap { change in
            guard includeMetadataChanges || !change.isMetadata, let document = snapshot(of: change.row) else {
                return nil
            }
            return DocumentChange(
                type: change.type, document: document, oldIndex: UInt(change.oldIndex ?? NSNotFound),
                newIndex: UInt(change.newIndex ?? NSNotFound))
        }
    }

    /// Two snapshots of equal queries are equal if they show the same documents, changes and metadata.
    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? QuerySnapshot else { return false }
        return self === other
            || query == other.query && metadata == other.metadata && documents == other.documents
                && documentChanges == other.documentChanges
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(query)
        hasher.combine(rows.count)
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
