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
            try service.sendPage(call, message, after: token, at: point)
        }
    }

    private func sendPage(
        _ call: Call, _ message: ListDocumentsRequest, after token: PageToken?, at point: ReadPoint
    ) throws {
        let size = Int(message.pageSize)
        let limit = size == 0 ? limits.listPageDocuments : min(size, limits.listPageDocuments)
        try succeed(call) { writer in
            var page = ListingPage(limit: limit, byteLimit: limits.listPageBytes, start: writer.count)
            if message.orderBy.isEmpty {
                try listByName(message, after: token, at: point, &page, &writer)
            } else {
                try listInOrder(message, after: token, at: point, &page, &writer)
            }
            let path = Array("\(message.collectionID)/_".utf8)
            counters.countReads(page.documents, path.byteSpan, of: "\(point.database)")
            if let next = page.nextToken {
                ListDocumentsResponseWriter.append(nextPageToken: next.text, to: &writer)
            }
        }
    }

    // MARK: By name

    private func listByName(
        _ message: ListDocumentsRequest, after token: PageToken?, at point: ReadPoint, _ page: inout ListingPage,
        _ writer: inout ByteBuffer
    ) throws {
        var position: (collectionID: [UInt8], documentID: [UInt8])?
        if let token {
            guard case .document(let collectionID, let documentID) = token else {
                throw RequestError.invalidArgument("The page token belongs to another listing.")
            }
            position = (collectionID, documentID)
        }
        guard message.collectionID.isEmpty else {
            return try listCollection(
                message, message.collectionID, after: position?.documentID, at: point, &page, &writer)
        }
        let parent = try parentDocument(message.parent)
        // Finish the collection of the last page, then continue with those after it.
        var current = position.map { String(decoding: $0.collectionID, as: UTF8.self) }
        if let current, let position {
            try listCollection(message, current, after: position.documentID, at: point, &page, &writer)
        }
        while page.nextToken == nil {
            guard
                let next = try reader.collectionIDs(below: parent, after: current, limit: 1, at: point, coldRead).first
            else { return }
            try listCollection(message, next, after: nil, at: point, &page, &writer)
            current = next
        }
    }

    private func listCollection(
        _ message: ListDocumentsRequest, _ collectionID: String, after documentID: [UInt8]?, at point: ReadPoint,
        _ page: inout ListingPage, _ writer: inout ByteBuffer
    ) throws {
        let collection = try CollectionPath("\(message.parent)/\(collectionID)")
        let lower = documentID.map { DocumentIDBound(id: $0, isInclusive: false) }
        let namePrefix = Array("\(collection)/".utf8)
        let collectionIDBytes = Array(collectionID.utf8)
        let selection = message.mask?.selection
        try reader.listDocuments(
            in: collection, ids: DocumentIDRange(lower: lower), showMissing: message.showMissing, at: point, coldRead
        ) { (documentID, document) throws(RequestError) in
            guard page.hasRoom(writer.count) else {
                page.nextToken = .document(collectionID: page.lastCollectionID, documentID: page.lastDocumentID)
                return .stop
            }
            page.count += 1
            page.lastCollectionID = collectionIDBytes
            page.lastDocumentID = [UInt8](copying: documentID)
            guard let document else {
                ListDocumentsResponseWriter.append(missing: namePrefix + page.lastDocumentID, to: &writer)
                return .more
            }
            try withSelectedFields(document.fields, selection) { fields in
                ListDocumentsResponseWriter.appendDocument(
                    name: document.name, fields: fields, createMicroseconds: document.createMicroseconds,
                    updateMicroseconds: document.updateMicroseconds, to: &writer)
            }
            page.documents += 1
            return .more
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

/// What is known of a page while it is written.
struct ListingPage {
    let limit: Int
    let byteLimit: Int
    /// Where the page begins in the output.
    let start: Int
    /// Entries, missing documents among them.
    var count = 0
    var documents = 0
    /// Of the last entry, after which the next page begins.
    var lastCollectionID: [UInt8] = []
    var lastDocumentID: [UInt8] = []
    /// Set when there is more than the page holds.
    var nextToken: PageToken?

    init(limit: Int, byteLimit: Int, start: Int) {
        self.limit = limit
        self.byteLimit = byteLimit
        self.start = start
    }

    /// Whether another entry may follow what has been written up to `end`. A page holds at least one.
    func hasRoom(_ end: Int) -> Bool {
        count == 0 || (count < limit && end - start < byteLimit)
    }
}
