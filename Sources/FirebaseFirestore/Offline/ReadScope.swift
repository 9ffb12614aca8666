// What a read that the server computes depends on.

import Basics
import DocumentModel

/// The documents that a total or a pipeline may read: it is computed after the pending writes to them.
struct ReadScope: Sendable, Equatable {
    /// Single documents by their paths below the documents root.
    private var documents: Set<[UInt8]> = []
    /// The documents of all collections with these ids.
    private var collectionIDs: Set<[UInt8]> = []
    /// Whether any document may be read.
    private(set) var isUnbounded = false

    /// Nothing.
    init() {}

    /// The documents of all collections with the id of one.
    ///
    /// - Parameter collection: a path, or the id alone.
    init(collection: String) {
        let path = Array(collection.utf8)
        collectionIDs = [[UInt8](copying: RelativePath.lastSegment(path.byteSpan))]
    }

    /// - Parameter documents: paths below the documents root.
    init(documents: [String]) { self.documents = Set(documents.map { Array($0.utf8) }) }

    /// All documents.
    static var everything: ReadScope {
        var scope = ReadScope()
        scope.isUnbounded = true
        return scope
    }

    mutating func formUnion(_ other: ReadScope) {
        documents.formUnion(other.documents)
        collectionIDs.formUnion(other.collectionIDs)
        isUnbounded = isUnbounded || other.isUnbounded
    }

    /// Whether the document at a path below the documents root may be read.
    func contains(_ path: [UInt8]) -> Bool {
        if isUnbounded || documents.contains(path) { return true }
        let id = RelativePath.lastSegment(RelativePath.dropLast(path.byteSpan))
        return collectionIDs.contains([UInt8](copying: id))
    }
}
