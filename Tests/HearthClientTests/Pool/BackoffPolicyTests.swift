// Waits between tries.

import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct BackoffPolicyTests {
    private let policy = BackoffPolicy(initial: .seconds(1), multiplier: 1.5, maximum: .seconds(60), jitter: 0.5)

    @Test(arguments: [
        (0, 1.0), (1, 1.5), (2, 2.25), (3, 3.375), (10, 57.665), (11, 60), (1_000_000, 60), (-5, 1),
    ])
    func `Waits grow by the factor up to the maximum`(attempt: Int, seconds: Double) {
        let delay = policy.delayNanoseconds(attempt: attempt, unit: 0.5)
        expect(abs(Double(delay) / 1e9 - seconds) < 0.001)
    }

    @Test
    func `Jitter spreads a wait evenly to both sides`() {
        expectEqual(policy.delayNanoseconds(attempt: 0, unit: 0), 500_000_000)
        expectEqual(policy.delayNanoseconds(attempt: 0, unit: 0.25), 750_000_000)
        expectEqual(policy.delayNanoseconds(attempt: 0, unit: 1), 1_500_000_000)
    }

    @Test
    func `The generator stays within 0 and 1, repeats for a seed and differs between seeds`() {
        var first = JitterGenerator(seed: 1)
        var again = JitterGenerator(seed: 1)
        var other = JitterGenerator(seed: 2)
        var differs = false
        for _ in 0..<1000 {
            let unit = first.nextUnit()
            expect((0..<1).contains(unit))
            expectEqual(unit, again.nextUnit())
            if unit != other.nextUnit() { differs = true }
        }
        expect(differs)
    }

    @Test(arguments: [
        (Duration.zero, UInt64(0)), (.milliseconds(2), 2_000_000), (.seconds(-1), 0),
        (.seconds(Int64.max), .max), (.nanoseconds(7), 7),
    ])
    func `Durations convert to nanoseconds and saturate`(duration: Duration, expected: UInt64) {
        expectEqual(duration.nanoseconds, expected)
    }
}
