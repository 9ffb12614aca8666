// What callers use up: counts of what a network has open, and permissions that come back with time.

import Calls
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct NetworkCountsTests {
    private func network(_ text: String) throws -> NetworkAddress { try #require(NetworkAddress(text)).network }

    @Test func `A network has so many, whatever others have`() throws {
        let counts = NetworkCounts(max: 2)
        let (one, other) = (try network("192.0.2.1"), try network("192.0.2.2"))
        expect(counts.enter(one) && counts.enter(one) && !counts.enter(one) && counts.enter(other))
        expect(counts.refusedCount == 1 && counts.ownerCount == 2)
        counts.leave(one)
        expect(counts.enter(one) && !counts.enter(one))
        for _ in 0..<5 { counts.leave(one) }
        counts.leave(other)
        expectEqual(counts.ownerCount, 0)
        expect(counts.enter(one) && counts.enter(one) && !counts.enter(one))
    }

    @Test func `What has no network is not counted, and 0 sets no limit`() throws {
        let (counts, open) = (NetworkCounts(max: 1), NetworkCounts(max: 0))
        let one = try network("192.0.2.1")
        for _ in 0..<10 { expect(counts.enter(nil) && open.enter(one)) }
        expect(counts.ownerCount == 0 && open.ownerCount == 0 && counts.refusedCount == 0)
    }

    @Test func `The addresses of an IPv6 network with 64 bits are one`() throws {
        try expectEqual(network("2001:db8::1"), network("2001:db8::ffff:0:0:1"))
        try expect(network("2001:db8::1") != network("2001:db8:0:1::1"))
        try expect(network("192.0.2.1") != network("192.0.2.2"))
    }
}

@Suite(.timeLimit(.minutes(20))) struct TokenBucketTests {
    /// How many of so many tokens there are.
    private func taken(_ count: Int, of bucket: inout TokenBucket, at now: UInt64) -> Int {
        bucket.fill(now: now)
        var taken = 0
        for _ in 0..<count where bucket.take() { taken += 1 }
        return taken
    }

    @Test func `Tokens are used up and come back, fractions included`() {
        var bucket = TokenBucket(max: 3, perSecond: 2, now: 1_000)
        let moments: [(UInt64, Int, UInt64)] = [(1_000, 3, 500), (1_300, 0, 200), (1_600, 1, 400)]
        for (now, expected, wait) in moments {
            let taken = taken(5, of: &bucket, at: now)
            expect(taken == expected && bucket.waitMilliseconds == wait, "\(now)")
        }
        // Six steps of 300 ms bring 3.6 tokens, not three.
        var sum = 0
        for step: UInt64 in 1...6 { sum += taken(1, of: &bucket, at: 1_600 + step * 300) }
        expect(sum == 3 && bucket.waitMilliseconds == 100)
    }

    @Test func `No more than the maximum comes back, and time that steps back takes nothing`() {
        var bucket = TokenBucket(max: 2, perSecond: 1_000_000, now: 5_000)
        let counts = [(1, 5_000), (2, 4_000), (5, UInt64.max)].map { taken($0.0, of: &bucket, at: $0.1) }
        expectEqual(counts, [1, 1, 2])
        var credit = TokenBucket(max: 4, perSecond: 2, now: 0)
        credit.spend(3)
        expectEqual(credit.waitMilliseconds, 0)
        credit.spend(4)
        // Three are owed, and the next one is to come.
        expect(credit.waitMilliseconds == 2_000 && !credit.take())
        credit.fill(now: 1_500)
        expectEqual(credit.waitMilliseconds, 500)
        credit.fill(now: 2_000)
        expect(credit.take() && !credit.take())
        credit.spend(.max)
        expectEqual(credit.waitMilliseconds, 60_500)
        var huge = TokenBucket(max: .max, perSecond: .max, now: 0)
        let many = taken(10, of: &huge, at: .max)
        var none = TokenBucket(max: 0, perSecond: 0, now: 0)
        let zero = taken(1, of: &none, at: .max)
        expect(many == 10 && zero == 0 && none.waitMilliseconds == .max)
    }
}
