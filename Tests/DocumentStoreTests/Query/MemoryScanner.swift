// A scanner over documents in an array: what query execution needs of storage, in its plainest form.

import Basics
import DocumentModel
import DocumentStore

/// One document of a test database.
struct TestDocument: Sendable, Equatable {
    /// Below `documents`.
    var path: String
    var fields: MapValue
    var createMicroseconds: UInt64 = 1
    var updateMicroseconds: UInt64 = 2

    var segments: [String] { path.split(separator: "/").map(String.init) }
    var collection: String { segments.dropLast().joined(separator: "/") }
    var id: String { segments.last ?? "" }
}

/// Order of two relative paths, restated from the rules: ids one by one, numeric ones first, a prefix first.
func pathOrder(_ left: String, _ right: String) -> Int {
    func number(_ id: Substring) -> Int64? {
        id.hasPrefix("__id") && id.hasSuffix("__") ? Int64(id.dropFirst(4).dropLast(2)) : nil
    }
    let lefts = left.split(separator: "/")
    let rights = right.split(separator: "/")
    for (left, right) in zip(lefts, rights) {
        switch (number(left), number(right)) {
        case (let left?, let right?): if left != right { return left < right ? -1 : 1 }
        case (_?, nil): return -1
        case (nil, _?): return 1
        case (nil, nil):
            if Array(left.utf8) != Array(right.utf8) { return left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1 }
        }
    }
    return lefts.count - rights.count
}

/// Scans an array of documents, and lists collections that hold nothing as a catalogue may.
struct MemoryScanner: DocumentScanner, ~Copyable {
    private let documents: [(document: TestDocument, id: [UInt8], bytes: [UInt8])]
    private let collections: [String]
    /// Documents handed to the executor.
    private(set) var visited = 0

    init(_ documents: [TestDocument], emptyCollections: [String] = []) {
        let sorted = documents.sorted { pathOrder($0.path, $1.path) < 0 }
        self.documents = sorted.map { ($0, Array($0.id.utf8), $0.fields.documentBytes) }
        collections = Set(sorted.map(\.collection) + emptyCollections).sorted { pathOrder($0, $1) < 0 }
    }

    mutating func scanCollection(
        _ collection: RawSpan, ids range: DocumentIDRange, direction: SortDirection,
        _ body: (borrowing CandidateDocument) throws(RequestError) -> ScanControl
    ) throws(RequestError) {
        let collection = String(repairingUTF8: collection)
        var chosen = documents.filter { entry in
            guard entry.document.collection == collection else { return false }
            if let lower = range.lower {
                let order = pathOrder(entry.document.id, String(decoding: lower.id, as: UTF8.self))
                if order < 0 || (order == 0 && !lower.isInclusive) { return false }
            }
            if let upper = range.upper {
                let order = pathOrder(entry.document.id, String(decoding: upper.id, as: UTF8.self))
                if order > 0 || (order == 0 && !upper.isInclusive) { return false }
            }
            return true
        }
        if direction == .descending { chosen.reverse() }
        for (document, id, bytes) in chosen {
            visited += 1
            let candidate = CandidateDocument(
                documentID: id.byteSpan, createMicroseconds: document.createMicroseconds,
                updateMicroseconds: document.updateMicroseconds, fields: bytes.byteSpan)
            if try body(candidate) == .stop { return }
        }
    }

    mutating func nextCollection(
        after position: RawSpan, skippingBelow skipsBelow: Bool, below parent: RawSpan, collectionID: RawSpan?
    ) throws(RequestError) -> [UInt8]? {
        let position = String(repairingUTF8: position)
        let parent = String(repairingUTF8: parent)
        var id: String?
        if let collectionID { id = String(repairingUTF8: collectionID) }
        let found = collections.first { collection in
            pathOrder(collection, position) > 0 && !(skipsBelow && collection.hasPrefix(position + "/"))
                && (parent.isEmpty || collection.hasPrefix(parent + "/"))
                && (id == nil || collection.split(separator: "/").last.map(String.init) == id)
        }
        return found.map { Array($0.utf8) }
    }
}

/// The database that tests query.
let testDatabase = "projects/p/databases/d"
let testRoot = "\(testDatabase)/documents"

/// Runs a planned query to its end.
///
/// - Parameter pageSize: results a page takes before it is full.
func results(
    of plan: QueryPlan, over scanner: inout MemoryScanner, pageSize: Int = .max
) throws -> (documents: [TestDocument], pages: Int, skipped: Int) {
    var run = QueryRun(plan)
    var documents: [TestDocument] = []
    var pages = 0
    while true {
        var room = pageSize
        pages += 1
        let progress = try run.next(&scanner) { (result) throws(RequestError) in
            do throws(InvalidDocument) {
                documents.append(
                    TestDocument(
                        path: String(repairingUTF8: result.path), fields: try MapValue(documentBytes: result.fields),
                        createMicroseconds: result.createMicroseconds, updateMicroseconds: result.updateMicroseconds))
            } catch {
                throw RequestError(error)
            }
            room -= 1
            return room > 0 ? .more : .full
        }
        if progress == .finished { return (documents, pages, run.skippedResults) }
    }
}

/// Plans a query below the root or a document.
func plan(
    _ query: StructuredQuery, parent: String = testRoot, options: QueryOptions = QueryOptions()
) throws(RequestError) -> QueryPlan {
    let bytes = Array(parent.utf8)
    return try QueryPlan(query, parent: bytes.byteSpan, options: options)
}
