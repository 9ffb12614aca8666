// How many transactions may be open, on one connection and in all, and what makes room.

import Basics
import DocumentModel
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct TransactionBoundTests {
    private func begin(_ harness: StoreHarness, _ owner: TransactionOwner?) async throws -> TransactionIdentifier {
        try await withCheckedContinuation { continuation in
            harness.store.beginTransaction(in: harness.database, options: .readWrite, owner: owner) {
                continuation.resume(returning: $0)
            }
        }.get()
    }

    private func refusal(_ harness: StoreHarness, _ owner: TransactionOwner?) async -> StatusCode? {
        do {
            _ = try await begin(harness, owner)
            return nil
        } catch {
            return (error as? RequestError)?.code
        }
    }

    @Test
    func `One connection may have so many open, whatever others have; what ends makes room`() async throws {
        let harness = try StoreHarness { $0.transactionsPerConnectionMax = 2 }
        let (one, other) = (harness.store.makeTransactionOwner(), harness.store.makeTransactionOwner())
        let first = try await begin(harness, one)
        let second = try await begin(harness, one)
        await expectEqual(refusal(harness, one), .resourceExhausted)
        _ = try await begin(harness, other)
        for _ in 0..<5 { _ = try await begin(harness, nil) }
        harness.store.rollback(first)
        _ = try await begin(harness, one)
        await expectEqual(refusal(harness, one), .resourceExhausted)
        try await harness.commit([.set("c/a", fields(1))], transaction: second)
        _ = try await begin(harness, one)
        await expectEqual(refusal(harness, one), .resourceExhausted)
        // Those that expire make room too.
        harness.clock.advance(milliseconds: 61_000)
        harness.store.noticeTime()
        try await harness.commit([.set("c/b", fields(2))])
        try await harness.commit([.set("c/b", fields(3))])
        expectEqual(harness.store.statistics.transactionsOpen, 0)
        _ = try await begin(harness, one)
        try harness.finish()
    }

    @Test
    func `A round looks at some of many open transactions, and the next rounds at the others`() throws {
        var configuration = StoreConfiguration(directory: "unused")
        let clock = SteppedClock()
        configuration.clock = clock
        let table = TransactionTable(configuration: configuration)
        let count = 2 * TransactionTable.checkedMax + 1
        for number in 0..<count {
            try table.begin(
                table.reserveIdentifier(), in: try DatabaseName(project: "p"),
                kind: number % 2 == 0 ? .optimistic : .pessimistic, retried: nil, account: nil)
        }
        expect(table.removeExpired() == [] && table.openCount == count)
        clock.advance(milliseconds: 61_000)
        var dropped: [UInt64] = []
        var open = [table.openCount]
        for _ in 0..<4 {
            dropped += table.removeExpired()
            open.append(table.openCount)
        }
        // The first walk had 10,001 left.
        expectEqual(open, [20_001, 10_001, 10_000, 0, 0])
        expectEqual(dropped.sorted(), (1...UInt64(count)).filter { $0 % 2 == 0 })
    }

    @Test
    func `When the table is full, transactions of closed connections go that nobody has used since`() async throws {
        let harness = try StoreHarness { $0.transactionsMax = 3 }
        var owner: TransactionOwner? = harness.store.makeTransactionOwner()
        let abandoned = try await begin(harness, owner)
        let continued = try await begin(harness, owner)
        let other = harness.store.makeTransactionOwner()
        let open = try await begin(harness, other)
        await expectEqual(refusal(harness, other), .resourceExhausted)
        harness.clock.advance(milliseconds: 10)
        owner = nil
        _ = owner
        // The transaction continues over another connection.
        harness.clock.advance(milliseconds: 10)
        _ = try harness.get("c/a", .transaction(continued))
        let last = try await begin(harness, other)
        await expectEqual(refusal(harness, other), .resourceExhausted)
        for transaction in [continued, open, last] { _ = try harness.get("c/b", .transaction(transaction)) }
        #expect(throws: RequestError.unknownTransaction) { try harness.get("c/a", .transaction(abandoned)) }
        try await harness.commit([.set("c/b", fields(1))], transaction: continued)
        _ = try await begin(harness, other)
        try harness.finish()
    }

    @Test
    func `All transactions together may hold so many bytes; what ends gives its bytes back`() async throws {
        let harness = try StoreHarness { $0.transactionBytesMax = 64 << 10 }
        let first = try await begin(harness, nil)
        let held = harness.store.statistics.transactionBytes
        expect(held > 0)
        let second = try await begin(harness, nil)
        expectEqual(harness.store.statistics.transactionBytes, 2 * held)
        var reads = 0
        while reads < 10_000 {
            do {
                _ = try harness.get("c/\(reads)", .transaction(first))
                reads += 1
            } catch let error as RequestError {
                expect(error.code == .resourceExhausted && error.message.contains("hold more than 65536 bytes"))
                break
            }
        }
        expect((200..<1_000).contains(reads), "\(reads) reads")
        expect(harness.store.statistics.transactionBytes <= 64 << 10)
        // Neither another transaction nor another read of one that is open has room.
        while await refusal(harness, nil) == nil {}
        #expect(throws: RequestError.self) {
            for number in 0..<100 { _ = try harness.get("c/\(number)", .transaction(second)) }
        }
        harness.store.rollback(first)
        _ = try await begin(harness, nil)
        for number in 0..<100 { _ = try harness.get("c/\(number)", .transaction(second)) }
        harness.clock.advance(milliseconds: 271_000)
        harness.store.noticeTime()
        try await harness.commit([.set("c/b", fields(2))])
        try await harness.commit([.set("c/b", fields(3))])
        expectEqual(harness.store.statistics.transactionsOpen, 0)
        expectEqual(harness.store.statistics.transactionBytes, 0)
        try harness.finish()
    }

    @Test
    func `While there is room, a transaction outlives its connection`() async throws {
        let harness = try StoreHarness()
        var owner: TransactionOwner? = harness.store.makeTransactionOwner()
        let transaction = try await begin(harness, owner)
        owner = nil
        _ = owner
        harness.clock.advance(milliseconds: 50_000)
        _ = try harness.get("c/a", .transaction(transaction))
        try await harness.commit([.set("c/a", fields(1))], transaction: transaction)
        try harness.finish()
    }
}
