// Which collections a query reads.

import Basics
import DocumentModel

/// The collections a query reads.
package enum QueryScope: Sendable, Equatable {
    /// One collection: its path below `documents`.
    case collection(path: [UInt8])
    /// Every collection directly below a document; an empty parent is the database's root.
    case children(parent: [UInt8])
    /// Every collection with this id (nil: any id) below a document; an empty parent is the whole database.
    case descendants(parent: [UInt8], collectionID: [UInt8]?)

    /// Reads the `from` clause.
    ///
    /// - Parameter parent: a documents root or a document.
    init(_ from: [CollectionSelector], parent: borrowing ResourceNameView) throws(RequestError) {
        guard parent.isRoot || parent.isDocument else {
            throw .invalidArgument("The parent of a query must be the documents root or a document.")
        }
        if from.count > 1 {
            throw .invalidArgument("StructuredQuery.from cannot have more than one collection selector.")
        }
        let selector = from.first ?? CollectionSelector(collectionID: "")
        if !selector.collectionID.isEmpty { try ResourceID.check(selector.collectionID, isCollection: true) }
        let id = Array(selector.collectionID.utf8)
        let parentPath = [UInt8](copying: parent.pathBytes)
        if selector.allDescendants {
            self = .descendants(parent: parentPath, collectionID: id.isEmpty ? nil : id)
        } else if id.isEmpty {
            self = .children(parent: parentPath)
        } else {
            self = .collection(path: RelativePath.child(id, of: parentPath))
        }
    }

    /// Whether it may hold several collections.
    var isOfCollections: Bool {
        if case .collection = self { false } else { true }
    }

    /// Whether these are the collections of one id, or of any, at every depth below a document.
    var isBelowDocument: Bool {
        guard case .descendants(let parent, _) = self else { return false }
        return !parent.isEmpty
    }

    /// The id of its collections; empty for any.
    package var collectionID: [UInt8] {
        switch self {
        case .collection(let path): [UInt8](copying: RelativePath.lastSegment(path.byteSpan))
        case .children: []
        case .descendants(_, let collectionID): collectionID ?? []
        }
    }

    /// Whether a document belongs to the scope.
    package func contains(path: RawSpan) -> Bool {
        switch self {
        case .collection(let collection):
            return RelativePath.isBelow(path, collection.byteSpan)
                && path.firstOffset(of: RelativePath.slash, from: collection.count + 1) == nil
        case .children(let parent):
            guard RelativePath.isBelow(path, parent.byteSpan) else { return false }
            var below = PathSegments(path.extracting((parent.isEmpty ? 0 : parent.count + 1)..<path.byteCount))
            return below.next() != nil && below.next() != nil && below.next() == nil
        case .descendants(let parent, let collectionID):
            guard RelativePath.isBelow(path, parent.byteSpan) else { return false }
            guard let collectionID else { return true }
            let documentID = RelativePath.lastSegment(path)
            let collection = path.extracting(0..<max(0, path.byteCount - documentID.byteCount - 1))
            return RelativePath.lastSegment(collection).equalsBytes(collectionID.byteSpan)
        }
    }
}

extension QueryScope: CustomStringConvertible {
    package var description: String {
        switch self {
        case .collection(let path): return "collection \(String(decoding: path, as: UTF8.self))"
        case .children(let parent):
            let place = parent.isEmpty ? "the root" : String(decoding: parent, as: UTF8.self)
            return "all collections directly below \(place)"
        case .descendants(let parent, let collectionID):
            let place = parent.isEmpty ? "" : " below \(String(decoding: parent, as: UTF8.self))"
            guard let collectionID else { return "all collections\(place)" }
            return "collection group \(String(decoding: collectionID, as: UTF8.self))\(place)"
        }
    }
}
