// Turns at contended keys: order, progress, expiry.

import TestSupport
import Testing

@testable import DocumentStore

@Suite("Lease table", .timeLimit(.minutes(20)))
struct LeaseTableTests {
    /// A table in a class: the test macros take no mutating calls.
    private final class Leases {
        private var table = LeaseTable(idleMilliseconds: 1_000, holdMilliseconds: 3_000, waitMilliseconds: 20_000)

        var isEmpty: Bool { table.isEmpty }
        func holder(of key: UInt64) -> UInt64? { table.holder(of: key) }
        func request(_ ticket: UInt64, age: UInt64, keys: [UInt64], nowMilliseconds: UInt64) -> Bool {
            table.request(ticket, age: age, keys: keys, nowMilliseconds: nowMilliseconds)
        }
        func release(_ ticket: UInt64) -> [UInt64] { table.release(ticket) }
        func grantNext(at keys: [UInt64], nowMilliseconds: UInt64) -> [UInt64] {
            table.grantNext(at: keys, nowMilliseconds: nowMilliseconds)
        }
        func expired(nowMilliseconds: UInt64, lastUsed: (UInt64) -> UInt64?) -> LeaseTable.Expiry {
            table.expired(nowMilliseconds: nowMilliseconds, lastUsed: lastUsed)
        }
    }

    @Test("The first comer holds the key, the next gets it at the release")
    func turns() {
        let leases = Leases()
        #expect(leases.request(1, age: 1, keys: [5], nowMilliseconds: 0))
        #expect(!leases.request(2, age: 2, keys: [5], nowMilliseconds: 0))
        #expect(leases.holder(of: 5) == 1)
        #expect(leases.grantNext(at: leases.release(1), nowMilliseconds: 0) == [2])
        #expect(leases.holder(of: 5) == 2)
        #expect(leases.release(2) == [5])
        #expect(leases.isEmpty)
    }

    @Test("Older ones go first, but do not take a lease from its holder")
    func age() {
        let leases = Leases()
        #expect(leases.request(10, age: 10, keys: [5], nowMilliseconds: 0))
        #expect(!leases.request(9, age: 9, keys: [5], nowMilliseconds: 0))
        #expect(!leases.request(11, age: 3, keys: [5], nowMilliseconds: 0))
        #expect(leases.holder(of: 5) == 10)
        #expect(leases.grantNext(at: leases.release(10), nowMilliseconds: 0) == [11])
        #expect(leases.grantNext(at: leases.release(11), nowMilliseconds: 0) == [9])
    }

    @Test("All keys at once: a request that lacks one holds none, and does not stop older ones")
    func allAtOnce() {
        let leases = Leases()
        #expect(leases.request(1, age: 1, keys: [5], nowMilliseconds: 0))
        #expect(!leases.request(3, age: 3, keys: [5, 6], nowMilliseconds: 0))
        #expect(leases.holder(of: 6) == nil)
        // Older than 3 and in need of 6 alone.
        #expect(leases.request(2, age: 2, keys: [6], nowMilliseconds: 0))
        #expect(leases.grantNext(at: leases.release(1), nowMilliseconds: 0) == [])
        #expect(leases.grantNext(at: leases.release(2), nowMilliseconds: 0) == [3])
    }

    @Test("A key named twice counts once")
    func repeatedKey() {
        let leases = Leases()
        #expect(leases.request(1, age: 1, keys: [5, 5], nowMilliseconds: 0))
        #expect(!leases.request(2, age: 2, keys: [5], nowMilliseconds: 0))
        #expect(leases.grantNext(at: leases.release(1), nowMilliseconds: 0) == [2])
    }

    @Test("A silent holder's lease ends, one that was heard of keeps it; waiting ends too")
    func expiry() {
        let leases = Leases()
        #expect(leases.request(1, age: 1, keys: [5], nowMilliseconds: 100))
        #expect(!leases.request(2, age: 2, keys: [5], nowMilliseconds: 100))
        #expect(leases.expired(nowMilliseconds: 1_099, lastUsed: { _ in nil }) == LeaseTable.Expiry())
        #expect(leases.expired(nowMilliseconds: 1_100, lastUsed: { _ in 200 }) == LeaseTable.Expiry())
        #expect(leases.expired(nowMilliseconds: 1_100, lastUsed: { _ in nil }).ended == [1])
        #expect(leases.expired(nowMilliseconds: 20_100, lastUsed: { _ in 20_000 }).gaveUp == [2])
    }

    @Test(
        "Random requests: everybody is served, no key has two holders, older before younger",
        arguments: [UInt64(21), 22, 23])
    func progress(seed: UInt64) {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let leases = Leases()
        var keys: [UInt64: [UInt64]] = [:]
        var holding: Set<UInt64> = []
        var served = 0
        var next: UInt64 = 1
        func check() {
            var owner: [UInt64: UInt64] = [:]
            for ticket in holding {
                for key in Set(keys[ticket]!) {
                    #expect(owner[key] == nil)
                    owner[key] = ticket
                    #expect(leases.holder(of: key) == ticket)
                }
            }
        }
        for _ in 0..<2_000 {
            if generator.oneIn(2) || holding.isEmpty {
                let wanted = (0..<(1 + generator.below(3))).map { _ in UInt64(generator.below(6)) }
                keys[next] = wanted
                if leases.request(next, age: next, keys: wanted, nowMilliseconds: 0) { holding.insert(next) }
                next += 1
            } else {
                let ticket = holding.sorted()[generator.below(holding.count)]
                holding.remove(ticket)
                served += 1
                for granted in leases.grantNext(at: leases.release(ticket), nowMilliseconds: 0) {
                    holding.insert(granted)
                }
            }
            check()
        }
        // Nobody new comes: all who wait are served.
        while let ticket = holding.min() {
            holding.remove(ticket)
            served += 1
            for granted in leases.grantNext(at: leases.release(ticket), nowMilliseconds: 0) { holding.insert(granted) }
            check()
        }
        #expect(served == Int(next) - 1)
        #expect(leases.isEmpty)
    }
}
