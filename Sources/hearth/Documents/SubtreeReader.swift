// Documents at and below a place, at one read time.

import DocumentModel
import FirestoreMessages
import HearthClient

/// Reads all documents of a database, of a collection or below a document, or those of a database between two names,
/// page by page in the order of their names. Memory is bounded by a page: 8 MiB and a document.
struct SubtreeReader: Sendable {
    private let client: HearthClient
    private let place: Place
    private let namesOnly: Bool
    /// What all pages show.
    let consistency: ReadConsistency
    /// The name at which to begin, while `last` is nil; nil for the first document.
    private let start: String?
    /// The name before which to end; nil for the last document.
    private let end: String?
    /// The document read last.
    private(set) var last: String?
    private var pageDocuments = 16
    private var isAtEnd = false

    /// Where the documents are: at any depth, except for those of one collection alone.
    enum Place: Sendable {
        case database(DatabaseName)
        case collection(CollectionPath)
        case collectionAlone(CollectionPath)
        case below(DocumentPath)

        var database: DatabaseName {
            switch self {
            case .database(let name): name
            case .collection(let path), .collectionAlone(let path): path.database
            case .below(let path): path.database
            }
        }
    }

    /// Bytes of documents that a page should hold; with twice as many it ends.
    static let pageBytes = 4 << 20
    private static let pageDocumentsMax = 2000

    /// - Parameters:
    ///   - namesOnly: whether the documents come without fields.
    ///   - last: the full name of the document after which to begin; nil for the first.
    ///   - time: the time whose state is read; nil for now.
    init(
        _ client: HearthClient, _ place: Place, namesOnly: Bool = false, after last: String? = nil,
        at time: TimestampValue? = nil
    ) async throws {
        self.client = client
        self.place = place
        self.namesOnly = namesOnly
        self.last = last
        (start, end) = (nil, nil)
        let readTime = if let time { time } else { try await Self.currentReadTime(client, place) }
        consistency = .readTime(readTime)
    }

    /// - Parameters:
    ///   - start: the full name at which to begin; nil for the first document.
    ///   - last: the full name of the document after which to begin instead.
    ///   - end: the full name before which to end; nil for the last document.
    ///   - consistency: what all pages show. With `.latest` each page has another state.
    init(
        _ client: HearthClient, _ database: DatabaseName, from start: String?, after last: String?,
        before end: String?, _ consistency: ReadConsistency
    ) {
        self.client = client
        place = .database(database)
        namesOnly = false
        (self.start, self.last, self.end, self.consistency) = (start, last, end, consistency)
    }

    /// The next documents; empty after the last one.
    mutating func next() async throws -> [NamedDocument] {
        if isAtEnd { return [] }
        let request = RunQueryRequest(parent: parent, query: query, consistency: consistency)
        let reply = try await client.runQuery(request, bytesMax: 2 * Self.pageBytes)
        var page = reply.documents
        isAtEnd = page.count < pageDocuments && reply.byteCount < 2 * Self.pageBytes
        if case .collection(let path) = place, Self.end(of: path) == nil {
            let prefix = "\(path)/"
            let inside = page.prefix { $0.name.hasUTF8Prefix(prefix) }.count
            if inside < page.count { isAtEnd = true }
            page.removeLast(page.count - inside)
        }
        last = page.last?.name ?? last
        // The first page is small, because nobody knows yet how large the documents are.
        let documentBytes = max(1, reply.byteCount / max(1, reply.documents.count))
        pageDocuments = max(1, min(Self.pageDocumentsMax, Self.pageBytes / documentBytes))
        return page
    }

    private static let probeID = "read-time-probe"

    /// A moment that the server has given out as a read time.
    static func currentReadTime(_ client: HearthClient, _ place: Place) async throws -> TimestampValue {
        let probe =
            switch place {
            case .database(let name): try DocumentPath(database: name, path: "\(probeID)/\(probeID)")
            case .collection(let path), .collectionAlone(let path):
                try path.document(idBytesMax(in: path) < probeID.utf8.count ? "p" : probeID)
            case .below(let path): path
            }
        let reply = try await client.batchGet(
            BatchGetDocumentsRequest(database: place.database.description, documents: [probe.description]))
        guard let readTime = reply.readTime else { throw CommandFailure("the server sent no read time") }
        return readTime
    }

    private var parent: String {
        switch place {
        case .database(let name): name.documentsRoot
        case .collection(let path), .collectionAlone(let path):
            path.parent?.description ?? path.database.documentsRoot
        case .below(let path): path.description
        }
    }

    /// The id that comes before all others.
    private static let leastID = "__id-9223372036854775808__"

    /// A name before those of all documents of a collection and below it: that of the first id for which the longest
    /// name has room. Ids that are numbers come first.
    static func start(of path: CollectionPath) -> String {
        let digits = idBytesMax(in: path) - "__id-__".utf8.count
        let id =
            switch digits {
            case 19...: leastID
            case 1..<19: "__id-\(String(repeating: "9", count: digits))__"
            case 0: "__id1__"
            default: "\0"
            }
        return "\(path)/\(id)"
    }

    /// Bytes of an id for which the longest name of a document in a collection has room.
    private static func idBytesMax(in path: CollectionPath) -> Int {
        Limits.documentNameBytes - "\(path)/".utf8.count
    }

    /// A name after those of all documents of a collection and below it, and before those of the next collection; nil
    /// if it would be longer than names may be.
    private static func end(of path: CollectionPath) -> String? {
        let name = "\(path)\0/\(leastID)"
        let isPossible = path.collectionID.utf8.count < Limits.idBytes && name.utf8.count <= Limits.documentNameBytes
        return isPossible ? name : nil
    }

    private var query: StructuredQuery {
        var query = StructuredQuery(
            from: [CollectionSelector(collectionID: "", allDescendants: true)],
            orderBy: [Order(field: .documentName)],
            startAt: last.map { Cursor(values: [EncodedValue(.reference($0))], before: false) }
                ?? start.map { Cursor(values: [EncodedValue(.reference($0))], before: true) },
            endAt: end.map { Cursor(values: [EncodedValue(.reference($0))], before: true) },
            limit: Int32(pageDocuments))
        if case .collectionAlone(let path) = place {
            query.from = [CollectionSelector(collectionID: path.collectionID)]
        }
        if case .collection(let path) = place {
            // Every document whose name lies between the collection's least possible id and the next collection's.
            query.startAt =
                query.startAt ?? Cursor(values: [EncodedValue(.reference(Self.start(of: path)))], before: true)
            query.endAt = Self.end(of: path).map { Cursor(values: [EncodedValue(.reference($0))], before: true) }
        }
        if namesOnly { query.select = Projection(fields: [.documentName]) }
        return query
    }
}

/// Sends writes in commits of bounded size, one after the other.
struct WriteBatches {
    private let client: HearthClient
    private var writes: CommitWrites

    private static let writesMax = 500
    private static let bytesMax = 4 << 20

    init(_ client: HearthClient, _ database: DatabaseName) {
        self.client = client
        writes = CommitWrites(database: database)
    }

    /// Adds a write, and sends the commit if it is full.
    ///
    /// - Returns: whether everything that was added is durable.
    mutating func add(_ body: (inout CommitWrites) -> Void) async throws -> Bool {
        body(&writes)
        guard writes.count >= Self.writesMax || writes.bytes.count >= Self.bytesMax else { return false }
        try await flush()
        return true
    }

    /// Sends what was added.
    mutating func flush() async throws {
        if writes.isEmpty { return }
        try await client.commit(writes)
        writes.removeAll()
    }
}
