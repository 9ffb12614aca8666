// Listings and searches for collections to their end, in small steps.

import Basics
import DocumentModel
import QueryEngine

@testable import DocumentStore

extension StoreReader {
    func collectionIDs(
        below parent: DocumentPath?, after: String?, limit: Int, at point: ReadPoint
    ) throws(RequestError) -> [String] {
        var listing = CollectionIDListing(below: parent, after: after)
        while try !list(&listing, limit: limit, at: point, documentsMax: 1) {}
        return listing.ids
    }

    func listDocuments(
        in collection: CollectionPath, ids: DocumentIDRange = .all, showMissing: Bool, at point: ReadPoint,
        _ body: (_ documentID: RawSpan, FoundDocument?) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        var listing = DocumentListing(of: collection, ids: ids, showMissing: showMissing)
        var isStopped = false
        while !listing.isFinished, !isStopped {
            try list(&listing, at: point, documentsMax: 2) { (id, document) throws(RequestError) in
                let control = try body(id, document)
                isStopped = control == .stop
                return control
            }
        }
    }
}

extension QuerySource where Self: ~Copyable {
    borrowing func nextCollection(
        after position: [UInt8], below parent: [UInt8], collectionID: [UInt8]?
    ) throws(RequestError) -> [UInt8]? {
        var key: [UInt8]?
        while true {
            var deletions = 2
            let next = try nextCollection(
                after: position, below: parent, collectionID: collectionID, from: key, passing: &deletions)
            switch next {
            case .found(let path): return path
            case .nothing: return nil
            case .paused(let place): key = place
            }
        }
    }
}
