// A collection: the query for all of its documents, and the place where new documents are made.

public import DocumentCoding
import Foundation

/// A collection of documents. Equal references name the same collection of the same database object. Thread-safe.
public final class CollectionReference: Query, @unchecked Sendable {
    /// The path from the root, an odd number of segments.
    let segments: [String]

    init(firestore: Firestore, segments: [String]) {
        self.segments = segments
        super.init(firestore: firestore, definition: QueryDescription(collection: segments))
    }

    /// The last segment of the path.
    public var collectionID: String { segments[segments.count - 1] }

    /// The path from the root, joined by slashes.
    public var path: String { segments.joined(separator: "/") }

    /// The document above a sub-collection; `nil` at the root.
    public var parent: DocumentReference? {
        segments.count > 1 ? firestore.reference(Array(segments.dropLast())) : nil
    }

    /// A document of this collection with a new random id of 20 letters and digits. Nothing is written.
    @discardableResult
    public func document() -> DocumentReference { firestore.reference(segments + [AutoID.next()]) }

    /// The document at a path below this collection, usually just an id.
    @discardableResult
    public func document(_ documentPath: String) -> DocumentReference {
        firestore.reference(
            enforcing { () throws(RuleViolation) in try PathRules.document(documentPath, below: segments) })
    }
}
