// Estimates of what a range of keys takes, against counts of its entries.

import EngineTestSupport
import Storage
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct EstimateTests {
    let directory = TemporaryDirectory()

    private func estimate(_ lower: Bytes, _ upper: Bytes, _ store: Store) throws -> KeyRangeEstimate {
        try store.engine.estimate(from: lower.span.bytes, to: upper.span.bytes)
    }

    private func key(_ space: UInt8, _ number: Int) -> Bytes {
        [space, UInt8(number >> 8), UInt8(number & 255)] + Bytes(repeating: 7, count: number % 30)
    }

    /// Three spaces of keys, in several runs.
    private func fill(_ store: Store) throws {
        for version in UInt64(1)...30 {
            let numbers = (0..<300).map { Int(version - 1) + 30 * $0 }
            let changes = (UInt8(1)...3).flatMap { space in
                numbers.map { number in
                    Change(key: key(space, number), value: Bytes(repeating: 1, count: space == 2 ? 60 : 0))
                }
            }
            try store.commit(version, changes)
            if version % 10 == 0 { try store.engine.checkpointNow() }
        }
    }

    @Test(arguments: [false, true])
    func `An estimate is near the number of entries, before and after merges`(isMerged: Bool) throws {
        let store = try Store(directory.path)
        try fill(store)
        if isMerged { try store.engine.sweepHistoryNow() }
        for (low, high) in [(0, 9_000), (100, 4_000), (3_000, 3_500), (8_000, 9_000)] {
            for space in UInt8(1)...3 {
                let found = try estimate(key(space, low), key(space, high), store)
                let difference = abs(found.entries - (high - low))
                expect(difference <= (high - low) / 20 + 150, "\(found) for \(high - low) entries of space \(space)")
            }
        }
        let (small, large) = (try estimate([1], [2], store), try estimate([2], [3], store))
        expect(large.bytes > small.bytes + 9_000 * 60 && small.bytes > 9_000 * 8)
        let all = try estimate([0], [255], store)
        expectEqual(all.entries, store.engine.statistics.runEntries)
        expect(all.bytes <= store.engine.statistics.runBytes && all.bytes > store.engine.statistics.runBytes * 9 / 10)
        try store.engine.close()
    }

    @Test
    func `Ranges without entries have none, and a range in one block is exact`() throws {
        let store = try Store(directory.path)
        try expectEqual(estimate([0], [255], store), KeyRangeEstimate())
        try fill(store)
        try store.engine.sweepHistoryNow()
        try expectEqual(estimate([0], [1], store).entries, 0)
        try expectEqual(estimate([4], [255], store).entries, 0)
        try expectEqual(estimate([2], [2], store).entries, 0)
        try expectEqual(estimate([3], [2], store).entries, 0)
        let (low, high) = (key(1, 10), key(1, 20))
        try expectEqual(estimate(low, high, store).entries, 10)
        try expectEqual(estimate(low, low + [0], store).entries, 1)
        try store.engine.close()
    }
}
