// How long a group waits for the clients of the group before it.

import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(5)))
struct GroupPauseTests {
    private static let append: UInt64 = 400_000

    /// An append of some requests, during which others come.
    /// - Returns: what the next group waits for, at the end of the append.
    private func append(
        _ requests: Int, _ waiting: Int, _ pause: inout GroupPause, at start: UInt64
    ) -> (requests: Int, end: UInt64)? {
        pause.noteAppend(at: start, requests: requests)
        return pause.next(waiting: waiting, waited: waiting, at: start + Self.append)
    }

    @Test
    func `A group waits for nearly all clients of the last one, and then a short time for the rest`() throws {
        var pause = GroupPause(percent: 50)
        var next = append(32, 20, &pause, at: 1_000)
        let start = 1_000 + Self.append
        let first = try #require(next)
        // The first half is decided while the other one is coming.
        expect(first.requests == 16 && first.end == start + Self.append / 2)
        next = pause.next(waiting: 40, waited: 40, at: first.end - 1)
        let more = try #require(next)
        expect(more.requests == 8 && more.end == first.end)
        // Nearly all are there, after 100 us: the rest has a quarter of that.
        next = pause.next(waiting: 48, waited: 48, at: start + 100_000)
        let rest = try #require(next)
        expect(rest.requests == 4 && rest.end == start + 125_000)
        next = pause.next(waiting: 51, waited: 51, at: rest.end)
        expectNil(next)
        // They were enough to wait again.
        next = append(51, 0, &pause, at: rest.end)
        expectEqual(next?.requests, 25)
        next = pause.next(waiting: 51, waited: 51, at: rest.end + Self.append + 1)
        expectNil(next)
        next = pause.next(waiting: 0, waited: 0, at: rest.end + Self.append + 2)
        expectNil(next)
    }

    @Test
    func `A pause is longer while clients are coming, and no longer when they have stopped`() throws {
        var pause = GroupPause(percent: 100)
        let first = try #require(append(64, 0, &pause, at: 1_000))
        var end = first.end
        for waiting in [20, 30, 38] {
            let next = pause.next(waiting: waiting, waited: waiting, at: end)
            let wait = try #require(next, "\(waiting) are there")
            expectEqual(wait.requests, 56 - waiting)
            expectEqual(wait.end, end + (end - 1_000 - Self.append) / 4)
            end = wait.end
        }
        let next = pause.next(waiting: 45, waited: 45, at: end)
        expectNil(next)
    }

    @Test
    func `Clients of the last group that are back before the pause begins are not counted twice`() {
        var pause = GroupPause(percent: 100)
        pause.noteAppend(at: 1_000, requests: 60)
        let first = pause.next(waiting: 10, waited: 4, at: 1_000 + Self.append)
        expectEqual(first?.requests, 34 - 10)
        let next = pause.next(waiting: 57, waited: 4, at: 2_000 + Self.append)
        expectEqual(next?.requests, 64 - 57)
        let last = pause.next(waiting: 64, waited: 4, at: 2_001 + Self.append)
        expectNil(last)
    }

    @Test
    func `The time in which clients came back is the least length of later pauses`() throws {
        var pause = GroupPause(percent: 10)
        let first = try #require(append(64, 0, &pause, at: 1_000))
        let start = 1_000 + Self.append
        expectEqual(first.end, start + Self.append / 10)
        // They come in parts, and each part makes the pause longer.
        var (count, now) = (8, first.end)
        while let more = pause.next(waiting: count, waited: count, at: now) {
            count += 8
            now = more.end
        }
        expectEqual(count, 64)
        let second = append(64, 0, &pause, at: 10_000_000)
        expectEqual(second?.end, 10_000_000 + Self.append + now - start)
    }

    @Test
    func `A client alone, and a log without pauses, wait for nobody`() {
        var pause = GroupPause(percent: 50)
        var none = GroupPause(percent: 0)
        let waits = [
            append(1, 0, &pause, at: 1_000), append(0, 1, &pause, at: 1_000_000), append(30, 20, &none, at: 1_000),
            none.next(waiting: 1, waited: 1, at: 2_000),
        ]
        expect(waits.allSatisfy { $0 == nil })
    }

    @Test
    func `Clients that do not come back are waited for longer, and less and less often until they do`() throws {
        var pause = GroupPause(percent: 100)
        var now: UInt64 = 1_000
        var lengths: [UInt64] = []
        /// The number of groups until one waits; its pause ends with some clients.
        func groupsUntilPause(returning clients: Int) throws -> Int {
            for count in 1...1_000 {
                now += 2 * Self.append
                guard let wait = append(10, 0, &pause, at: now) else { continue }
                lengths.append(wait.end - now - Self.append)
                now = wait.end
                // Those that came meanwhile are a reason for a further part, which brings nobody.
                while let more = pause.next(waiting: clients, waited: clients, at: now) { now = more.end }
                return count
            }
            throw CancellationError()
        }
        try expectEqual(groupsUntilPause(returning: 1), 1)
        try expectEqual(groupsUntilPause(returning: 0), 5)
        try expectEqual(groupsUntilPause(returning: 4), 9)
        for _ in 0..<8 { _ = try groupsUntilPause(returning: 0) }
        expectEqual(Array(lengths.prefix(4)), [1, 2, 4, 5].map { min($0 * Self.append, GroupPause.longestMin) })
        expectEqual(lengths.max(), GroupPause.longestMin)
        try expectEqual(groupsUntilPause(returning: 5), 257)
        try expectEqual(groupsUntilPause(returning: 10), 1)
        try expectEqual(groupsUntilPause(returning: 0), 1)
        try expectEqual(groupsUntilPause(returning: 10), 5)
    }

    @Test
    func `A group that is full is appended within a pause, and the slowest append makes no long pause`() throws {
        var pause = GroupPause(percent: 100)
        var next = append(10, 0, &pause, at: 1_000)
        expectEqual(next?.requests, 9)
        pause.noteAppend(at: 2_000_000, requests: 1)
        next = pause.next(waiting: 0, waited: 0, at: 2_100_000)
        expectNil(next)
        pause.noteAppend(at: 3_000_000, requests: 8)
        next = pause.next(waiting: 0, waited: 0, at: 10_000_000_000)
        let wait = try #require(next)
        expectEqual(wait.end, 10_000_000_000 + GroupPause.longestMax)
    }
}
