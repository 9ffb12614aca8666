// The stages update and delete.

import Basics
import DocumentModel
import DocumentStore
import FirestoreMessages
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct WriteStageTests {
    private func harness() throws -> Harness {
        let harness = try Harness()
        try harness.set([
            "c/a": Harness.fields(["m": ["k": 1, "l": 2], "n": 1]), "c/b": Harness.fields(["n": 2]),
            "c/c": Harness.fields(["n": 3]),
        ])
        return harness
    }

    private func large(_ least: Int64) -> Stage {
        .where(.call("greater_than_or_equal", .field("n"), .value(.integer(least))))
    }

    private let double = Stage("update", [.map([("n", .call("multiply", .field("n"), 2)), ("m.k", "new")])])

    private func numbers(_ harness: Harness) throws -> [Value?] {
        try harness.execute(.collection("c"), .sort((.field("__name__"), false))).rows.map { $0["n"] }
    }

    @Test
    func `An update changes the fields that it names in each document, and says how many it changed`() throws {
        let harness = try harness()
        let answer = try harness.execute(.collection("c"), large(2), double)
        expectEqual(answer.rows, [["documents_modified": 2]])
        try expectEqual(numbers(harness), [1, 4, 6])
        _ = try harness.execute(.collection("c"), large(1), .limit(1), double)
        let row = try harness.execute(.collection("c"), .limit(1)).rows[0]
        expectEqual(row, ["m": ["k": "new", "l": 2], "n": 2])
        let unchanged = Stage("update", [.map([("n", .field("nothing"))])])
        try expectEqual(harness.execute(.collection("c"), unchanged).rows, [["documents_modified": 0]])
    }

    @Test
    func `An update without fields makes each document what its row has become`() throws {
        let harness = try harness()
        let changed = try harness.execute(
            .collection("c"), large(1), Stage("add_fields", [.map([("new", .call("add", .field("n"), 1))])]),
            Stage("remove_fields", [.field("m.k"), .field("n")]), Stage("update", [.map([])]))
        expectEqual(changed.rows, [["documents_modified": 3]])
        let rows = try harness.execute(.collection("c"), .sort((.field("__name__"), false))).rows
        expectEqual(rows, [["m": ["l": 2], "new": 2], ["new": 3], ["new": 4]])
        // A row that comes from no document names one.
        let name = Expression.value(.reference(Harness.name("c/b")))
        let named = Stage("literals", [.map([("__name__", name), ("status", "set")])])
        try expectEqual(harness.execute(named, Stage("update", [])).rows, [["documents_modified": 1]])
        try expectEqual(harness.get("c/b").map { try MapValue(documentBytes: $0.fields.byteSpan) }, ["status": "set"])
        let field = Stage("update", [.map([("n", 9)])])
        _ = try harness.execute(named, field)
        try expectEqual(
            harness.get("c/b").map { try MapValue(documentBytes: $0.fields.byteSpan) }, ["n": 9, "status": "set"])
        let missing = Expression.value(.reference(Harness.name("c/none")))
        expectEqual(
            harness.outcome([Stage("literals", [.map([("__name__", missing)])]), Stage("update", [])]).status, .notFound
        )
        let foreign = Expression.value(.reference("projects/other/databases/d/documents/c/a"))
        for value in [foreign, "c/a", nil] {
            let answer = harness.outcome([Stage("literals", [.map([("__name__", value)])]), Stage("update", [])])
            expectEqual(answer.status, .invalidArgument, "\(answer.text)")
        }
    }

    @Test
    func `A delete removes each document once`() throws {
        let harness = try harness()
        let again = Stage("union", [.pipeline([.collection("c"), large(3)])])
        try expectEqual(
            harness.execute(.collection("c"), large(2), again, Stage("delete", [])).rows, [["documents_modified": 2]])
        try expectEqual(numbers(harness), [1])
    }

    @Test
    func `All writes of a pipeline stand or none`() throws {
        let harness = try harness()
        let failing = Stage("update", [.map([("n", .call("divide", 1, .call("subtract", .field("n"), 3)))])])
        expectEqual(harness.outcome([.collection("c"), failing]).status, .invalidArgument)
        try expectEqual(numbers(harness), [1, 2, 3])
        expectEqual(
            harness.outcome([.collection("c"), Stage("union", [.pipeline([.collection("c")])]), double]).status,
            .invalidArgument)
        let grouped = Stage("distinct", [.map([("n", .field("n"))])])
        expectEqual(harness.outcome([.collection("c"), grouped, Stage("delete", [])]).status, .invalidArgument)
        expectEqual(harness.outcome([.collection("c"), Stage("delete", []), .limit(1)]).status, .invalidArgument)
        expectEqual(harness.outcome([Stage("delete", [])]).status, .invalidArgument)
        try expectEqual(numbers(harness), [1, 2, 3])
    }

    @Test
    func `A pipeline of a transaction writes when the transaction commits`() throws {
        let harness = try harness()
        let pipeline = structuredPipeline([.collection("c"), large(3), Stage("delete", [])])
        let begun = try harness.execute(pipeline, .newTransaction(.readWrite))
        let transaction = begun.responses[0].transaction
        expect(!transaction.isEmpty && begun.rows == [["documents_modified": 1]])
        try expectEqual(numbers(harness), [1, 2, 3])
        let update = structuredPipeline([.collection("c"), .limit(1), double])
        _ = try harness.execute(update, .transaction(transaction))
        var writes = WriteList(database: try DatabaseName(Harness.database))
        try Harness.name("c/d").withUTF8Span {
            try writes.update($0, fields: Harness.fields(["n": 9]).span.bytes)
        }
        try harness.commit(writes, transaction: transaction)
        try expectEqual(numbers(harness), [2, 2, 9])
    }

    @Test
    func `auto_commit_transaction commits with the pipeline, and another commit in between aborts it`() throws {
        let harness = try harness()
        let delete = structuredPipeline([.collection("c"), large(3), Stage("delete", [])])
        _ = try harness.execute(delete, .newTransaction(.readWrite), commits: true)
        try expectEqual(numbers(harness), [1, 2])
        let read = try harness.execute(
            structuredPipeline([.collection("c"), large(2)]),
            .newTransaction(.readWrite(retryTransaction: [], concurrency: .optimistic)))
        let transaction = read.responses[0].transaction
        try harness.set(["c/b": Harness.fields(["n": 20])])
        var request = ExecutePipelineRequest(
            database: Harness.database, pipeline: structuredPipeline([.collection("c"), double]),
            consistency: .transaction(transaction))
        request.autoCommitsTransaction = true
        expectEqual(harness.call(.executePipeline, request).status, .aborted)
        try expectEqual(numbers(harness), [1, 20])
        request.consistency = .latest
        expectEqual(harness.call(.executePipeline, request).status, .invalidArgument)
    }

    @Test
    func `A pipeline that writes reads neither the past nor in a transaction that only reads`() throws {
        let harness = try harness()
        let pipeline = structuredPipeline([.collection("c"), Stage("delete", [])])
        let time = try #require(try harness.execute(.collection("c")).responses[0].executionTime)
        for consistency in [ReadConsistency.readTime(time), .newTransaction(.readOnly(readTime: nil))] {
            let request = ExecutePipelineRequest(
                database: Harness.database, pipeline: pipeline, consistency: consistency)
            expectEqual(harness.call(.executePipeline, request).status, .invalidArgument)
        }
        try expectEqual(numbers(harness), [1, 2, 3])
        let explained = try harness.execute(
            structuredPipeline(
                [.collection("c"), Stage("delete", [])], options: [("explain_options", .map([("mode", "explain")]))]))
        expectEqual(explained.responses.last?.explainText?.hasPrefix("Delete"), true)
        try expectEqual(numbers(harness), [1, 2, 3])
    }

    /// Sets the field of a document that no other test has.
    private let other = [Stage("documents", [.value(.reference("/d/x"))]), Stage("update", [.map([("n", 7)])])]

    private func number(_ harness: Harness, _ path: String) throws -> Value? {
        try harness.get(path).flatMap { try MapValue(documentBytes: $0.fields.byteSpan)["n"] }
    }

    @Test
    func `A commit that waits is aborted if a pipeline has written in its transaction meanwhile`() throws {
        let harness = try harness()
        try harness.set(["d/x": Harness.fields(["n": 1])])
        let readWrite = TransactionOptions.readWrite(retryTransaction: [], concurrency: .pessimistic)
        // Another transaction holds what the commit writes.
        let holder = try harness.begin(readWrite)
        _ = try harness.get("c/a", .transaction(holder))
        let transaction = try harness.begin(readWrite)
        var writes = try harness.emptyWrites()
        try Harness.name("c/a").withUTF8Span { try writes.update($0, fields: Harness.fields(["n": 5]).span.bytes) }
        var request = ByteBuffer()
        request.append(CommitWrites(writes).request(transaction: transaction))
        let call = TestCall(loop: harness.loop, method: .commit)
        harness.service.begin(call, request.copyBytes())
        _ = try harness.execute(structuredPipeline(other), .transaction(transaction))
        expectNil(call.answer.status)
        _ = harness.call(.rollback, RollbackRequest(database: Harness.database, transaction: holder))
        expect(harness.loop.run { call.answer.status != nil })
        // Its client has the answer of the pipeline.
        expectEqual(call.answer.status, .aborted, "\(call.answer.text)")
        try expect(number(harness, "c/a") == 1 && number(harness, "d/x") == 1)
    }

    @Test
    func `A commit has the results of the writes in its request alone, and so has its repetition`() throws {
        let harness = try harness()
        try harness.set(["d/x": Harness.fields(["n": 1])])
        let transaction = try harness.begin(.readWrite(retryTransaction: [], concurrency: .pessimistic))
        _ = try harness.execute(structuredPipeline(other), .transaction(transaction))
        var writes = try harness.emptyWrites()
        try Harness.name("c/a").withUTF8Span { try writes.update($0, fields: Harness.fields(["n": 5]).span.bytes) }
        let identifier = RequestIdentifier(sessionHigh: 1, sessionLow: 2, sequence: 1, oldestPending: 1)
        let first = harness.tryCommit(writes, transaction: transaction, identifier: identifier)
        try expect(number(harness, "c/a") == 5 && number(harness, "d/x") == 7)
        let again = harness.tryCommit(writes, transaction: transaction, identifier: identifier)
        for answer in [first, again] {
            try expectEqual(CommitResponse(wireBytes: answer.messages.first).writeResults.count, 1, "\(answer.text)")
        }
    }
}
