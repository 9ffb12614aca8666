// The ordered calls in flight, compared with a list.

import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct OrderedFlightTests {
    @Test(arguments: 0..<20)
    func `The predecessor is the greatest lower number in flight, in whatever order calls begin and end`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var flight = OrderedFlight<UInt64>()
        var expected: Set<UInt64> = []
        var next: UInt64 = 1
        var returning: [UInt64] = []
        for _ in 0..<4000 {
            switch random.next() % 8 {
            case 0, 1, 2, 3:
                expected.insert(next)
                flight.begin(next, next)
                next += 1
            case 4:
                guard let number = returning.popLast() else { continue }
                expected.insert(number)
                flight.begin(number, number)
            default:
                // Mostly the oldest ones, as replies come.
                let sorted = expected.sorted()
                guard !sorted.isEmpty else { continue }
                let index = random.next() % 4 == 0 ? Int(random.next() % UInt64(sorted.count)) : 0
                expected.remove(sorted[index])
                flight.end(sorted[index], .applied)
                flight.end(sorted[index], .applied)
                if random.next() % 3 == 0 { returning.append(sorted[index]) }
            }
            #expect(flight.count == expected.count, "seed \(seed)")
            for number in [next, next / 2, 1] {
                #expect(flight.predecessor(of: number) == expected.filter { $0 < number }.max(), "seed \(seed)")
            }
        }
    }
}
