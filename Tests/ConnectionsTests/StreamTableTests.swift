// The table of streams against a dictionary.

import Basics
import TestSupport
import Testing

@testable import Connections

@Suite(.timeLimit(.minutes(20))) struct StreamTableTests {
    @Test(arguments: [1, 2, 3, 0x5EED] as [UInt64])
    func `The table holds what a dictionary holds`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var table = StreamTable<Int>()
        var model: [UInt32: Int] = [:]
        var next: UInt32 = 0
        for step in 0..<20_000 {
            if random.next() % 100 < 52 {
                // Mostly the next number, sometimes one far away, so that runs of neighbours and collisions both
                // happen.
                next += random.next() % 10 == 0 ? UInt32(random.next() % 64) + 1 : 1
                table.insert(next, step)
                model[next] = step
            } else if let victim = model.keys.randomElement(using: &random) {
                let removed = model.removeValue(forKey: victim)
                expectEqual(table.remove(victim), removed, "seed \(seed), step \(step)")
            }
            expectEqual(table.count, model.count)
        }
        expectEqual(Set(table.streams), Set(model.keys))
        for (stream, value) in model {
            let found = table.position(of: stream).map { table[position: $0] }
            expectEqual(found, value)
        }
        expectNil(table.remove(next + 1))
        expect(!table.contains(0))
    }
}
