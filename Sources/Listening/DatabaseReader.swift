import Basics
import DocumentModel
import DocumentStore
internal import QueryEngine
import Storage

/// A stored document, lent.
struct LentDocument: ~Escapable {
    /// The path below `documents`.
    let path: RawSpan
    /// Canonical field entries.
    let fields: RawSpan
    /// Microseconds since 1970.
    let createMicroseconds: UInt64
    let updateMicroseconds: UInt64

    @_lifetime(copy path, copy document)
    package init(_ document: FoundDocument, path: RawSpan) {
        self.path = path
        fields = document.fields
        createMicroseconds = document.createMicroseconds
        updateMicroseconds = document.updateMicroseconds
    }

    @_lifetime(copy path, copy fields)
    init(_ document: EncodedDocument, _ fields: RawSpan, path: RawSpan) {
        self.path = path
        self.fields = fields
        createMicroseconds = document.createMicroseconds
        updateMicroseconds = document.updateMicroseconds
    }

    @_lifetime(borrow row)
    init(_ row: borrowing QueryRow) {
        path = row.path
        fields = row.fields
        createMicroseconds = row.createMicroseconds
        updateMicroseconds = row.updateMicroseconds
    }
}

/// A number of documents. Confined to the thread of its hub.
final class ReadTally {
    var documents: UInt64 = 0
}

/// Reads one database at any version that the store has given out. Confined to the thread of its hub.
///
/// The methods throw `pending` if they meet something that is not in memory, unless `cold` says that they wait for it.
struct DatabaseReader {
    private let reader: StoreReader
    /// What reads do that meet something which is not in memory.
    var cold = ColdRead.pends
    /// Counts the documents that are looked at.
    var tally = ReadTally()
    let database: DatabaseName
    /// `projects/{project}/databases/{database}/documents/`.
    let namePrefix: [UInt8]

    init(_ reader: StoreReader, _ database: DatabaseName) {
        self.reader = reader
        self.database = database
        namePrefix = Array("\(database.documentsRoot)/".utf8)
    }

    /// Lends a document as it was at a version; nil if it did not exist.
    ///
    /// - Parameter path: the path below `documents`.
    func withDocument(
        _ path: RawSpan, at version: UInt64, _ body: (LentDocument?) throws(RequestError) -> Void
    ) throws(RequestError) {
        var name = ByteBuffer(capacity: namePrefix.count + path.byteCount)
        name.append(namePrefix)
        name.append(path)
        let point = try reader.readPoint(atReadTime: version, in: database)
        tally.documents &+= 1
        try reader.withDocument(name.bytes, at: point, cold) { (found) throws(RequestError) in
            if let found { try body(LentDocument(found, path: path)) } else { try body(nil) }
        }
    }

    /// Whether a document existed at a version.
    func exists(_ path: RawSpan, at version: UInt64) throws(RequestError) -> Bool {
        var exists = false
        try withDocument(path, at: version) { exists = $0 != nil }
        return exists
    }

    /// Gives out the next results of a query at a version.
    ///
    /// - Parameter run: the query's position: nil before the first results and after the last ones. After `pending` the
    ///   results that were given out are before it.
    /// - Returns: whether these were the last results.
    func next(
        _ run: inout QueryExecution?, of query: TargetQuery, at version: UInt64,
        _ body: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> Bool {
        var execution = run.take() ?? QueryExecution(query.plan)
        let scannedBefore = execution.scannedDocuments
        do throws(RequestError) {
            let source = try reader.source(at: try reader.readPoint(atReadTime: version, in: database), cold)
            let progress = try execution.next(from: source, emit: body)
            tally.documents &+= UInt64(execution.scannedDocuments - scannedBefore)
            if case .finished = progress { return true }
        } catch {
            tally.documents &+= UInt64(execution.scannedDocuments - scannedBefore)
            if error.isPending { run = consume execution }
            throw error
        }
        run = consume execution
        return false
    }
}
