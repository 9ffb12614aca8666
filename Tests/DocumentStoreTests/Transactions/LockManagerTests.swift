// Who waits for whom: order, circles, time and ends, over the lock manager alone.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import DocumentStore
@testable import StoreFormat

@Suite(.timeLimit(.minutes(20))) struct LockManagerTests {
    /// The lock manager, with requests that are known by names: `T1 c/a` is a commit of transaction 1 to c/a,
    /// `plain c/a` one without transaction, `read 1` the first read of transaction 1.
    ///
    /// A reference: the test macros take no mutating calls.
    private final class Ground {
        private var locks: LockManager
        private let database: DatabaseName
        private var now: UInt64 = 1_000_000
        /// When transactions were last heard of, and when they began; none for those that have ended.
        var lastUsed: [UInt64: UInt64] = [:]
        var doomed: Set<UInt64> = []
        private(set) var turns: [UInt64] = []
        /// How many requests and transactions the last look was at.
        private(set) var looks = 0

        init(_ change: (inout StoreConfiguration) -> Void = { _ in }) throws {
            database = try DatabaseName(project: "p")
            var configuration = StoreConfiguration(directory: "unused")
            configuration.turnIdleMilliseconds = 1_000
            configuration.turnWaitMilliseconds = 20_000
            configuration.lockWaitMilliseconds = 15_000
            configuration.lockIdleMilliseconds = 10_000
            change(&configuration)
            locks = LockManager(configuration: configuration)
        }

        var count: Int { locks.count }
        var isEmpty: Bool { locks.isEmpty }
        var waitCount: Int { locks.waitCount }

        private func writes(_ paths: [String]) throws -> WriteList {
            var list = WriteList(database: database)
            for path in paths {
                let name = Array("\(database.documentsRoot)/\(path)".utf8)
                try list.delete(name.byteSpan, precondition: nil)
            }
            return list
        }

        private func keys(_ paths: [String]) throws -> [UInt64] {
            let list = try writes(paths)
            var key = ByteBuffer()
            return list.writes.map { write in
                _ = DocumentKey.write(list.path(of: write), database: 1, into: &key)
                return ByteTable.hash(key.bytes)
            }
        }

        private func begin(_ transaction: UInt64) {
            if lastUsed[transaction] == nil { lastUsed[transaction] = now }
        }

        /// A commit; true if it has to wait.
        func commit(_ transaction: UInt64?, _ paths: String..., since: UInt64? = nil) throws -> Bool {
            if let transaction { begin(transaction) }
            let request = CommitRequest(
                writes: try writes(paths), transaction: transaction.map { TransactionIdentifier(number: $0, nonce: 0) })
            return locks.parkIfBlocked(
                .commit(QueuedCommit(request) { _ in }), sinceMilliseconds: since ?? now
            ) { _ in 1 }
        }

        /// A read that locks; true if it has to wait, else it has its locks.
        func read(_ transaction: UInt64, _ paths: String..., age: UInt64? = nil) throws -> Bool {
            begin(transaction)
            let request = LockRequest(
                ticket: transaction, age: age ?? transaction, keys: try keys(paths), mayWait: true
            ) { _ in }
            if locks.parkIfBlocked(.lock(request), sinceMilliseconds: now, database: { _ in 1 }) { return true }
            locks.grant(request)
            return false
        }

        /// The begin of a retry that conflicted on documents; true if its turn is now.
        func retry(_ transaction: UInt64, on paths: String..., age: UInt64? = nil) throws -> Bool {
            begin(transaction)
            let retried = AbortedAttempt(nonce: 0, age: age ?? transaction, conflicts: try keys(paths), request: nil)
            let request = BeginRequest(
                identifier: TransactionIdentifier(number: transaction, nonce: 0), database: database, kind: .optimistic,
                retried: retried
            ) { _ in }
            return locks.enter(request, nowMilliseconds: now)
        }

        func end(_ transaction: UInt64) {
            lastUsed[transaction] = nil
            locks.release(transaction)
        }

        /// A transaction ends without a request.
        func drop(_ transaction: UInt64) {
            lastUsed[transaction] = nil
            locks.release(dropped: [transaction])
        }

        /// The requests released since the last call.
        func left() -> [String] {
            var names: [String] = []
            while let released = locks.nextReleased() {
                let outcome =
                    switch released.outcome {
                    case .again: ""
                    case .unconditional: " at last"
                    case .aborted: " aborted"
                    }
                names.append(name(of: released.request) + outcome)
            }
            return names
        }

        private func name(of request: QueuedRequest) -> String {
            switch request {
            case .commit(let queued):
                let commit = queued.request
                let paths = commit.writes.writes.map { String(repairingUTF8: commit.writes.path(of: $0)) }
                return (commit.transaction.map { "T\($0.number)" } ?? "plain") + " " + paths.joined(separator: ",")
            case .lock(let read): return "read \(read.ticket)"
            case .begin(let begin): return "begin \(begin.identifier.number)"
            default: return "other"
            }
        }

        /// Starts turns; returns the transactions whose turn came.
        func grant() -> [UInt64] {
            turns = []
            while locks.grantNext(nowMilliseconds: now, { turns.append($0.identifier.number) }) {}
            return turns
        }

        /// Advances the clock; returns the transactions that begin without their turn.
        func pass(milliseconds: UInt64, using busy: UInt64...) -> [UInt64] {
            now += milliseconds
            for transaction in busy { lastUsed[transaction] = now }
            turns = []
            looks = locks.endExpired(
                nowMilliseconds: now, lastUsed: { lastUsed[$0] }, began: { lastUsed[$0] == nil ? nil : 1_000_000 },
                isDoomed: { doomed.contains($0) }, start: { turns.append($0.identifier.number) })
            return turns
        }

        func removeAll() -> [String] { locks.removeAll().map(name) }
    }

    // MARK: Waiting

    @Test
    func `Nobody waits where nobody holds anything`() throws {
        let locks = try Ground()
        try expect(!locks.commit(nil, "c/a") && !locks.commit(1, "c/a"))
        expect(locks.isEmpty && locks.count == 0)
    }

    @Test
    func `A commit waits for every reader of its documents, and for no other`() throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a") && !locks.read(2, "c/a", "c/b") && !locks.read(3, "c/z"))
        try expect(locks.commit(nil, "c/a"))
        try expect(!locks.commit(nil, "c/other"))
        locks.end(3)
        locks.end(1)
        expectEqual(locks.left(), [])
        locks.end(2)
        expectEqual(locks.left(), ["plain c/a"])
        expect(locks.isEmpty)
    }

    @Test
    func `A transaction does not wait for its own locks`() throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a"))
        try expect(!locks.commit(1, "c/a"))
    }

    @Test
    func `Commits leave in order of arrival, and a first read waits for those that came before it`() throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a"))
        try expect(locks.commit(nil, "c/a", "c/x"))
        try expect(locks.commit(nil, "c/a"))
        // Without this a stream of readers would block the writers without end.
        try expect(locks.read(2, "c/a"))
        try expect(locks.read(3, "c/x"))
        try expect(!locks.read(4, "c/y"))
        locks.end(1)
        expectEqual(locks.left(), ["plain c/a,c/x", "read 3", "plain c/a", "read 2"])
        expectEqual(locks.count, 0)
    }

    @Test
    func `A transaction that holds something reads on without waiting, and the commits already there wait for it`()
        throws
    {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a") && !locks.read(2, "c/b"))
        try expect(locks.commit(nil, "c/a"))
        try expect(!locks.read(2, "c/a"))
        locks.end(1)
        expectEqual(locks.left(), [])
        locks.end(2)
        expectEqual(locks.left(), ["plain c/a"])
    }

    // MARK: Deadlocks

    @Test(arguments: [true, false])
    func `Of two that read and write one document the younger is aborted`(olderFirst: Bool) throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a") && !locks.read(2, "c/a"))
        let order: [UInt64] = olderFirst ? [1, 2] : [2, 1]
        try expect(locks.commit(order[0], "c/a"))
        try expect(locks.commit(order[1], "c/a"))
        // The older one was held up by the younger alone.
        expectEqual(Set(locks.left()), ["T2 c/a aborted", "T1 c/a"])
        expectEqual(locks.count, 0)
    }

    @Test
    func `Age is that of the first attempt, not the number`() throws {
        let locks = try Ground()
        try expect(!locks.read(9, "c/a", age: 1) && !locks.read(5, "c/a", age: 5))
        try expect(locks.commit(9, "c/a") && locks.commit(5, "c/a"))
        expect(locks.left().contains("T5 c/a aborted"))
    }

    @Test(arguments: [3, 4, 10])
    func `A cycle of many is found when it closes, and only one of them is aborted`(count: UInt64) throws {
        let locks = try Ground()
        for transaction in 1...count { try expect(!locks.read(transaction, "c/\(transaction)")) }
        for transaction in 1..<count { try expect(locks.commit(transaction, "c/\(transaction + 1)")) }
        expectEqual(locks.left(), [])
        try expect(locks.commit(count, "c/1"))
        // The youngest is aborted; the one before it waited for its document and proceeds.
        expectEqual(Set(locks.left()), ["T\(count) c/1 aborted", "T\(count - 1) c/\(count)"])
        for transaction in (1..<count).reversed() { locks.end(transaction) }
        expectEqual(locks.count, 0)
    }

    @Test
    func `A chain without a cycle is left alone`() throws {
        let locks = try Ground()
        for transaction in 1...5 as ClosedRange<UInt64> { try expect(!locks.read(transaction, "c/\(transaction)")) }
        for transaction in 1...4 as ClosedRange<UInt64> {
            try expect(locks.commit(transaction, "c/\(transaction + 1)"))
        }
        expectEqual(locks.left(), [])
        for transaction in (1...5 as ClosedRange<UInt64>).reversed() {
            locks.end(transaction)
            expectEqual(locks.left(), transaction == 1 ? [] : ["T\(transaction - 1) c/\(transaction)"])
        }
        expect(locks.isEmpty)
    }

    @Test
    func `Several cycles closed by one commit are all broken`() throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a") && !locks.read(2, "c/b", "c/c") && !locks.read(3, "c/b", "c/c"))
        try expect(locks.commit(2, "c/a") && locks.commit(3, "c/a"))
        expectEqual(locks.left(), [])
        try expect(locks.commit(1, "c/b"))
        let left = locks.left()
        expect(left.contains("T2 c/a aborted") && left.contains("T3 c/a aborted") && left.contains("T1 c/b"))
        expectEqual(locks.count, 0)
    }

    // MARK: Turns

    @Test
    func `A turn blocks others' commits to its documents; the holder's own proceed`() throws {
        let locks = try Ground()
        try expect(locks.retry(1, on: "c/a"))
        try expect(!locks.commit(1, "c/a"))
        try expect(locks.commit(nil, "c/a") && locks.commit(2, "c/a"))
        try expect(!locks.commit(nil, "c/b"))
        locks.end(1)
        expectEqual(locks.left(), ["plain c/a", "T2 c/a"])
    }

    @Test
    func `Turns are given in the order of age, one at a time`() throws {
        let locks = try Ground()
        try expect(locks.retry(1, on: "c/a"))
        try expect(!locks.retry(5, on: "c/a") && !locks.retry(3, on: "c/a", age: 2) && !locks.retry(4, on: "c/a"))
        expectEqual(locks.grant(), [])
        for (ends, next) in [(1, 3), (3, 4), (4, 5)] as [(UInt64, UInt64)] {
            locks.end(ends)
            expectEqual(locks.grant(), [next])
        }
    }

    @Test
    func `One that ends while it waits for its turn is forgotten`() throws {
        let locks = try Ground()
        try expect(locks.retry(1, on: "c/a") && !locks.retry(2, on: "c/a") && !locks.retry(3, on: "c/a"))
        locks.end(2)
        locks.end(1)
        expectEqual(locks.grant(), [3])
    }

    // MARK: Time

    @Test
    func `A transaction that is idle during its turn loses it, a busy one keeps it`() throws {
        let locks = try Ground()
        try expect(locks.retry(1, on: "c/a") && !locks.retry(2, on: "c/a"))
        _ = locks.pass(milliseconds: 900)
        _ = locks.pass(milliseconds: 900, using: 1)
        expectEqual(locks.grant(), [])
        _ = locks.pass(milliseconds: 1_001, using: 2)
        expectEqual(locks.grant(), [2])
    }

    @Test
    func `Locks of an idle transaction end when another one waits for them, and not before`() throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a"))
        _ = locks.pass(milliseconds: 60_000)
        // A minute later the locks are still there: nobody was held up.
        try expect(locks.commit(nil, "c/a"))
        _ = locks.pass(milliseconds: 1)
        expectEqual(locks.left(), ["plain c/a"])
    }

    @Test
    func `After the longest wait a transaction's commit is aborted, a plain one proceeds`() throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a", "c/b"))
        try expect(locks.commit(2, "c/a") && locks.commit(nil, "c/b"))
        _ = locks.pass(milliseconds: 9_000, using: 1, 2)
        expectEqual(locks.left(), [])
        _ = locks.pass(milliseconds: 6_000, using: 1, 2)
        // The one who has been in the way all the time loses its locks too, so the plain one is simply free.
        expectEqual(locks.left(), ["T2 c/a aborted", "plain c/b"])
        expect(locks.isEmpty)
    }

    @Test
    func `The longest wait counts from the request's coming, also when it is parked again`() throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a"))
        try expect(locks.commit(nil, "c/a", since: 1_000_000 - 14_000))
        _ = locks.pass(milliseconds: 999, using: 1)
        expectEqual(locks.left(), [])
        _ = locks.pass(milliseconds: 1, using: 1)
        expectEqual(locks.left(), ["plain c/a at last"])
    }

    @Test
    func `A transaction that can only be aborted holds nobody up`() throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a") && !locks.read(2, "c/b"))
        try expect(locks.commit(nil, "c/a") && locks.commit(nil, "c/b"))
        locks.doomed = [1]
        _ = locks.pass(milliseconds: 1, using: 1, 2)
        expectEqual(locks.left(), ["plain c/a"])
    }

    @Test
    func `An ended transaction's locks end, and a waiting begin completes at its bound`() throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a"))
        try expect(locks.commit(nil, "c/a"))
        locks.lastUsed[1] = nil
        _ = locks.pass(milliseconds: 1)
        expectEqual(locks.left(), ["plain c/a"])
        try expect(locks.retry(5, on: "c/b") && !locks.retry(6, on: "c/b"))
        var timedOut: [UInt64] = []
        for _ in 0..<41 { timedOut += locks.pass(milliseconds: 500, using: 5, 6) }
        expectEqual(timedOut, [6])
        expectEqual(locks.grant(), [])
    }

    @Test
    func `A dropped transaction holds nothing, and one whose commit waits ends with it`() throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a") && !locks.read(2, "c/b"))
        try expect(locks.commit(2, "c/a") && locks.commit(nil, "c/b"))
        locks.drop(2)
        expectEqual(locks.left(), [])
        locks.drop(1)
        expectEqual(locks.left(), ["T2 c/a"])
        locks.end(2)
        expectEqual(locks.left(), ["plain c/b"])
        expect(locks.isEmpty)
    }

    // MARK: Costs

    @Test
    func `A look for expired holders is at those of blocked documents alone, and counts each of them`() throws {
        let locks = try Ground()
        for reader in 1...3_000 as ClosedRange<UInt64> { try expect(!locks.read(reader, "c/\(reader)")) }
        _ = locks.pass(milliseconds: 1)
        expectEqual(locks.looks, 0)
        for reader in 4_001...4_100 as ClosedRange<UInt64> { try expect(!locks.read(reader, "c/a", "c/b")) }
        try expect(locks.commit(nil, "c/a") && locks.commit(nil, "c/b"))
        _ = locks.pass(milliseconds: 1)
        // Two commits, and two documents with a hundred holders.
        expectEqual(locks.looks, 202)
    }

    @Test
    func `What a request waits for does not grow with the holders, the writers and the readers of a document`() throws {
        let locks = try Ground()
        let count: UInt64 = 3_000
        for reader in 1...count { try expect(!locks.read(reader, "c/a")) }
        for _ in 1...count { try expect(locks.commit(nil, "c/a")) }
        for reader in (count + 1)...(2 * count) { try expect(locks.read(reader, "c/a")) }
        expectEqual(locks.waitCount, Int(2 * count))
        for reader in 1..<count { locks.end(reader) }
        expectEqual(locks.left(), [])
        locks.end(count)
        let left = locks.left()
        expect(left.count == Int(2 * count) && left.first == "plain c/a" && left.last == "read \(2 * count)")
        expect(locks.isEmpty)
    }

    @Test
    func `Many readers of a document who all write it are aborted one by one, and the oldest one stays`() throws {
        let locks = try Ground()
        let count: UInt64 = 3_000
        for reader in 1...count { try expect(!locks.read(reader, "c/a")) }
        for reader in 1...count {
            try expect(locks.commit(reader, "c/a"))
            expect(locks.waitCount <= 1)
        }
        expectEqual(locks.left().last, "T1 c/a")
        expectEqual(locks.count, 0)
    }

    @Test
    func `One commit that closes many cycles has the others of all of them aborted`() throws {
        let locks = try Ground()
        let others: ClosedRange<UInt64> = 2...3_000
        try expect(!locks.read(1, "c/a"))
        for other in others { try expect(!locks.read(other, "c/b")) }
        for other in others { try expect(locks.commit(other, "c/a")) }
        try expect(locks.commit(1, "c/b"))
        let left = locks.left()
        expect(left.count == others.count + 1 && left.last == "T1 c/b")
        expect(left.dropLast().allSatisfy { $0.hasSuffix("aborted") })
    }

    // MARK: Bounds and ending

    @Test
    func `Beyond the bound nobody is parked`() throws {
        let locks = try Ground { $0.parkedCommitsMax = 2 }
        try expect(!locks.read(1, "c/a"))
        try expect(locks.commit(nil, "c/a") && locks.commit(nil, "c/a") && !locks.commit(nil, "c/a"))
        expectEqual(locks.count, 2)
    }

    @Test
    func `At the end everybody who waits comes out`() throws {
        let locks = try Ground()
        try expect(!locks.read(1, "c/a") && locks.commit(nil, "c/a") && locks.read(2, "c/a"))
        try expect(locks.retry(3, on: "c/b") && !locks.retry(4, on: "c/b"))
        expectEqual(locks.removeAll(), ["plain c/a", "read 2", "begin 4"])
        expectEqual(locks.count, 0)
    }
}
