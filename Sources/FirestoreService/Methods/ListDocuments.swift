// ListDocuments: pages of a collection, or of all collections below a parent, by name or by an order given as text.

internal import Basics
internal import Calls
internal import DocumentModel
internal import DocumentStore
internal import FirestoreMessages
internal import QueryEngine

extension FirestoreService {
    func listDocuments(_ call: Call, _ request: RawSpan) throws {
        let message = try ListDocumentsRequest(wire: request)
        guard message.pageSize >= 0 else { throw RequestError.invalidArgument("A page size cannot be negative.") }
        if !message.collectionID.isEmpty { try ResourceID.check(message.collectionID, isCollection: true) }
        if message.showMissing, message.collectionID.isEmpty {
            throw RequestError.invalidArgument("collection id must be set when show_missing is true")
        }
        if message.showMissing, !message.orderBy.isEmpty {
            throw RequestError.invalidArgument("cannot specify an order when show_missing is true")
        }
        let (database, access) = try withParent(call, message.parent) { (parent, access) throws(RequestError) in
            (try self.database(parent.databaseBytes), access)
        }
        // Rules are about collections, and about documents that exist.
        if message.showMissing || message.collectionID.isEmpty { try access?.requireUnrestricted() }
        let token = message.pageToken.isEmpty ? nil : try PageToken(message.pageToken)
        try withReadPoint(call, try message.consistency.selector(in: store), in: database) { service, point in
            try service.check(message.query(), message.parent, at: point, permittedBy: access)
            if message.orderBy.isEmpty {
                try NameListing(service, call, message, at: point, after: token).findMore()
            } else {
                try OrderListing(service, call, message, at: point, after: token).findMore()
            }
        }
    }

    /// The document that a parent names, nil for the documents root.
    func parentDocument(_ parent: String) throws(RequestError) -> DocumentPath? {
        try parent.withUTF8Span { (bytes) throws(RequestError) in
            let view = try ResourceNameView(resource: bytes)
            return view.isRoot ? nil : DocumentPath(view)
        }
    }
}

/// One page, made in steps between which other calls have their turn. A step waits for storage beside the loop.
class Listing {
    let service: FirestoreService
    let call: Call
    let message: ListDocumentsRequest
    let point: ReadPoint
    var page: ListingPage
    /// The documents of the page as the response has them.
    var documents = ByteBuffer(capacity: 256)

    /// - Parameter page: an empty one.
    init(
        _ service: FirestoreService, _ call: Call, _ message: ListDocumentsRequest, at point: ReadPoint,
        _ page: ListingPage
    ) {
        self.service = service
        self.call = call
        self.message = message
        self.point = point
        self.page = page
    }

    /// Ends the call with the page.
    func send() {
        let path = Array("\(message.collectionID)/_".utf8)
        service.counters.countReads(page.documents, path.byteSpan, of: "\(point.database)")
        service.succeed(call) { writer in
            writer.append(documents.bytes)
            if let next = page.nextToken {
                ListDocumentsResponseWriter.append(nextPageToken: next.text, to: &writer)
            }
        }
    }
}

/// A page by name.
private final class NameListing: Listing {
    private let parent: DocumentPath?
    /// The collection that is listed; nil if it is to be found.
    private var collectionID: String?
    /// After which it begins; nil at its start.
    private var documentID: [UInt8]?
    /// Of the collection; nil before it is begun.
    private var listing: DocumentListing?
    /// The search for the next collection, while it is under way.
    private var search: CollectionIDListing?
    /// The collection that was listed last.
    private var lastCollectionID: String?

    init(
        _ service: FirestoreService, _ call: Call, _ message: ListDocumentsRequest, at point: ReadPoint,
        after token: PageToken?
    ) throws(RequestError) {
        parent = try service.parentDocument(message.parent)
        super.init(service, call, message, at: point, ListingPage(of: message, service.limits))
        if !message.collectionID.isEmpty { collectionID = message.collectionID }
        guard let token else { return }
        guard case .document(let collection, let document) = token else {
            throw .invalidArgument("The page token belongs to another listing.")
        }
        documentID = document
        collectionID = collectionID ?? String(decoding: collection, as: UTF8.self)
    }

    /// Lists collections until the page is complete.
    func findMore() throws(RequestError) {
        let (before, byteCount, listed) = (page, documents.count, listing)
        do throws(RequestError) {
            if try listNext() { return send() }
        } catch {
            guard error.isPending else { throw error }
            // The step is made again.
            (page, listing) = (before, listed)
            documents.truncate(to: byteCount)
            return service.repeatWhenReady(call) { _ in try self.findMore() }
        }
        service.continueLater(call) { _ in try self.findMore() }
    }

    /// Lists one collection, or a part of it.
    /// - Returns: whether the page is complete.
    private func listNext() throws(RequestError) -> Bool {
        guard try findCollection() else { return false }
        guard let collectionID else { return true }
        try list(collectionID)
        if page.nextToken != nil { return true }
        guard listing?.isFinished == true else { return false }
        (self.collectionID, documentID, listing, lastCollectionID) = (nil, nil, nil, collectionID)
        return !message.collectionID.isEmpty
    }

    /// Finds the next collection, unless one is being listed.
    /// - Returns: false if the search continues in the next step.
    private func findCollection() throws(RequestError) -> Bool {
        if collectionID != nil { return true }
        var search = search ?? CollectionIDListing(below: parent, after: lastCollectionID)
        guard try service.reader.list(&search, limit: 1, at: point, .pends) else {
            self.search = search
            return false
        }
        self.search = nil
        collectionID = search.ids.first
        return true
    }

    private func list(_ collectionID: String) throws(RequestError) {
        let collection = try CollectionPath("\(message.parent)/\(collectionID)")
        let lower = documentID.map { DocumentIDBound(id: $0, isInclusive: false) }
        var listing =
            listing
            ?? DocumentListing(of: collection, ids: DocumentIDRange(lower: lower), showMissing: message.showMissing)
        defer { self.listing = listing }
        let namePrefix = Array("\(collection)/".utf8)
        let collectionIDBytes = Array(collectionID.utf8)
        let selection = message.mask?.selection
        try service.reader.list(&listing, at: point, .pends) { (documentID, document) throws(RequestError) in
            guard page.hasRoom(after: documents.count) else {
                page.nextToken = .document(collectionID: page.lastCollectionID, documentID: page.lastDocumentID)
                return .stop
            }
            page.count += 1
            page.lastCollectionID = collectionIDBytes
            page.lastDocumentID = [UInt8](copying: documentID)
            guard let document else {
                ListDocumentsResponseWriter.append(missing: namePrefix + page.lastDocumentID, to: &documents)
                return .more
            }
            try service.withSelectedFields(document.fields, selection) { fields in
                ListDocumentsResponseWriter.appendDocument(
                    name: document.name, fields: fields, createMicroseconds: document.createMicroseconds,
                    updateMicroseconds: document.updateMicroseconds, to: &documents)
            }
            page.documents += 1
            return .more
        }
    }
}

/// What is known of a page while it is written.
struct ListingPage {
    let limit: Int
    let byteLimit: Int
    /// Entries, missing documents among them.
    var count = 0
    var documents = 0
    /// Of the last entry, after which the next page begins.
    var lastCollectionID: [UInt8] = []
    var lastDocumentID: [UInt8] = []
    /// Set when there is more than the page holds.
    var nextToken: PageToken?

    /// An empty page.
    init(of message: ListDocumentsRequest, _ limits: ServiceLimits) {
        let size = Int(message.pageSize)
        limit = size == 0 ? limits.listPageDocuments : min(size, limits.listPageDocuments)
        byteLimit = limits.listPageBytes
    }

    /// Whether another entry may follow those that take so many bytes. A page holds at least one.
    func hasRoom(after byteCount: Int) -> Bool {
        count == 0 || (count < limit && byteCount < byteLimit)
    }
}
