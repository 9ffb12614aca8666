// RunQuery and RunAggregationQuery as streams: what each message carries, and how large results are paged.

import DocumentModel
import FirestoreMessages
import FirestoreService
import Glibc
import QueryEngine
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct QueryTests {
    private func fields(_ number: Int, padding: Int = 0) -> [UInt8] {
        Harness.fields(["n": .integer(Int64(number)), "p": .string(String(repeating: "x", count: padding))])
    }

    private let collection = StructuredQuery(from: [CollectionSelector(collectionID: "c")])

    private func run(
        _ harness: Harness, _ query: StructuredQuery, _ consistency: ReadConsistency = .latest
    ) throws -> [RunQueryResponse] {
        try harness.messages(
            .runQuery, RunQueryRequest(parent: Harness.root, query: query, consistency: consistency),
            as: RunQueryResponse.self)
    }

    private func ids(_ responses: [RunQueryResponse]) -> [String] {
        responses.compactMap { $0.document?.name.split(separator: "/").last.map(String.init) }
    }

    @Test
    func `Every message has the read time; no results give one message without a document`() throws {
        let harness = try Harness()
        let empty = try run(harness, collection)
        expectEqual(empty.count, 1)
        expectNil(empty[0].document)
        expect(empty[0].readTime != nil)
        try harness.set(["c/a": fields(1), "c/b": fields(2)])
        let full = try run(harness, collection)
        expectEqual(ids(full), ["a", "b"])
        expectEqual(Set(full.map(\.readTime)).count, 1)
        expect(full[0].document?.updateTime != nil)
    }

    @Test
    func `Filters, orders, limits and projections apply`() throws {
        let harness = try Harness()
        try harness.set(["c/a": fields(1), "c/b": fields(2), "c/c": fields(3)])
        var query = collection
        query.filter = .field(try FieldPath("n"), .greaterThan, EncodedValue(.integer(1)))
        query.orderBy = [Order(field: try FieldPath("n"), direction: .descending)]
        expectEqual(ids(try run(harness, query)), ["c", "b"])
        query.limit = 1
        query.select = Projection(fields: [try FieldPath("n")])
        let responses = try run(harness, query)
        expectEqual(ids(responses), ["c"])
        expectEqual(responses[0].document?.fields, Harness.fields(["n": .integer(3)]))
    }

    @Test
    func `The results that an offset skips are counted, with documents or without`() throws {
        let harness = try Harness()
        try harness.set(["c/a": fields(1), "c/b": fields(2), "c/c": fields(3)])
        var query = collection
        query.offset = 2
        let some = try run(harness, query)
        expectEqual(ids(some), ["c"])
        expectEqual(some.map(\.skippedResults).reduce(0, +), 2)
        query.offset = 10
        let none = try run(harness, query)
        expect(ids(none).isEmpty)
        expectEqual(none.map(\.skippedResults).reduce(0, +), 3)
        expect(none.last?.readTime != nil)
    }

    @Test
    func `A result of many pages comes whole and in order`() throws {
        let harness = try Harness()
        var writes = try harness.emptyWrites()
        for index in 0..<300 {
            try Harness.name("c/\(1_000 + index)").withUTF8Span {
                try writes.update($0, fields: fields(index, padding: 1_000).span.bytes)
            }
        }
        try harness.commit(writes)
        expectEqual(ids(try run(harness, collection)), (0..<300).map { String(1_000 + $0) })
    }

    @Test
    func `A query that is given up leaves nothing open`() throws {
        let harness = try Harness()
        try harness.set(["c/a": fields(1), "c/b": fields(2)])
        let request = RunQueryRequest(parent: Harness.root, query: collection)
        expectEqual(harness.call(.runQuery, request.encodedBytes(), messagesMax: 1).status, .cancelled)
        expectEqual(CounterTotals([harness.service.counters])["streams_open"], 0)
    }

    @Test
    func `A query at a read time or in a transaction sees that state`() throws {
        let harness = try Harness()
        let first = try harness.response(setting: ["c/a": fields(1)])
        let transaction = try harness.begin(.readOnly(readTime: nil))
        try harness.set(["c/b": fields(2)])
        expectEqual(ids(try run(harness, collection, .readTime(first.commitTime))), ["a"])
        expectEqual(ids(try run(harness, collection, .transaction(transaction))), ["a"])
        expectEqual(ids(try run(harness, collection)), ["a", "b"])
    }

    @Test
    func `A query is refused without a query, with a broken one, or below a collection`() throws {
        let harness = try Harness()
        let none = RunQueryRequest(parent: Harness.root, query: nil)
        expectEqual(harness.call(.runQuery, none).status, .invalidArgument)
        var negative = collection
        negative.limit = -1
        expectEqual(
            harness.call(.runQuery, RunQueryRequest(parent: Harness.root, query: negative)).status, .invalidArgument)
        let below = RunQueryRequest(parent: Harness.name("c"), query: collection)
        expectEqual(harness.call(.runQuery, below).status, .invalidArgument)
    }

    @Test
    func `A plan is explained without running it: no document, no read time`() throws {
        let harness = try Harness()
        try harness.set(["c/a": fields(1), "c/b": fields(2)])
        var query = collection
        query.filter = .field(try FieldPath("n"), .equal, EncodedValue(.integer(1)))
        var request = RunQueryRequest(parent: Harness.root, query: query)
        request.explain = ExplainOptions(analyze: false)
        let answers = harness.call(.runQuery, request).messages
        try #require(answers.count == 1)
        let bytes = answers[0]
        let view = try RunQueryResponseView(bytes.span.bytes)
        let (hasDocument, readTime) = (view.hasDocument, view.readTime)
        let metrics = try ExplainMetrics(wire: view.explainMetrics)
        expect(!hasDocument && readTime == nil)
        expectEqual(metrics.indexes, [.init(queryScope: "Collection", properties: "(n ASC, __name__ ASC)")])
        expectNil(metrics.execution)
        expectEqual(metrics.tree, "Filter n == 1\n└─ Fetch\n   └─ IndexScan (n ASC, __name__ ASC): n == 1")
    }

    @Test
    func `A plan of totals comes with the transaction that the request begins`() throws {
        let harness = try Harness()
        try harness.set(["c/a": fields(1)])
        for analyze in [false, true] {
            var request = RunAggregationQueryRequest(
                parent: Harness.root,
                query: StructuredAggregationQuery(
                    query: collection, aggregations: [Aggregation(.count(upTo: nil), alias: "n")]),
                consistency: .newTransaction(.readWrite))
            request.explain = ExplainOptions(analyze: analyze)
            let answers = try harness.messages(.runAggregationQuery, request, as: RunAggregationQueryResponse.self)
            expect(answers.count == 1 && answers[0].explainMetrics != nil)
            expectEqual(answers[0].totals.count, analyze ? 1 : 0)
            try harness.commit(try harness.emptyWrites(), transaction: answers[0].transaction)
        }
    }

    @Test
    func `A query that is analyzed returns its results and what it read`() throws {
        let harness = try Harness()
        try harness.set(["c/a": fields(1), "c/b": fields(2), "c/c": fields(1)])
        var query = collection
        query.filter = .field(try FieldPath("n"), .equal, EncodedValue(.integer(1)))
        var request = RunQueryRequest(parent: Harness.root, query: query)
        request.explain = ExplainOptions(analyze: true)
        let answers = harness.call(.runQuery, request).messages
        try #require(answers.count == 3)
        let bytes = answers[2]
        let view = try RunQueryResponseView(bytes.span.bytes)
        let execution = try #require(try ExplainMetrics(wire: view.explainMetrics).execution)
        expect(execution.resultsReturned == 2 && execution.readOperations == 2)
        expect(execution.documentsScanned == 2 && execution.indexEntriesScanned == 2)
        expect(execution.durationNanoseconds > 0)
        expectEqual(
            execution.operators.map(\.line), ["Filter n == 1", "Fetch", "IndexScan (n ASC, __name__ ASC): n == 1"])
        expectEqual(execution.operators.map(\.depth), [0, 1, 2])
        expectEqual(execution.operators.map(\.rows), [2, 2, 2])
        expectEqual(execution.operators.map(\.entries), [0, 0, 2])
        let times = execution.operators.map(\.nanoseconds)
        expect(times[0] >= times[1] && times[1] >= times[2] && times[2] > 0)
        expect(times[0] <= execution.durationNanoseconds)
        expectEqual(execution.ownNanoseconds, [times[0] - times[1], times[1] - times[2], times[2]])

        var count = RunAggregationQueryRequest(
            parent: Harness.root,
            query: StructuredAggregationQuery(query: query, aggregations: [Aggregation(.count(upTo: nil), alias: "n")]))
        count.explain = ExplainOptions(analyze: true)
        let totals = try harness.messages(.runAggregationQuery, count, as: RunAggregationQueryResponse.self)
        let counted = try #require(totals[0].explainMetrics?.execution)
        expect(counted.documentsScanned == 0 && counted.indexEntriesScanned == 2)
        expectEqual(totals[0].totals[0].value, EncodedValue(.integer(2)))
        expectEqual(counted.operators.map(\.rows), [1, 2, 2, 2])
        expectEqual(counted.operators.first?.line, "Aggregate count")
    }

    @Test
    func `Totals come in one message by alias`() throws {
        let harness = try Harness()
        try harness.set(["c/a": fields(1), "c/b": fields(2), "c/c": fields(4)])
        let aggregations = [
            Aggregation(.count(upTo: nil), alias: "all"), Aggregation(.sum(try FieldPath("n")), alias: "total"),
        ]
        let answers = try harness.messages(
            .runAggregationQuery,
            RunAggregationQueryRequest(
                parent: Harness.root, query: StructuredAggregationQuery(query: collection, aggregations: aggregations)),
            as: RunAggregationQueryResponse.self)
        expectEqual(answers.count, 1)
        let totals = Dictionary(uniqueKeysWithValues: answers[0].totals.map { ($0.alias, $0.value) })
        expectEqual(totals, ["all": EncodedValue(.integer(3)), "total": EncodedValue(.integer(7))])
        expect(answers[0].readTime != nil)
    }

    @Test(arguments: [3_600_000_000, 0] as [UInt64])
    func `A reader that pauses continues at its first version, or fails when that is gone`(
        retentionMicroseconds: UInt64
    ) throws {
        let harness = try Harness {
            $0.engine.retentionMicroseconds = retentionMicroseconds
            $0.engine.sweepPauseMicroseconds = 1_000
        }
        func write(_ number: Int64) throws {
            var writes = try harness.emptyWrites()
            // Several pages of 64 KiB.
            let text = String(repeating: "x", count: 2_000)
            for index in 0..<200 {
                let fields = Harness.fields(["n": .integer(number), "t": .string(text)])
                try Harness.name("c/d\(1_000 + index)").withUTF8Span {
                    try writes.update($0, fields: fields.span.bytes)
                }
            }
            try harness.commit(writes)
        }
        try write(1)
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        let request = RunQueryRequest(parent: Harness.root, query: query).encodedBytes()
        let call = TestCall(loop: harness.loop, method: .runQuery, pausesAt: 3)
        harness.service.begin(call, request)
        expect(call.answer.messages.count == 3 && call.answer.status == nil)
        // As the loop does before it waits.
        harness.service.loopWillWait()
        for number in 2...4 as ClosedRange<Int64> {
            try write(number)
            try harness.store.checkpoint()
        }
        // The three states of 200 documents that the last one superseded.
        try waitUntil("the history is swept") {
            retentionMicroseconds != 0 || harness.store.statistics.engine.historyEntriesSwept >= 600
        }
        call.takeMore()
        expect(harness.loop.run { call.answer.status != nil })
        let answer = call.answer
        if retentionMicroseconds == 0 {
            expect(answer.status == .failedPrecondition && answer.text == "The requested snapshot version is too old.")
            expect(answer.messages.count < 200)
        } else {
            expect(answer.isOK && answer.messages.count == 200)
        }
        for message in answer.messages {
            let document = try #require(try RunQueryResponse(wireBytes: message).document)
            expect(document.fields.starts(with: Harness.fields(["n": .integer(1)])))
        }
    }
}
