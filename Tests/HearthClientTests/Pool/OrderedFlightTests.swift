// The ordered calls in flight, compared with a list.

import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct OrderedFlightTests {
    @Test(arguments: 0..<20)
    func `The predecessor is the greatest lower number in flight, in whatever order calls begin and end`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var flight = OrderedFlight<UInt64>()
        // In ascending order.
        var expected: [UInt64] = []
        var next: UInt64 = 1
        var returning: [UInt64] = []
        for _ in 0..<4000 {
            switch random.next() % 8 {
            case 0, 1, 2, 3:
                expected.append(next)
                flight.begin(next, next)
                next += 1
            case 4:
                guard let number = returning.popLast() else { continue }
                expected.insert(number, at: expected.firstIndex { $0 > number } ?? expected.count)
                flight.begin(number, number)
            default:
                // Mostly the oldest ones, as replies come.
                guard !expected.isEmpty else { continue }
                let index = random.next() % 4 == 0 ? Int(random.next() % UInt64(expected.count)) : 0
                let number = expected.remove(at: index)
                flight.end(number, .applied)
                flight.end(number, .applied)
                if random.next() % 3 == 0 { returning.append(number) }
            }
            expectEqual(flight.count, expected.count, "seed \(seed)")
            for number in [next, next / 2, 1] {
                expectEqual(flight.predecessor(of: number), expected.last { $0 < number }, "seed \(seed)")
            }
        }
    }
}
