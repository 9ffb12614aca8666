// What lines of the log say about calls.

import Basics
import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20)))
struct CallSubjectTests {
    private static let database = "projects/p/databases/(default)"
    private static let root = "\(database)/documents"
    private static let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")], limit: 3)

    @Test
    func `A line names the documents or the query of a call`() throws {
        expectEqual(CallSubject.text(.getDocument, GetDocumentRequest(name: "\(Self.root)/c/d").encodedBytes()), "c/d")
        let names = (1...5).map { "\(Self.root)/c/d\($0)" }
        let batch = BatchGetDocumentsRequest(database: Self.database, documents: names)
        expectEqual(CallSubject.text(.batchGetDocuments, batch.encodedBytes()), "c/d1, c/d2, c/d3 and 2 others")
        let json = #"query {"from":[{"collectionId":"c"}],"limit":3}"#
        let run = RunQueryRequest(parent: Self.root, query: Self.query)
        expectEqual(CallSubject.text(.runQuery, run.encodedBytes()), json)
        let below = RunQueryRequest(parent: "\(Self.root)/a/b", query: Self.query)
        expectEqual(CallSubject.text(.runQuery, below.encodedBytes()), "\(json) below a/b")
        let target = ListenTarget(.query(parent: Self.root, Self.query), id: 7)
        expectEqual(CallSubject.text(of: ListenRequest(database: Self.database, .add(target))), "target 7, \(json)")
        let documents = ListenTarget(.documents(["\(Self.root)/c/d"]), id: 9)
        let listen = ListenRequest(database: Self.database, .add(documents)).encodedBytes()
        expectEqual(CallSubject.text(.listen, listen), "target 9, c/d")
    }

    @Test
    func `A commit's line names the documents of its writes`() throws {
        var writes = CommitWrites(database: try DatabaseName(project: "p", database: "(default)"))
        writes.delete("\(Self.root)/c/d")
        writes.delete("\(Self.root)/c/e")
        expectEqual(CallSubject.text(.commit, writes.request()), "c/d, c/e")
    }

    @Test
    func `A request that cannot be read gives no name`() {
        for method in Method.allCases { expectEqual(CallSubject.text(method, [0xFF, 0xFF, 0xFF]), "") }
    }
}
