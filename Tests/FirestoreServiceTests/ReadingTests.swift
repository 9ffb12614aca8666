// GetDocument and BatchGetDocuments.

import DocumentModel
import FirestoreMessages
import FirestoreService
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ReadingTests {
    private let one = Harness.fields(["a": .integer(1), "b": .string("x")])
    private let two = Harness.fields(["a": .integer(2)])

    @Test
    func `A document comes back as it was set, with its times`() throws {
        let harness = try Harness()
        let commit = try harness.response(setting: ["c/x": one])
        let document = try #require(try harness.get("c/x"))
        expectEqual(document.name, Harness.name("c/x"))
        expectEqual(document.fields, one)
        expectEqual(document.createTime, commit.commitTime)
        expectEqual(document.updateTime, commit.commitTime)
    }

    @Test
    func `A server of a cluster without its lease answers no read of the newest state`() throws {
        let holdsLease = Mutex(true)
        let harness = try Harness { $0.holdsLease = { holdsLease.withLock { $0 } } }
        try harness.set(["c/x": one])
        let statuses = {
            [
                harness.call(.getDocument, GetDocumentRequest(name: Harness.name("c/x"))).status,
                harness.call(.getDocument, GetDocumentRequest(name: Harness.name("c/none"))).status,
                harness.call(
                    .batchGetDocuments,
                    BatchGetDocumentsRequest(database: Harness.database, documents: [Harness.name("c/x")])
                ).status,
                // The transaction reads at any server, at the time that it gets here.
                harness.call(
                    .beginTransaction,
                    BeginTransactionRequest(database: Harness.database, options: .readOnly(readTime: nil))
                ).status,
            ]
        }
        expectEqual(statuses(), [.ok, .notFound, .ok, .ok])
        holdsLease.withLock { $0 = false }
        expectEqual(statuses(), [.unavailable, .unavailable, .unavailable, .unavailable])
    }

    @Test
    func `An empty document is found`() throws {
        let harness = try Harness()
        try harness.set(["c/x": []])
        try expectEqual(harness.get("c/x")?.fields, [])
    }

    @Test
    func `A missing document is NOT_FOUND and named`() throws {
        let harness = try Harness()
        let answer = harness.call(.getDocument, GetDocumentRequest(name: Harness.name("c/none")))
        expectEqual(answer.status, .notFound)
        expectEqual(answer.text, "Document (\(Harness.name("c/none"))) not found.")
    }

    @Test(arguments: [
        "", "x", "projects/p", Harness.database, Harness.root, "\(Harness.root)/c", "\(Harness.root)/c/x/d",
        "\(Harness.root)/c/", "\(Harness.root)//x", "\(Harness.root)/c/..", "\(Harness.root)/c/__x__",
        "\(Harness.root)/c/__id0__", "\(Harness.root)/__id7__/x",
    ])
    func `Names that are not those of documents are refused`(_ name: String) throws {
        let harness = try Harness()
        expectEqual(harness.call(.getDocument, GetDocumentRequest(name: name)).status, .invalidArgument)
        let batch = BatchGetDocumentsRequest(database: Harness.database, documents: [name])
        expectEqual(harness.call(.batchGetDocuments, batch).status, .invalidArgument)
    }

    @Test
    func `A mask lets through what it names; an empty one nothing`() throws {
        let harness = try Harness()
        try harness.set(["c/x": one])
        let masked = GetDocumentRequest(name: Harness.name("c/x"), mask: DocumentMask(paths: [try FieldPath("b")]))
        try expectEqual(
            harness.message(.getDocument, masked, as: DocumentMessage.self).fields, Harness.fields(["b": .string("x")]))
        let empty = GetDocumentRequest(name: Harness.name("c/x"), mask: DocumentMask(paths: []))
        let document = try harness.message(.getDocument, empty, as: DocumentMessage.self)
        expectEqual(document.fields, [])
        expect(document.updateTime != nil)
    }

    @Test
    func `A read time shows the past, and refuses the future`() throws {
        let harness = try Harness()
        let first = try harness.response(setting: ["c/x": one])
        try harness.set(["c/x": two])
        try expectEqual(harness.get("c/x", .readTime(first.commitTime))?.fields, one)
        try expectEqual(harness.get("c/x")?.fields, two)
        let before = TimestampValue(microseconds: first.commitTime.microseconds - 1)
        try expectNil(harness.get("c/x", .readTime(before)))
        let future = TimestampValue(seconds: first.commitTime.seconds + 3_600, nanoseconds: 0)
        let answer = harness.call(
            .getDocument, GetDocumentRequest(name: Harness.name("c/x"), consistency: .readTime(future)))
        expectEqual(answer.status, .invalidArgument)
        expect(answer.text.contains("read_time cannot be in the future"))
    }

    @Test(arguments: [
        TimestampValue(seconds: 1, nanoseconds: -1), TimestampValue(seconds: 1, nanoseconds: 1_000_000_000),
        TimestampValue(seconds: Limits.earliestSecond - 1, nanoseconds: 0),
        TimestampValue(seconds: .max, nanoseconds: 0),
        TimestampValue(seconds: .min, nanoseconds: 0), TimestampValue(seconds: 0, nanoseconds: 0),
        TimestampValue(seconds: -1, nanoseconds: 0), TimestampValue(seconds: 1, nanoseconds: 1),
    ])
    func `A read time that no commit can have is invalid, not too old`(_ time: TimestampValue) throws {
        let harness = try Harness()
        let get = GetDocumentRequest(name: Harness.name("c/x"), consistency: .readTime(time))
        expectEqual(harness.call(.getDocument, get).status, .invalidArgument)
        let begin = BeginTransactionRequest(database: Harness.database, options: .readOnly(readTime: time))
        expectEqual(harness.call(.beginTransaction, begin).status, .invalidArgument)
    }

    @Test
    func `A batch get answers found documents first, each name once, each with a read time`() throws {
        let harness = try Harness()
        try harness.set(["c/x": one, "c/y": two])
        let names = ["c/none", "c/y", "c/x", "c/y", "c/none"].map(Harness.name)
        let answers = try harness.messages(
            .batchGetDocuments, BatchGetDocumentsRequest(database: Harness.database, documents: names),
            as: BatchGetDocumentsResponse.self)
        let notified = answers.map { answer in
            switch answer.result {
            case .found(let document): "found \(document.name)"
            case .missing(let name): "missing \(name)"
            case .none: "nothing"
            }
        }
        expectEqual(
            notified,
            ["found \(Harness.name("c/y"))", "found \(Harness.name("c/x"))", "missing \(Harness.name("c/none"))"])
        expectEqual(Set(answers.map(\.readTime)).count, 1)
        expect(answers[0].readTime != nil)
        expect(answers.allSatisfy { $0.transaction.isEmpty })
    }

    @Test
    func `A batch get of many names answers each of them once`() throws {
        let harness = try Harness()
        var writes = try harness.emptyWrites()
        for index in 0..<200 {
            try Harness.name("c/d\(index)").withUTF8Span { try writes.update($0, fields: two.span.bytes) }
        }
        try harness.commit(writes)
        let names = (0..<400).map { Harness.name("c/d\($0 / 2 * 2)") }
        let answers = try harness.messages(
            .batchGetDocuments, BatchGetDocumentsRequest(database: Harness.database, documents: names),
            as: BatchGetDocumentsResponse.self)
        var found: [String] = []
        var missing: [String] = []
        for answer in answers {
            if case .found(let document) = answer.result { found.append(document.name) }
            if case .missing(let name) = answer.result { missing.append(name) }
        }
        expectEqual(found, (0..<100).map { Harness.name("c/d\($0 * 2)") })
        expectEqual(missing, (100..<200).map { Harness.name("c/d\($0 * 2)") })
    }

    @Test
    func `A batch get of no names returns the read time`() throws {
        let harness = try Harness()
        let answers = try harness.messages(
            .batchGetDocuments, BatchGetDocumentsRequest(database: Harness.database, documents: []),
            as: BatchGetDocumentsResponse.self)
        expectEqual(answers.count, 1)
        expectEqual(answers[0].result, .none)
        expect(answers[0].readTime != nil)
    }

    @Test
    func `A batch get refuses names of another database and too many names`() throws {
        var limits = ServiceLimits()
        limits.batchGetDocuments = 2
        let harness = try Harness(limits: limits)
        let other = BatchGetDocumentsRequest(
            database: Harness.database, documents: ["projects/p/databases/e/documents/c/x"])
        expectEqual(harness.call(.batchGetDocuments, other).status, .invalidArgument)
        let many = BatchGetDocumentsRequest(
            database: Harness.database, documents: ["a", "b", "c"].map { Harness.name("c/\($0)") })
        let answer = harness.call(.batchGetDocuments, many)
        expectEqual(answer.status, .invalidArgument)
        expect(answer.text.contains("at most 2"))
    }

    @Test
    func `A batch get that was cancelled has no effect on the next one`() throws {
        let harness = try Harness()
        try harness.set(["c/x": one, "c/y": two])
        let request = BatchGetDocumentsRequest(
            database: Harness.database, documents: ["c/x", "c/y", "c/z"].map(Harness.name))
        for round in 0..<5 {
            expectEqual(
                harness.call(.batchGetDocuments, request.encodedBytes(), messagesMax: round % 3).status, .cancelled)
            let answers = try harness.messages(.batchGetDocuments, request, as: BatchGetDocumentsResponse.self)
            expectEqual(answers.count, 3)
        }
        expectEqual(CounterTotals([harness.service.counters])["streams_open"], 0)
    }

    @Test
    func `Other calls have their turn while documents are looked up that do not exist`() throws {
        let harness = try Harness()
        try harness.set(["c/d4999": Harness.fields(["n": 1])])
        let names = (0..<5_000).map { Harness.name("c/d\($0)") }
        let call = TestCall(loop: harness.loop, method: .batchGetDocuments)
        let request = BatchGetDocumentsRequest(database: Harness.database, documents: names)
        harness.service.begin(call, request.encodedBytes())
        expect(call.answer.messages.isEmpty, "all documents were looked up at once")
        expect(harness.loop.run { call.answer.status != nil })
        expect(call.answer.isOK && call.answer.messages.count == 5_000)
    }
}
