// How long a group waits for the clients of the group before it.

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
        return pause.next(waiting: waiting, at: start + Self.append)
    }

    @Test
    func `A group waits for the clients of the last one, and no longer than a share of an append`() throws {
        var pause = GroupPause(percent: 50)
        var next = append(30, 20, &pause, at: 1_000)
        let first = try #require(next)
        #expect(first.requests == 30)
        #expect(first.end == 1_000 + Self.append + Self.append / 2)
        next = pause.next(waiting: 40, at: first.end - 1)
        let half = try #require(next)
        #expect(half.requests == 10 && half.end == first.end)
        next = pause.next(waiting: 41, at: first.end)
        #expect(next == nil)
        // They were enough to wait again.
        next = append(41, 0, &pause, at: first.end)
        #expect(next?.requests == 41)
        next = pause.next(waiting: 41, at: first.end + Self.append + 1)
        #expect(next == nil)
        next = pause.next(waiting: 0, at: first.end + Self.append + 2)
        #expect(next == nil)
    }

    @Test
    func `A client alone, and a log without pauses, wait for nobody`() {
        var pause = GroupPause(percent: 50)
        var none = GroupPause(percent: 0)
        let waits = [
            append(1, 0, &pause, at: 1_000), append(0, 1, &pause, at: 1_000_000), append(30, 20, &none, at: 1_000),
            none.next(waiting: 1, at: 2_000),
        ]
        #expect(waits.allSatisfy { $0 == nil })
    }

    @Test
    func `Clients that do not come back are waited for less and less often, and again when they do`() throws {
        var pause = GroupPause(percent: 100)
        var now: UInt64 = 1_000
        /// The number of groups until one waits; its pause ends with some clients.
        func groupsUntilPause(returning clients: Int) throws -> Int {
            for count in 1...1_000 {
                now += 2 * Self.append
                guard let wait = append(10, 0, &pause, at: now) else { continue }
                now = wait.end
                let next = pause.next(waiting: clients, at: now)
                #expect(next == nil)
                return count
            }
            throw CancellationError()
        }
        #expect(try groupsUntilPause(returning: 1) == 1)
        #expect(try groupsUntilPause(returning: 0) == 5)
        #expect(try groupsUntilPause(returning: 4) == 9)
        for _ in 0..<8 { _ = try groupsUntilPause(returning: 0) }
        #expect(try groupsUntilPause(returning: 5) == 257)
        #expect(try groupsUntilPause(returning: 10) == 1)
        #expect(try groupsUntilPause(returning: 0) == 1)
        #expect(try groupsUntilPause(returning: 10) == 5)
    }

    @Test
    func `A group that is full is appended within a pause, and a slow append makes no long pause`() throws {
        var pause = GroupPause(percent: 100)
        var next = append(10, 0, &pause, at: 1_000)
        #expect(next?.requests == 10)
        pause.noteAppend(at: 2_000_000, requests: 1)
        next = pause.next(waiting: 0, at: 2_100_000)
        #expect(next == nil)
        pause.noteAppend(at: 3_000_000, requests: 8)
        next = pause.next(waiting: 0, at: 10_000_000_000)
        let wait = try #require(next)
        #expect(wait.end == 10_000_000_000 + GroupPause.longest)
    }
}
