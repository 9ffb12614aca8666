// Which collections a query reads.

import Basics
import DocumentModel

/// The collections a query reads.
package enum QueryScope: Sendable, Equatable {
    /// One collection: its path below `documents`.
    case collection(path: [UInt8])
    /// Every collection with this id (nil: any id) below a document; an empty parent is the whole database.
    case descendants(parent: [UInt8], collectionID: [UInt8]?)

    /// Reads the `from` clause.
    ///
    /// - Parameter parent: a documents root or a document.
    init(_ from: [CollectionSelector], parent: borrowing ResourceNameView) throws(RequestError) {
        guard parent.isRoot || parent.isDocument else {
            throw .invalidArgument("The parent of a query must be the documents root or a document.")
        }
        guard from.count == 1, let selector = from.first else {
            throw .invalidArgument("A query must select from exactly one collection or collection group.")
        }
        let id = Array(selector.collectionID.utf8)
        if !id.isEmpty, id.contains(RelativePath.slash) {
            throw .invalidArgument("Collection id \"\(selector.collectionID)\" must not contain a slash.")
        }
        if !id.isEmpty, let problem = ResourceID.problem(id.byteSpan, rules: .stored) {
            throw .invalidArgument("Invalid collection id \"\(selector.collectionID)\": \(problem.text).")
        }
        let parentPath = [UInt8](copying: parent.pathBytes)
        if selector.allDescendants {
            self = .descendants(parent: parentPath, collectionID: id.isEmpty ? nil : id)
        } else if id.isEmpty {
            throw .invalidArgument("A query over collections of any id must select all descendants.")
        } else {
            self = .collection(path: parentPath.isEmpty ? id : parentPath + [RelativePath.slash] + id)
        }
    }

    /// The id of its collections; empty for any.
    var collectionID: [UInt8] {
        switch self {
        case .collection(let path): [UInt8](copying: RelativePath.lastSegment(path.byteSpan))
        case .descendants(_, let collectionID): collectionID ?? []
        }
    }

    /// Whether a document belongs to the scope.
    package func contains(path: RawSpan) -> Bool {
        switch self {
        case .collection(let collection):
            return RelativePath.isBelow(path, collection.byteSpan)
                && path.firstOffset(of: RelativePath.slash, from: collection.count + 1) == nil
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
        case .descendants(let parent, let collectionID):
            let place = parent.isEmpty ? "" : " below \(String(decoding: parent, as: UTF8.self))"
            guard let collectionID else { return "all collections\(place)" }
            return "collection group \(String(decoding: collectionID, as: UTF8.self))\(place)"
        }
    }
}
