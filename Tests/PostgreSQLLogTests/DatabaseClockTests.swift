import TestSupport
import Testing

@testable import PostgreSQLLog

@Suite(.timeLimit(.minutes(1)))
struct DatabaseClockTests {
    @Test
    func `The latest time follows the elapsed time, whatever the clock of the database says`() {
        let clock = DatabaseClock(microseconds: 5_000_000, takenAt: 100)
        expectEqual(clock.latestTime(at: 100), 15_000_000)
        expectEqual(clock.latestTime(at: 350), 15_250_000)
        expectEqual(clock.latestTime(at: 99), 15_000_000)
        let early = DatabaseClock(microseconds: UInt64(bitPattern: -1), takenAt: 100)
        expect(early.latestTime(at: 200) > UInt64(Int64.max))
    }
}
