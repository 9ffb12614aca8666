// ListCollectionIds: the collections below a document or the root that hold a document or any descendant.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages

extension FirestoreService {
    func listCollectionIDs(_ call: Call, _ request: RawSpan) throws {
        let message = try ListCollectionIdsRequest(wire: request)
        guard message.pageSize >= 0 else { throw RequestError.invalidArgument("A page size cannot be negative.") }
        let database = try withParent(call, message.parent) { (parent, access) throws(RequestError) in
            // No rule is about the names of collections.
            try access?.requireUnrestricted()
            return try self.database(parent.databaseBytes)
        }
        let after = message.pageToken.isEmpty ? nil : try position(message.pageToken)
        let listing = CollectionIDListing(below: try parentDocument(message.parent), after: after)
        try withReadPoint(call, try message.consistency.selector(in: store), in: database) { service, point in
            try service.sendPage(call, message, listing, at: point)
        }
    }

    /// Sends the page when it is found, which may take several steps.
    private func sendPage(
        _ call: Call, _ message: ListCollectionIdsRequest, _ listing: CollectionIDListing, at point: ReadPoint
    ) throws {
        let size = Int(message.pageSize)
        let limit = size == 0 ? limits.collectionIDPageEntries : min(size, limits.collectionIDPageEntries)
        // One more than fits shows whether there is another page.
        var listing = listing
        guard try reader.list(&listing, limit: limit + 1, at: point, coldRead) else {
            return continueLater(call) { try $0.sendPage(call, message, listing, at: point) }
        }
        var ids = listing.ids
        var response = ListCollectionIdsResponse()
        if ids.count > limit {
            ids.removeLast(ids.count - limit)
            response.nextPageToken = ids.last.map { PageToken.collection(Array($0.utf8)).text } ?? ""
        }
        response.collectionIDs = ids
        succeed(call) { response.encode(into: &$0) }
    }

    private func position(_ token: String) throws(RequestError) -> String {
        guard case .collection(let id) = try PageToken(token) else {
            throw .invalidArgument("The page token belongs to another listing.")
        }
        return String(decoding: id, as: UTF8.self)
    }
}
