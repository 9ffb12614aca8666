import DocumentJSON
import DocumentModel
import FirestoreMessages
import HearthClient

/// The work of `hearth export`: it reads pages of a collection at one read time and writes each before it requests the
/// next.
struct Exporter {
    /// Writes bytes, or throws why it cannot.
    typealias Output = ([UInt8]) throws -> Void

    let client: HearthClient
    let collection: CollectionPath
    let isRecursive: Bool
    /// Takes the lines of a page.
    let output: Output
    /// The time whose state is read; nil for now.
    private let readTime: TimestampValue?
    private var progressLine: ProgressLine
    private var writer: JSONLineWriter

    /// Bytes of documents that a page should hold.
    private static let pageBytes = 4 << 20
    private static let pageDocumentsMax = 2000

    init(
        client: HearthClient, collection: CollectionPath, isRecursive: Bool, readTime: TimestampValue? = nil,
        output: @escaping Output, progressLine: ProgressLine
    ) {
        self.readTime = readTime
        self.client = client
        self.collection = collection
        self.isRecursive = isRecursive
        self.output = output
        self.progressLine = progressLine
        writer = JSONLineWriter(database: collection.database.description)
    }

    /// Writes everything; returns how many documents that was.
    mutating func run() async throws -> Int {
        let readTime = if let readTime { readTime } else { try await currentReadTime() }
        let prefix = "\(collection)/"
        var last: String?
        var documents = 0
        var bytes = 0
        // The first page is small, for nobody knows yet how large the documents are.
        var pageDocuments = 16
        while true {
            let request = RunQueryRequest(
                parent: parent, query: try query(after: last, limit: pageDocuments), consistency: .readTime(readTime))
            let page = try await client.runQuery(request)
            var lines: [UInt8] = []
            for document in page {
                guard document.name.hasPrefix(prefix) else {
                    throw CommandFailure("the server sent \(document.name), which is not in \(collection)")
                }
                let name = String(document.name.dropFirst(prefix.count))
                lines += try writer.line(name: name, fields: document.content.fields.span.bytes)
                lines.append(0x0A)
            }
            try output(lines)
            documents += page.count
            bytes += lines.count
            progressLine.update(documents: documents, bytes: bytes, totalBytes: nil)
            guard page.count == pageDocuments, let end = page.last else { break }
            last = end.name
            pageDocuments = max(1, min(Self.pageDocumentsMax, Self.pageBytes / max(1, lines.count / page.count)))
        }
        progressLine.clear()
        return documents
    }

    /// A moment that the server has given out as a read time, so that all pages show one state.
    private func currentReadTime() async throws -> TimestampValue {
        let probe = try collection.document("read-time-probe").description
        let reply = try await client.batchGet(
            BatchGetDocumentsRequest(database: collection.database.description, documents: [probe]))
        guard let readTime = reply.readTime else { throw CommandFailure("the server sent no read time") }
        return readTime
    }

    private var parent: String { collection.parent?.description ?? collection.database.documentsRoot }

    private func query(after last: String?, limit: Int) throws -> StructuredQuery {
        let name = Order(field: .documentName)
        let start = last.map { Cursor(values: [EncodedValue(.reference($0))], before: false) }
        guard isRecursive else {
            return StructuredQuery(
                from: [CollectionSelector(collectionID: collection.collectionID)], orderBy: [name], startAt: start,
                limit: Int32(limit))
        }
        // Every document whose name lies between the collection's least possible id and the next collection's.
        let least = "__id-9223372036854775808__"
        return StructuredQuery(
            from: [CollectionSelector(collectionID: "", allDescendants: true)], orderBy: [name],
            startAt: start ?? Cursor(values: [EncodedValue(.reference("\(collection)/\(least)"))], before: true),
            endAt: Cursor(values: [EncodedValue(.reference("\(collection)\0/\(least)"))], before: true),
            limit: Int32(limit))
    }
}
