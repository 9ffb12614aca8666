// The byte table behaves as a dictionary of byte strings.

import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ByteTableTests {
    @Test(arguments: [UInt64(11), 12])
    func `Agrees with a dictionary through growth and clearing`(seed: UInt64) {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        var table = ByteTable(slotCount: 4)
        for round in 0..<5 {
            var model: [[UInt8]: Int] = [:]
            for step in 0..<3_000 {
                let key = (0..<generator.below(20)).map { _ in UInt8(generator.below(4)) }
                if generator.oneIn(3) {
                    expectEqual(table.value(ofKey: key), model[key])
                } else {
                    table.set(key.byteSpan, to: step + round)
                    model[key] = step + round
                }
            }
            expectEqual(table.count, model.count)
            var key = ByteBuffer()
            for position in 0..<table.count {
                key.reset()
                table.appendKey(at: position, to: &key)
                expectEqual(model[key.copyBytes()], table.value(at: position))
            }
            table.removeAll()
            expectEqual(table.count, 0)
            expectNil(table.value(ofKey: [1]))
        }
    }
}

extension ByteTable {
    // The test macros cannot look inside expressions with spans.
    fileprivate func value(ofKey key: [UInt8]) -> Int? { value(of: key.byteSpan) }
}
