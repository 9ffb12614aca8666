import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct SettledTimeTests {
    private static let minute: UInt64 = 60_000
    private static let start: UInt64 = 1_800_000_000_000_000

    /// What the time is each minute of a clock that is ahead by some minutes from `from` to before `to`.
    private static func minutes(_ count: UInt64, ahead: UInt64, from: UInt64, to: UInt64) -> [UInt64] {
        var time = SettledTime()
        return (0..<count).map { number in
            let wall = number + ((from..<to).contains(number) ? ahead : 0)
            let now = time.now(
                wallMicroseconds: start + wall * minute * 1_000, elapsedMilliseconds: 77 + number * minute)
            return (now - start) / (minute * 1_000)
        }
    }

    @Test(arguments: [1, 30, 59, 60, 61, 119] as [UInt64])
    func `A clock that is ahead for less than an hour changes nothing`(from: UInt64) {
        expectEqual(Self.minutes(400, ahead: 500_000, from: from, to: from + 59), Array(0..<400))
    }

    @Test(arguments: [1, 59, 60, 61, 119] as [UInt64])
    func `A clock that was set forward is believed after an hour or two`(from: UInt64) throws {
        let times = Self.minutes(400, ahead: 1_000, from: from, to: 400)
        let first = UInt64(try #require(times.firstIndex { $0 >= 1_000 }))
        expect((from + 60...from + 120).contains(first))
        expect(times[Int(first)...].elementsEqual((first..<400).map { $0 + 1_000 }))
    }

    @Test
    func `A clock that was set back is believed at once`() {
        var time = SettledTime()
        expectEqual(time.now(wallMicroseconds: Self.start, elapsedMilliseconds: 0), Self.start)
        expectEqual(time.now(wallMicroseconds: 5, elapsedMilliseconds: 1), 5)
        expectEqual(time.now(wallMicroseconds: 0, elapsedMilliseconds: 2), 0)
        // What nobody has looked at for two hours is not known any more.
        let later = 2 + 2 * SettledTime.windowMilliseconds
        expectEqual(time.now(wallMicroseconds: Self.start, elapsedMilliseconds: later), Self.start)
    }
}
