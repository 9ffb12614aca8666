// Transactions through the service: begin, read, commit, roll back, conflict.

import Basics
import DocumentModel
import FirestoreMessages
import FirestoreService
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct TransactionTests {
    private let one = Harness.fields(["a": .integer(1)])
    private let two = Harness.fields(["a": .integer(2)])

    private func writes(_ harness: Harness, _ path: String, _ fields: [UInt8]) throws -> WriteList {
        var writes = try harness.emptyWrites()
        try Harness.name(path).withUTF8Span { try writes.update($0, fields: fields.span.bytes) }
        return writes
    }

    @Test
    func `A transaction reads its snapshot and commits`() throws {
        let harness = try Harness()
        try harness.set(["c/x": one])
        let transaction = try harness.begin()
        expect(!transaction.isEmpty)
        try expectEqual(harness.get("c/x", .transaction(transaction))?.fields, one)
        try harness.commit(try writes(harness, "c/y", two), transaction: transaction)
        try expectEqual(harness.get("c/y")?.fields, two)
    }

    @Test
    func `A change of a document that was read aborts the commit`() throws {
        let harness = try Harness()
        try harness.set(["c/x": one])
        let transaction = try harness.begin()
        _ = try harness.get("c/x", .transaction(transaction))
        try harness.set(["c/x": two])
        let answer = harness.tryCommit(try writes(harness, "c/y", one), transaction: transaction)
        expectEqual(answer.status, .aborted)
        try expectNil(harness.get("c/y"))
    }

    @Test
    func `A document that comes into being after it was missed aborts the commit`() throws {
        let harness = try Harness()
        let transaction = try harness.begin()
        try expectNil(harness.get("c/x", .transaction(transaction)))
        try harness.set(["c/x": two])
        expectEqual(harness.tryCommit(try writes(harness, "c/y", one), transaction: transaction).status, .aborted)
    }

    @Test
    func `A batch get begins a transaction and sends its id first`() throws {
        let harness = try Harness()
        try harness.set(["c/x": one, "c/y": two])
        let answers = try harness.messages(
            .batchGetDocuments,
            BatchGetDocumentsRequest(
                database: Harness.database, documents: ["c/x", "c/y"].map(Harness.name),
                consistency: .newTransaction(.readWrite)),
            as: BatchGetDocumentsResponse.self)
        expectEqual(answers.count, 2)
        expect(!answers[0].transaction.isEmpty)
        expect(answers[1].transaction.isEmpty)
        try harness.set(["c/y": one])
        let answer = harness.tryCommit(try writes(harness, "c/z", one), transaction: answers[0].transaction)
        expectEqual(answer.status, .aborted)
    }

    @Test
    func `A call that is over before it has sent the id of its transaction leaves none open`() throws {
        let harness = try Harness()
        try harness.set(["c/x": one])
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let begins = ReadConsistency.newTransaction(.readWrite(retryTransaction: [], concurrency: .pessimistic))
        let requests: [(FirestoreMessages.Method, [UInt8])] = [
            (.beginTransaction, BeginTransactionRequest(database: Harness.database, options: nil).encodedBytes()),
            (
                .batchGetDocuments,
                BatchGetDocumentsRequest(
                    database: Harness.database, documents: [Harness.name("c/x")], consistency: begins
                ).encodedBytes()
            ),
            (.runQuery, RunQueryRequest(parent: Harness.root, query: query, consistency: begins).encodedBytes()),
            (
                .runAggregationQuery,
                RunAggregationQueryRequest(
                    parent: Harness.root,
                    query: StructuredAggregationQuery(
                        query: query, aggregations: [Aggregation(.count(upTo: nil), alias: "n")]), consistency: begins
                ).encodedBytes()
            ),
        ]
        var isOpen: Bool { harness.store.statistics.transactionsOpen > 0 }
        for (method, request) in requests {
            // While the transaction begins.
            let early = TestCall(loop: harness.loop, method: method)
            harness.service.begin(early, request)
            early.cancel()
            expect(harness.loop.run { !isOpen }, "\(method.name), while it begins")
            // While its client takes nothing of the reply.
            if method == .beginTransaction { continue }
            expectEqual(harness.call(method, request, messagesMax: 0).status, .cancelled)
            expect(harness.loop.run { !isOpen }, "\(method.name), while it is read")
        }
        // Of a client that has taken the id the transaction stays.
        expectEqual(harness.call(.batchGetDocuments, requests[1].1, messagesMax: 1).status, .cancelled)
        expect(isOpen)
    }

    @Test
    func `A query begins a transaction with a separate message`() throws {
        let harness = try Harness()
        try harness.set(["c/x": one])
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let answers = try harness.messages(
            .runQuery,
            RunQueryRequest(parent: Harness.root, query: query, consistency: .newTransaction(.readWrite)),
            as: RunQueryResponse.self)
        expectEqual(answers.map { $0.document == nil }, [true, false])
        expect(!answers[0].transaction.isEmpty)
        try harness.set(["c/new": one])
        let answer = harness.tryCommit(try writes(harness, "d/z", one), transaction: answers[0].transaction)
        expectEqual(answer.status, .aborted)
    }

    @Test
    func `A finished transaction is no longer valid, but rolling it back is fine`() throws {
        let harness = try Harness()
        let transaction = try harness.begin()
        try harness.commit(try writes(harness, "c/x", one), transaction: transaction)
        let again = harness.tryCommit(try writes(harness, "c/x", two), transaction: transaction)
        expectEqual(again.status, .invalidArgument)
        expect(again.text.contains("transaction has expired"))
        expect(harness.call(.rollback, RollbackRequest(database: Harness.database, transaction: transaction)).isOK)
        expect(harness.call(.rollback, RollbackRequest(database: Harness.database, transaction: [1, 2, 3])).isOK)
        expectEqual(
            harness.call(.rollback, RollbackRequest(database: Harness.database, transaction: [])).status,
            .invalidArgument)
    }

    @Test(arguments: [0, 1, 15])
    func `A malformed id is refused by every method that reads, also an empty one`(byteCount: Int) throws {
        let harness = try Harness()
        try harness.set(["c/x": one])
        let consistency = ReadConsistency.transaction([UInt8](repeating: 7, count: byteCount))
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let count = StructuredAggregationQuery(query: query, aggregations: [Aggregation(.count(upTo: nil))])
        let name = Harness.name("c/x")
        let answers = [
            harness.call(.getDocument, GetDocumentRequest(name: name, consistency: consistency)),
            harness.call(
                .batchGetDocuments,
                BatchGetDocumentsRequest(database: Harness.database, documents: [name], consistency: consistency)),
            harness.call(
                .listDocuments,
                ListDocumentsRequest(parent: Harness.root, collectionID: "c", consistency: consistency)),
            harness.call(.runQuery, RunQueryRequest(parent: Harness.root, query: query, consistency: consistency)),
            harness.call(
                .runAggregationQuery,
                RunAggregationQueryRequest(parent: Harness.root, query: count, consistency: consistency)),
        ]
        for answer in answers {
            expectEqual(answer.status, .invalidArgument)
            expect(answer.text.contains("Invalid transaction."))
        }
        // A commit without a transaction has an empty id.
        let id = [UInt8](repeating: 7, count: byteCount)
        expectEqual(harness.tryCommit(try writes(harness, "c/y", one), transaction: id).isOK, byteCount == 0)
    }

    @Test
    func `A rolled back transaction does not commit`() throws {
        let harness = try Harness()
        let transaction = try harness.begin()
        expect(harness.call(.rollback, RollbackRequest(database: Harness.database, transaction: transaction)).isOK)
        expectEqual(
            harness.tryCommit(try writes(harness, "c/x", one), transaction: transaction).status, .invalidArgument)
    }

    @Test
    func `A read-only transaction reads one state and writes nothing`() throws {
        let harness = try Harness()
        try harness.set(["c/x": one])
        let transaction = try harness.begin(.readOnly(readTime: nil))
        try harness.set(["c/x": two])
        try expectEqual(harness.get("c/x", .transaction(transaction))?.fields, one)
        let answer = harness.tryCommit(try writes(harness, "c/y", one), transaction: transaction)
        expectEqual(answer.status, .invalidArgument)
        expect(answer.text.contains("Cannot modify entities in a read-only transaction"))
    }

    @Test
    func `A transaction that only reads is not retried, and others are`() throws {
        let harness = try Harness()
        func retry(_ transaction: [UInt8]) -> TestAnswer {
            let options = TransactionOptions.readWrite(retryTransaction: transaction, concurrency: .unspecified)
            return harness.call(
                .beginTransaction, BeginTransactionRequest(database: Harness.database, options: options))
        }
        let reading = try harness.begin(.readOnly(readTime: nil))
        let writing = try harness.begin()
        for isEnded in [false, true] {
            let answer = retry(reading)
            expect(answer.status == .invalidArgument && answer.text == "Cannot retry a read-only transaction.")
            expect(retry(writing).isOK)
            if isEnded { break }
            for transaction in [reading, writing] {
                expect(
                    harness.call(.rollback, RollbackRequest(database: Harness.database, transaction: transaction)).isOK)
            }
        }
    }

    @Test
    func `An id that never was one is refused`() throws {
        let harness = try Harness()
        for count in [16, 24] {
            let id = [UInt8](repeating: 7, count: count)
            let answer = harness.call(
                .getDocument, GetDocumentRequest(name: Harness.name("c/x"), consistency: .transaction(id)))
            expectEqual(answer.status, .invalidArgument)
            expect(answer.text.contains("transaction has expired"))
        }
    }

    @Test
    func `A read that begins a transaction and says no more begins a read-only one`() throws {
        let harness = try Harness()
        try harness.set(["c/x": one])
        var request = ByteBuffer()
        request.appendField(1, string: Harness.database)
        request.appendField(2, string: Harness.name("c/x"))
        request.withLengthPrefix(field: 5) { _ in }
        let answer = harness.call(.batchGetDocuments, request.copyBytes())
        let begun = try BatchGetDocumentsResponse(wireBytes: answer.messages.first).transaction
        let refused = harness.tryCommit(try writes(harness, "c/y", one), transaction: begun)
        expectEqual(refused.status, .invalidArgument)
        expect(refused.text.contains("Cannot modify entities in a read-only transaction"))
    }

    @Test(arguments: [
        FirestoreMessages.Method.getDocument, .batchGetDocuments, .runQuery, .listDocuments,
    ])
    func `What a pessimistic transaction reads by any method cannot be written before it ends`(
        method: FirestoreMessages.Method
    ) throws {
        let harness = try Harness()
        try harness.set(["c/x": one])
        let transaction = try harness.begin(.readWrite(retryTransaction: [], concurrency: .pessimistic))
        let consistency = ReadConsistency.transaction(transaction)
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let request: any FirestoreMessage =
            switch method {
            case .getDocument: GetDocumentRequest(name: Harness.name("c/x"), consistency: consistency)
            case .batchGetDocuments:
                BatchGetDocumentsRequest(
                    database: Harness.database, documents: [Harness.name("c/x")], consistency: consistency)
            case .runQuery: RunQueryRequest(parent: Harness.root, query: query, consistency: consistency)
            default: ListDocumentsRequest(parent: Harness.root, collectionID: "c", consistency: consistency)
            }
        expect(harness.call(method, request.encodedBytes()).isOK)
        var commit = ByteBuffer()
        commit.append(CommitWrites(try writes(harness, "c/x", two)).request())
        let waiting = TestCall(loop: harness.loop, method: .commit)
        let bytes = commit.copyBytes()
        harness.service.begin(waiting, bytes)
        // A later commit elsewhere completes first.
        try harness.set(["elsewhere/x": one])
        expectNil(waiting.answer.status)
        try harness.commit(try writes(harness, "c/y", one), transaction: transaction)
        expect(harness.loop.run { waiting.answer.status != nil })
        expect(waiting.answer.isOK)
        try expectEqual(harness.get("c/x")?.fields, two)
    }

    @Test(arguments: [
        FirestoreMessages.Method.runQuery, .runAggregationQuery, .listDocuments,
    ])
    func `A pessimistic transaction that writes nothing is aborted when a phantom came between its queries`(
        method: FirestoreMessages.Method
    ) throws {
        let harness = try Harness()
        try harness.set(["c/x": one])
        let transaction = try harness.begin(.readWrite(retryTransaction: [], concurrency: .pessimistic))
        let consistency = ReadConsistency.transaction(transaction)
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let count = StructuredAggregationQuery(query: query, aggregations: [Aggregation(.count(upTo: nil))])
        let request: any FirestoreMessage =
            switch method {
            case .runQuery: RunQueryRequest(parent: Harness.root, query: query, consistency: consistency)
            case .runAggregationQuery:
                RunAggregationQueryRequest(parent: Harness.root, query: count, consistency: consistency)
            default: ListDocumentsRequest(parent: Harness.root, collectionID: "c", consistency: consistency)
            }
        expect(harness.call(method, request.encodedBytes()).isOK)
        try harness.set(["c/new": one])
        expect(harness.call(method, request.encodedBytes()).isOK)
        expectEqual(harness.tryCommit(try harness.emptyWrites(), transaction: transaction).status, .aborted)
    }

    @Test
    func `Transactions that reads begin count towards those of the connection`() throws {
        let harness = try Harness { $0.transactionsPerConnectionMax = 3 }
        let query = RunQueryRequest(
            parent: Harness.root, query: StructuredQuery(from: [CollectionSelector(collectionID: "c")]),
            consistency: .newTransaction(.readWrite))
        let get = BatchGetDocumentsRequest(
            database: Harness.database, documents: [Harness.name("c/x")], consistency: .newTransaction(.readWrite))
        let first = try harness.begin()
        expect(harness.call(.runQuery, query).isOK)
        expect(harness.call(.batchGetDocuments, get).isOK)
        let begin = BeginTransactionRequest(database: Harness.database, options: nil)
        for answer in [
            harness.call(.runQuery, query), harness.call(.batchGetDocuments, get),
            harness.call(.beginTransaction, begin),
        ] {
            expectEqual(answer.status, .resourceExhausted)
            expect(answer.text.contains("transactions of this connection"))
        }
        expect(harness.call(.rollback, RollbackRequest(database: Harness.database, transaction: first)).isOK)
        expect(harness.call(.beginTransaction, begin).isOK)
        // Another connection has room.
        harness.loop.connectionContext = nil
        expect(harness.call(.beginTransaction, begin).isOK)
    }
}
