// When memory is given back, and when a full disk is logged.

import FirestoreService
import TestSupport
import Testing

@testable import Server

@Suite(.timeLimit(.minutes(20))) struct HousekeeperTests {
    private static let megabyte = 1 << 20

    /// What the schedule says in the seconds that follow.
    private func seconds(_ count: Int, anonymous: Int, free: Int, _ schedule: inout TrimSchedule) -> Int {
        let memory = ProcessMemory(anonymous: anonymous * Self.megabyte, heapFree: free * Self.megabyte)
        return (0..<count).count { _ in schedule.isDue(memory) }
    }

    @Test func `Memory is given back once after a burst, when it rests`() {
        var schedule = TrimSchedule()
        expectEqual(seconds(20, anonymous: 12, free: 3, &schedule), 0)
        // It grows, and nothing is free.
        expectEqual(seconds(20, anonymous: 1_400, free: 3, &schedule), 0)
        // All is free: once, and not again while the trim had no effect.
        expectEqual(seconds(30, anonymous: 1_400, free: 1_390, &schedule), 1)
        // The kernel has its pages back, which the allocator counts as free all the same.
        expectEqual(seconds(30, anonymous: 12, free: 1_390, &schedule), 0)
        // Pages that were given again are free again.
        for anonymous in stride(from: 12, to: 400, by: 8) {
            expectEqual(seconds(1, anonymous: anonymous, free: 1_390, &schedule), 0, "it does not rest")
        }
        expectEqual(seconds(30, anonymous: 400, free: 1_390, &schedule), 1)
    }

    @Test func `A burst before the first look is given back`() {
        var schedule = TrimSchedule()
        expectEqual(seconds(30, anonymous: 120, free: 110, &schedule), 1)
    }

    @Test func `What was in use at a trim is given back when it is freed`() {
        var schedule = TrimSchedule()
        expectEqual(seconds(1, anonymous: 12, free: 0, &schedule), 0)
        expectEqual(seconds(20, anonymous: 800, free: 400, &schedule), 1)
        expectEqual(seconds(20, anonymous: 400, free: 400, &schedule), 0)
        expectEqual(seconds(20, anonymous: 400, free: 790, &schedule), 1)
        // The next look after a trim finds it freed.
        schedule = TrimSchedule()
        expectEqual(seconds(1, anonymous: 12, free: 0, &schedule), 0)
        expectEqual(seconds(2, anonymous: 800, free: 400, &schedule), 1)
        expectEqual(seconds(20, anonymous: 800, free: 790, &schedule), 1)
        // Little is not worth it.
        expectEqual(seconds(20, anonymous: 12, free: 1, &schedule), 0)
        expectEqual(seconds(100, anonymous: 19, free: 8, &schedule), 0)
    }

    @Test func `A clock that is set forward is logged once`() {
        var report = ClockReport()
        let (start, second): (UInt64, UInt64) = (1_800_000_000_000_000, 1_000_000)
        var steps: [UInt64] = []
        for elapsed in 0..<20_000 as Range<UInt64> {
            let ahead: UInt64 = elapsed < 50 ? 0 : elapsed < 9_000 ? 59 : 600
            let wall = start + (elapsed + ahead) * second
            if let step = report.step(wallMicroseconds: wall, elapsedMilliseconds: elapsed * 1_000) {
                steps.append(step)
            }
        }
        expectEqual(steps, [541])
    }

    @Test func `A full disk is logged when it is found, once a minute, and when it ends`() {
        var report = ShortageReport()
        var changes: [ShortageReport.Change?] = []
        for isShort in [false] + Array(repeating: true, count: ShortageReport.pauseSeconds + 1) + [false, false] {
            changes.append(report.change(isShort: isShort))
        }
        expectEqual(changes.compactMap { $0 }, [.begins, .lasts, .ends])
        expectEqual(changes[1], .begins)
        expectEqual(changes[ShortageReport.pauseSeconds + 1], .lasts)
        // One that comes and goes is two lines a minute.
        var lines = 0
        for second in 0..<600 {
            if report.change(isShort: second % 2 == 0) != nil { lines += 1 }
        }
        expect(lines <= 20)
    }
}
