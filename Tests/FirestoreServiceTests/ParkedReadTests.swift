// Reads at a time with a commit in flight: the call is parked, and the loop serves others.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ParkedReadTests {
    private let one = Harness.fields(["a": .integer(1)])

    @Test
    func `A call that reads at the present is parked until the commit in flight is visible`() throws {
        let gate = Gate(isOpen: true)
        let harness = try Harness {
            $0.engine.fault = {
                if $0 == .syncLog { gate.pass() }
                return 0
            }
        }
        try harness.set(["c/x": one])
        gate.close()
        var writes = try harness.emptyWrites()
        try Harness.name("c/y").withUTF8Span { try writes.update($0, fields: one.span.bytes) }
        var writer = ByteBuffer()
        writer.append(CommitWrites(writes).request(transaction: []))
        let commit = begin(harness, .commit, writer.copyBytes())
        try gate.waitUntilReached()

        let time = TimestampValue(microseconds: Int64(SystemClock.microseconds()))
        var query = StructuredQuery()
        query.from = [CollectionSelector(collectionID: "c")]
        let parked = [
            begin(harness, .getDocument, GetDocumentRequest(name: Harness.name("c/y"), consistency: .readTime(time))),
            begin(
                harness, .batchGetDocuments,
                BatchGetDocumentsRequest(
                    database: Harness.database, documents: [Harness.name("c/y")], consistency: .readTime(time))),
            begin(
                harness, .listDocuments,
                ListDocumentsRequest(parent: Harness.root, collectionID: "c", consistency: .readTime(time))),
            begin(
                harness, .listCollectionIds,
                ListCollectionIdsRequest(parent: Harness.root, consistency: .readTime(time))),
            begin(
                harness, .runQuery, RunQueryRequest(parent: Harness.root, query: query, consistency: .readTime(time))),
            begin(
                harness, .beginTransaction,
                BeginTransactionRequest(database: Harness.database, options: .readOnly(readTime: time))),
        ]
        // The loop serves others meanwhile.
        try expectEqual(harness.get("c/x")?.fields, one)
        expectNil(commit.answer.status)
        expect(parked.allSatisfy { $0.answer.status == nil })
        gate.open()
        for call in [commit] + parked {
            expect(harness.loop.run { call.answer.status != nil })
            expect(call.answer.isOK, "\(call.answer.text)")
        }
        try expectEqual(DocumentMessage(wireBytes: parked[0].answer.messages.first).fields, one)
        try expectEqual(ListDocumentsResponse(wireBytes: parked[2].answer.messages.first).documents.count, 2)
    }

    private func begin(_ harness: Harness, _ method: FirestoreMessages.Method, _ message: some FirestoreMessage)
        -> TestCall
    {
        begin(harness, method, message.encodedBytes())
    }

    private func begin(_ harness: Harness, _ method: FirestoreMessages.Method, _ request: [UInt8]) -> TestCall {
        let call = TestCall(loop: harness.loop, method: method)
        harness.service.begin(call, request)
        call.halfClose()
        return call
    }
}
