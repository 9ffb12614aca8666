// Transactions: snapshots, the anomalies they exclude, their ends, and turns under contention.

import Basics
import DocumentModel
import Storage
import TestSupport
import Testing

@testable import DocumentStore
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)), .inSimulations)
struct TransactionTests {
    @Test
    func `Reads see the state at the begin, also what is missing, and not what comes later`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        let transaction = try await harness.begin(.readOnly(readTime: nil))
        try await harness.commit([.set("c/a", fields(2)), .set("c/b", fields(1))])
        try expectEqual(harness.integer("c/a", "n", .transaction(transaction)), 1)
        try expectNil(harness.get("c/b", .transaction(transaction)))
        try expectEqual(harness.ids("c", .all, .transaction(transaction)), ["a"])
        // Never aborted, and refused when it writes.
        try await harness.commit([], transaction: transaction)
        let writing = try await harness.begin(.readOnly(readTime: nil))
        let error = try #require(try await harness.failure([.set("c/a", fields(3))], transaction: writing))
        expectEqual(error.code, .invalidArgument)
        expect(error.message.contains("Cannot modify entities in a read-only transaction"))
        try harness.finish()
    }

    @Test
    func `A read-only transaction at a read time sees that time`() async throws {
        let harness = try StoreHarness()
        let first = try await harness.result(committing: [.set("c/a", fields(1))])
        try await harness.commit([.set("c/a", fields(2))])
        let time = TimestampValue(microseconds: Int64(first.commitMicroseconds))
        let transaction = try await harness.begin(.readOnly(readTime: time))
        try expectEqual(harness.integer("c/a", "n", .transaction(transaction)), 1)
        harness.store.rollback(transaction)
        try harness.finish()
    }

    @Test
    func `Lost update: of two that read and write one document the second is aborted`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        let (one, two) = (try await harness.begin(), try await harness.begin())
        _ = try harness.get("c/a", .transaction(one))
        _ = try harness.get("c/a", .transaction(two))
        try await harness.commit([.set("c/a", fields(2))], transaction: one)
        try await expectEqual(harness.failure([.set("c/a", fields(3))], transaction: two)?.code, .aborted)
        try expectEqual(harness.integer("c/a"), 2)
        try harness.finish()
    }

    @Test
    func `Write skew: each reads both and writes one; only one of them commits`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1)), .set("c/b", fields(1))])
        let (one, two) = (try await harness.begin(), try await harness.begin())
        for transaction in [one, two] {
            _ = try harness.get("c/a", .transaction(transaction))
            _ = try harness.get("c/b", .transaction(transaction))
        }
        try await harness.commit([.set("c/a", fields(0))], transaction: one)
        try await expectEqual(harness.failure([.set("c/b", fields(0))], transaction: two)?.code, .aborted)
        try harness.finish()
    }

    @Test
    func `A missing document that was read and then created is a conflict, also in a database that did not exist`()
        async throws
    {
        let harness = try StoreHarness()
        let transaction = try await harness.begin()
        try expectNil(harness.get("c/a", .transaction(transaction)))
        try await harness.commit([.set("c/a", fields(1))])
        try await expectEqual(harness.failure([.set("c/b", fields(1))], transaction: transaction)?.code, .aborted)
        try harness.finish()
    }

    @Test
    func `Deleted and created again is a change`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        let transaction = try await harness.begin()
        _ = try harness.get("c/a", .transaction(transaction))
        try await harness.commit([.delete("c/a")])
        try await harness.commit([.set("c/a", fields(1))])
        try await expectEqual(harness.failure([.set("c/b", fields(1))], transaction: transaction)?.code, .aborted)
        try harness.finish()
    }

    @Test(
        arguments: [
            ("insert that matches", true), ("insert that does not match", false), ("insert outside", false),
            ("delete of a match", true), ("delete of no match", false), ("change out of the filter", true),
            ("change into the filter", true), ("change of no match", false), ("change that touches nothing", false),
            ("insert deeper", false),
        ], [262_144, 2])
    func `Phantoms: a change of the results of a scanned range aborts; a change outside or of other documents does not`(
        change: (String, Bool), ringSize: Int
    ) async throws {
        let harness = try StoreHarness { $0.recentChangesMax = ringSize }
        try await harness.commit([
            .set("c/in", fields(1)), .set("c/out", fields(0)), .set("c/zz", fields(1)), .set("other/x", fields(1)),
        ])
        let transaction = try await harness.begin()
        let onlyOnes: DocumentFilter = { _, bytes in
            guard let fields = try? MapValue(documentBytes: bytes) else { return false }
            return fields["n"] == .integer(1)
        }
        // Up to c/y: not c/zz.
        let range = DocumentIDRange(upper: DocumentIDBound(id: Array("y".utf8), isInclusive: false))
        _ = try harness.ids("c", range, .transaction(transaction), matching: onlyOnes)
        let writes: [StepWrite] =
            switch change.0 {
            case "insert that matches": [.set("c/new", fields(1))]
            case "insert that does not match": [.set("c/new", fields(2))]
            case "insert outside": [.set("c/z", fields(1)), .set("d/a", fields(1))]
            case "delete of a match": [.delete("c/in")]
            case "delete of no match": [.delete("c/out")]
            case "change out of the filter": [.set("c/in", fields(3))]
            case "change into the filter": [.set("c/out", fields(1))]
            case "change of no match": [.set("c/out", fields(5))]
            case "change that touches nothing": [.set("c/in", fields(1)), .set("c/zz", fields(9))]
            default: [.set("c/in/deep/x", fields(1))]
            }
        try await harness.commit(writes)
        // With a small ring, enough others to push the change out of it.
        for number in 0..<6 { try await harness.commit([.set("other/\(number)", fields(1))]) }
        let failure = try await harness.failure([.set("result/r", fields(1))], transaction: transaction)
        expectEqual(failure?.code == .aborted, change.1)
        if failure != nil { expectEqual(failure?.code, .aborted) }
        try harness.finish()
    }

    @Test
    func `A walk that stopped early conflicts only with what it passed`() async throws {
        let harness = try StoreHarness()
        try await harness.commit((0..<10).map { .set("c/\($0)", fields(1)) })
        let (up, down) = (try await harness.begin(), try await harness.begin())
        try expectEqual(harness.ids("c", limit: 3, .transaction(up)), ["0", "1", "2"])
        try expectEqual(harness.ids("c", direction: .descending, limit: 3, .transaction(down)), ["9", "8", "7"])
        try await harness.commit([.set("c/5", fields(2))])
        try await expectNil(harness.failure([.set("r/up", fields(1))], transaction: up))
        try await expectNil(harness.failure([.set("r/down", fields(1))], transaction: down))
        let (up2, down2) = (try await harness.begin(), try await harness.begin())
        _ = try harness.ids("c", limit: 3, .transaction(up2))
        _ = try harness.ids("c", direction: .descending, limit: 3, .transaction(down2))
        try await harness.commit([.set("c/11", fields(2)), .set("c/71", fields(1))])
        try await expectEqual(harness.failure([.set("r/up", fields(2))], transaction: up2)?.code, .aborted)
        try await expectEqual(harness.failure([.set("r/down", fields(2))], transaction: down2)?.code, .aborted)
        try harness.finish()
    }

    @Test
    func `A new collection is a phantom of a search for collections`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("a/1/posts/x", fields(1))])
        let transaction = try await harness.begin()
        func search(_ transaction: TransactionIdentifier, after position: [UInt8]) throws -> [UInt8]? {
            let reader = harness.store.makeReader()
            let source = try reader.source(at: try reader.readPoint(.transaction(transaction), in: harness.database))
            return try source.nextCollection(after: position, below: [], collectionID: Array("posts".utf8))
        }
        let found = try search(transaction, after: [])
        expectEqual(found, Array("a/1/posts".utf8))
        let position = try #require(found)
        try expectNil(search(transaction, after: position))
        let other = try await harness.begin()
        try expectNil(search(other, after: position))
        try await harness.commit([.set("b/1/comments/y", fields(1))])
        try await expectNil(harness.failure([.set("r/1", fields(1))], transaction: other))
        try await harness.commit([.set("b/1/posts/y", fields(1))])
        try await expectEqual(harness.failure([.set("r/2", fields(1))], transaction: transaction)?.code, .aborted)
        try harness.finish()
    }

    @Test
    func `A commit without writes never aborts`() async throws {
        let harness = try StoreHarness()
        let transaction = try await harness.begin()
        _ = try harness.get("c/a", .transaction(transaction))
        try await harness.commit([.set("c/a", fields(1))])
        try await harness.commit([], transaction: transaction)
        try harness.finish()
    }

    @Test
    func `A commit ends its transaction even if it fails; ended and unknown ones are refused, rollback never is`()
        async throws
    {
        let harness = try StoreHarness()
        let failed = try await harness.begin()
        try await expectEqual(
            harness.failure([.set("c/a", fields(1), .exists(true))], transaction: failed)?.code, .notFound)
        let error = try #require(try await harness.failure([], transaction: failed))
        expectEqual(error.code, .invalidArgument)
        expect(error.message.contains("transaction has expired"))
        harness.store.rollback(failed)
        let rolledBack = try await harness.begin()
        harness.store.rollback(rolledBack)
        #expect(throws: RequestError.unknownTransaction) { try harness.get("c/a", .transaction(rolledBack)) }
        let forged = TransactionIdentifier(number: rolledBack.number + 1, nonce: 5, run: rolledBack.run)
        harness.store.rollback(forged)
        try await expectEqual(harness.failure([], transaction: forged)?.code, .invalidArgument)
        let bytes = rolledBack.bytes
        expectEqual(bytes.count, 24)
        try expectEqual(TransactionIdentifier(bytes: bytes.byteSpan), rolledBack)
        let elsewhere = TransactionIdentifier(number: rolledBack.number, nonce: rolledBack.nonce, run: 1)
        try await expectEqual(harness.failure([], transaction: elsewhere), .lostTransaction)
        #expect(throws: RequestError.lostTransaction) { try harness.get("c/a", .transaction(elsewhere)) }
        try harness.finish()
    }

    @Test
    func `Silent for 60 seconds or older than 270, a transaction has expired`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(1))])
        let (idle, busy) = (try await harness.begin(), try await harness.begin())
        for _ in 0..<5 {
            harness.clock.advance(milliseconds: 50_000)
            try expectEqual(harness.integer("c/a", "n", .transaction(busy)), 1)
        }
        #expect(throws: RequestError.unknownTransaction) { try harness.get("c/a", .transaction(idle)) }
        harness.clock.advance(milliseconds: 20_000)
        #expect(throws: RequestError.unknownTransaction) { try harness.get("c/a", .transaction(busy)) }
        try await expectEqual(harness.failure([.set("c/a", fields(2))], transaction: busy)?.code, .invalidArgument)
        // The commit thread's round drops them from the table.
        harness.store.noticeTime()
        try await harness.commit([.set("c/b", fields(2))])
        try await harness.commit([.set("c/b", fields(3))])
        expectEqual(harness.store.statistics.transactionsOpen, 0)
        try harness.finish()
    }

    @Test
    func `Open transactions and their reads are bounded`() async throws {
        let harness = try StoreHarness {
            $0.transactionsMax = 2
            $0.transactionReadsMax = 3
        }
        let one = try await harness.begin()
        _ = try await harness.begin()
        await #expect(throws: RequestError.self) { try await harness.begin() }
        for number in 0..<3 { _ = try harness.get("c/\(number)", .transaction(one)) }
        do {
            _ = try harness.get("c/4", .transaction(one))
            Issue.record("the fourth read should have been refused")
        } catch {
            expectEqual((error as? RequestError)?.code, .resourceExhausted)
        }
        try harness.finish()
    }

    // MARK: Turns

    @Test
    func `The retry of an aborted attempt holds others up until it is done`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(0))])
        let first = try await harness.begin()
        _ = try harness.get("c/a", .transaction(first))
        try await harness.commit([.increment("c/a", field: "n", by: 1)])
        try await expectEqual(harness.failure([.set("c/a", fields(9))], transaction: first)?.code, .aborted)

        let second = try await harness.retry(first)
        try expectEqual(harness.integer("c/a", "n", .transaction(second)), 1)
        async let plain: CommitResult = harness.result(committing: [.increment("c/a", field: "n", by: 10)])
        async let elsewhere: CommitResult = harness.result(committing: [.set("c/b", fields(1))])
        _ = try await elsewhere
        let mine = try await harness.result(committing: [.set("c/a", fields(2))], transaction: second)
        try await expect(plain.commitMicroseconds > 0)
        _ = mine
        try expectEqual(harness.integer("c/a"), 12)
        try harness.finish()
    }

    @Test
    func `Where nobody may wait nothing is held up, and validation decides all the same`() async throws {
        let harness = try StoreHarness { $0.parkedCommitsMax = 0 }
        try await harness.commit([.set("c/a", fields(0))])
        let first = try await harness.begin()
        _ = try harness.get("c/a", .transaction(first))
        try await harness.commit([.increment("c/a", field: "n", by: 1)])
        try await expectEqual(harness.failure([.set("c/a", fields(9))], transaction: first)?.code, .aborted)
        let second = try await harness.retry(first)
        _ = try harness.get("c/a", .transaction(second))
        try await harness.commit([.increment("c/a", field: "n", by: 10)])
        try await expectEqual(harness.failure([.set("c/a", fields(9))], transaction: second)?.code, .aborted)
        try expectEqual(harness.integer("c/a"), 11)
        try harness.finish()
    }

    @Test
    func `A holder that vanishes blocks others for its turn at most`() async throws {
        let harness = try StoreHarness()
        try await harness.commit([.set("c/a", fields(0))])
        let first = try await harness.begin()
        _ = try harness.get("c/a", .transaction(first))
        try await harness.commit([.increment("c/a", field: "n", by: 1)])
        _ = try await harness.failure([.set("c/a", fields(9))], transaction: first)
        _ = try await harness.retry(first)
        // Nothing more is heard of it. The plain commit is parked; time lets it go.
        let done = SharedFlag()
        async let plain: CommitResult = {
            defer { done.set() }
            return try await harness.result(committing: [.increment("c/a", field: "n", by: 10)])
        }()
        try await eventually("the parked commit proceeds") {
            harness.clock.advance(milliseconds: 200)
            harness.store.noticeTime()
            return done.isSet
        }
        _ = try await plain
        try expectEqual(harness.integer("c/a"), 11)
        try harness.finish()
    }

    @Test(arguments: [2, 8, 32])
    func `N clients that increment one document in transactions all finish, and the sum is exact`(clients: Int)
        async throws
    {
        // On a busy machine a client may be slower than a turn; what is tested is the order of turns.
        let harness = try StoreHarness {
            $0.clock = SystemClock()
            $0.turnIdleMilliseconds = 60_000
            $0.turnWaitMilliseconds = 60_000
        }
        try await harness.commit([.set("c/counter", fields(0))])
        let each = 20
        let attempts = Collected<Int>()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<clients {
                group.addTask {
                    for _ in 0..<each {
                        var previous: TransactionIdentifier?
                        var tries = 0
                        while true {
                            tries += 1
                            let transaction =
                                previous == nil ? try await harness.begin() : try await harness.retry(previous!)
                            let value = try #require(try harness.integer("c/counter", "n", .transaction(transaction)))
                            let failure = try await harness.failure(
                                [.set("c/counter", fields(value + 1))], transaction: transaction)
                            if failure == nil { break }
                            expectEqual(failure?.code, .aborted)
                            previous = transaction
                            // Its own turn after the first attempt: five attempts, as clients make, are plenty.
                            expect(tries < 5)
                        }
                        attempts.append(tries)
                    }
                }
            }
            try await group.waitForAll()
        }
        try expectEqual(harness.integer("c/counter"), Int64(clients * each))
        print("\(clients) clients: \(attempts.all.reduce(0, +)) attempts for \(clients * each) increments")
        try harness.finish()
    }

    @Test(arguments: [UInt64(61)])
    func `Transfers between accounts keep the total, and no reader sees half of one`(seed: UInt64) async throws {
        print("seed \(seed)")
        let harness = try StoreHarness { $0.clock = SystemClock() }
        let accounts = 12
        try await harness.commit((0..<accounts).map { .set("accounts/\($0)", fields(100)) })
        try await withThrowingTaskGroup(of: Void.self) { group in
            for client in 0..<8 {
                group.addTask {
                    var generator = SeededGenerator(seed: seed &+ UInt64(client))
                    for _ in 0..<40 {
                        let from = generator.below(accounts)
                        let to = (from + 1 + generator.below(accounts - 1)) % accounts
                        var previous: TransactionIdentifier?
                        for _ in 0..<10 {
                            let transaction =
                                previous == nil ? try await harness.begin() : try await harness.retry(previous!)
                            let source = try #require(
                                try harness.integer("accounts/\(from)", "n", .transaction(transaction)))
                            let target = try #require(
                                try harness.integer("accounts/\(to)", "n", .transaction(transaction)))
                            let failure = try await harness.failure(
                                [
                                    .set("accounts/\(from)", fields(source - 1)),
                                    .set("accounts/\(to)", fields(target + 1)),
                                ],
                                transaction: transaction)
                            if failure == nil { break }
                            expectEqual(failure?.code, .aborted)
                            previous = transaction
                        }
                    }
                }
            }
            group.addTask {
                for _ in 0..<200 {
                    let reader = harness.store.makeReader()
                    let source = try reader.source(at: try reader.readPoint(.latest, in: harness.database))
                    var total: Int64 = 0
                    var scan = CollectionScan(Array("accounts".utf8), direction: .ascending)
                    var work = StepWork(budget: .max)
                    try scan.next(from: source, &work) { row in
                        if let fields = try? MapValue(documentBytes: row.fields),
                            case .integer(let balance)? = fields["n"]
                        {
                            total += balance
                        }
                        return .more
                    }
                    expectEqual(total, Int64(accounts) * 100)
                    await Task.yield()
                }
            }
            try await group.waitForAll()
        }
        try harness.finish()
    }
}
