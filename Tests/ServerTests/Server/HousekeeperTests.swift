// When memory is given back, and when a full disk is logged.

import FirestoreService
import Testing

@testable import Server

@Suite(.timeLimit(.minutes(20))) struct HousekeeperTests {
    /// What the schedule says in the seconds that follow.
    private func seconds(_ count: Int, opened: UInt64, open: UInt64, _ schedule: inout TrimSchedule) -> [Bool] {
        var answers: [Bool] = []
        for _ in 0..<count { answers.append(schedule.isDue(opened: opened, open: open)) }
        return answers
    }

    @Test func `Memory is given back once many connections have gone and their number rests`() {
        var schedule = TrimSchedule()
        #expect(seconds(20, opened: 2_000, open: 2_000, &schedule) == Array(repeating: false, count: 20))
        #expect(seconds(3, opened: 2_000, open: 900, &schedule) == [false, true, false])
        // Not again before the pause is over.
        let pause = TrimSchedule.pauseSeconds - 2
        #expect(seconds(pause + 1, opened: 2_000, open: 0, &schedule) == Array(repeating: false, count: pause) + [true])
        // And not for a few.
        #expect(seconds(100, opened: 2_063, open: 0, &schedule) == Array(repeating: false, count: 100))
        #expect(seconds(1, opened: 2_064, open: 0, &schedule) == [true])
    }

    @Test func `A full disk is logged when it is found, once a minute, and when it ends`() {
        var report = ShortageReport()
        var changes: [ShortageReport.Change?] = []
        for isShort in [false] + Array(repeating: true, count: ShortageReport.pauseSeconds + 1) + [false, false] {
            changes.append(report.change(isShort: isShort))
        }
        #expect(changes.compactMap { $0 } == [.begins, .lasts, .ends])
        #expect(changes[1] == .begins)
        #expect(changes[ShortageReport.pauseSeconds + 1] == .lasts)
        // One that comes and goes is two lines a minute.
        var lines = 0
        for second in 0..<600 {
            if report.change(isShort: second % 2 == 0) != nil { lines += 1 }
        }
        #expect(lines <= 20)
    }
}
