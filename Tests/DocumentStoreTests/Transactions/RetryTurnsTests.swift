// Turns at contended keys: order, progress, expiry.

import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct RetryTurnsTests {
    /// A table in a class: the test macros take no mutating calls.
    private final class Turns {
        private var table = RetryTurns(idleMilliseconds: 1_000, holdMilliseconds: 3_000, waitMilliseconds: 20_000)

        var isEmpty: Bool { table.isEmpty }
        func holder(of key: UInt64) -> UInt64? { table.holder(of: key) }
        func request(_ ticket: UInt64, age: UInt64, keys: [UInt64], nowMilliseconds: UInt64) -> Bool {
            table.request(ticket, age: age, keys: keys, nowMilliseconds: nowMilliseconds)
        }
        func release(_ ticket: UInt64) -> [UInt64] { table.release(ticket) }
        func grantNext(at keys: [UInt64], nowMilliseconds: UInt64) -> [UInt64] {
            table.grantNext(at: keys, nowMilliseconds: nowMilliseconds)
        }
        func expired(nowMilliseconds: UInt64, lastUsed: (UInt64) -> UInt64?) -> RetryTurns.Expiry {
            table.expired(nowMilliseconds: nowMilliseconds, lastUsed: lastUsed)
        }
    }

    @Test
    func `The first comer holds the key, the next gets it at the release`() {
        let turns = Turns()
        expect(turns.request(1, age: 1, keys: [5], nowMilliseconds: 0))
        expect(!turns.request(2, age: 2, keys: [5], nowMilliseconds: 0))
        expectEqual(turns.holder(of: 5), 1)
        expectEqual(turns.grantNext(at: turns.release(1), nowMilliseconds: 0), [2])
        expectEqual(turns.holder(of: 5), 2)
        expectEqual(turns.release(2), [5])
        expect(turns.isEmpty)
    }

    @Test
    func `Older ones go first, but do not end another's turn`() {
        let turns = Turns()
        expect(turns.request(10, age: 10, keys: [5], nowMilliseconds: 0))
        expect(!turns.request(9, age: 9, keys: [5], nowMilliseconds: 0))
        expect(!turns.request(11, age: 3, keys: [5], nowMilliseconds: 0))
        expectEqual(turns.holder(of: 5), 10)
        expectEqual(turns.grantNext(at: turns.release(10), nowMilliseconds: 0), [11])
        expectEqual(turns.grantNext(at: turns.release(11), nowMilliseconds: 0), [9])
    }

    @Test
    func `All keys at once: a request that lacks one holds none, and does not stop older ones`() {
        let turns = Turns()
        expect(turns.request(1, age: 1, keys: [5], nowMilliseconds: 0))
        expect(!turns.request(3, age: 3, keys: [5, 6], nowMilliseconds: 0))
        expectNil(turns.holder(of: 6))
        // Older than 3 and in need of 6 alone.
        expect(turns.request(2, age: 2, keys: [6], nowMilliseconds: 0))
        expectEqual(turns.grantNext(at: turns.release(1), nowMilliseconds: 0), [])
        expectEqual(turns.grantNext(at: turns.release(2), nowMilliseconds: 0), [3])
    }

    @Test
    func `A key named twice counts once`() {
        let turns = Turns()
        expect(turns.request(1, age: 1, keys: [5, 5], nowMilliseconds: 0))
        expect(!turns.request(2, age: 2, keys: [5], nowMilliseconds: 0))
        expectEqual(turns.grantNext(at: turns.release(1), nowMilliseconds: 0), [2])
    }

    @Test
    func `An idle holder's turn ends, a busy one keeps it; waiting ends too`() {
        let turns = Turns()
        expect(turns.request(1, age: 1, keys: [5], nowMilliseconds: 100))
        expect(!turns.request(2, age: 2, keys: [5], nowMilliseconds: 100))
        expectEqual(turns.expired(nowMilliseconds: 1_099, lastUsed: { _ in nil }), RetryTurns.Expiry())
        expectEqual(turns.expired(nowMilliseconds: 1_100, lastUsed: { _ in 200 }), RetryTurns.Expiry())
        expectEqual(turns.expired(nowMilliseconds: 1_100, lastUsed: { _ in nil }).ended, [1])
        expectEqual(turns.expired(nowMilliseconds: 20_100, lastUsed: { _ in 20_000 }).timedOut, [2])
    }

    @Test(arguments: [UInt64(21), 22, 23])
    func `Random requests: everybody is served, no key has two holders, older before younger`(seed: UInt64) {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        let turns = Turns()
        var keys: [UInt64: [UInt64]] = [:]
        var holding: Set<UInt64> = []
        var served = 0
        var next: UInt64 = 1
        func check() {
            var owner: [UInt64: UInt64] = [:]
            for ticket in holding {
                for key in Set(keys[ticket]!) {
                    expectNil(owner[key])
                    owner[key] = ticket
                    expectEqual(turns.holder(of: key), ticket)
                }
            }
        }
        for _ in 0..<2_000 {
            if generator.oneIn(2) || holding.isEmpty {
                let wanted = (0..<(1 + generator.below(3))).map { _ in UInt64(generator.below(6)) }
                keys[next] = wanted
                if turns.request(next, age: next, keys: wanted, nowMilliseconds: 0) { holding.insert(next) }
                next += 1
            } else {
                let ticket = holding.sorted()[generator.below(holding.count)]
                holding.remove(ticket)
                served += 1
                for granted in turns.grantNext(at: turns.release(ticket), nowMilliseconds: 0) {
                    holding.insert(granted)
                }
            }
            check()
        }
        // Nobody new comes: all who wait are served.
        while let ticket = holding.min() {
            holding.remove(ticket)
            served += 1
            for granted in turns.grantNext(at: turns.release(ticket), nowMilliseconds: 0) { holding.insert(granted) }
            check()
        }
        expectEqual(served, Int(next) - 1)
        expect(turns.isEmpty)
    }
}
