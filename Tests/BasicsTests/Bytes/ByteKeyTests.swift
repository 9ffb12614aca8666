// Keys of bytes in sets and dictionaries.

import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ByteKeyTests {
    @Test
    func `A set of keys has what a set of arrays has`() {
        var generator = SeededGenerator(seed: 7)
        let values = (0..<2_000).map { _ in (0..<generator.below(12)).map { _ in UInt8(generator.below(3)) } }
        let keys = Set(values[..<1_000].map { ByteKey($0) })
        let model = Set(values[..<1_000])
        expectEqual(keys.count, model.count)
        expect(values.allSatisfy { keys.contains(ByteKey(copying: $0.byteSpan)) == model.contains($0) })
    }

    @Test
    func `Keys that follow each other are separated`() {
        let keys: [[ByteKey]] = [
            [ByteKey([1, 2]), ByteKey([3])], [ByteKey([1]), ByteKey([2, 3])], [ByteKey([]), ByteKey([1, 2, 3])],
        ]
        expectEqual(Set(keys.map(\.hashValue)).count, keys.count)
    }
}
