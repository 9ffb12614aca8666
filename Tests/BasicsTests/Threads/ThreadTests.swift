// Threads and monitors.

import Basics
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ThreadTests {
    @Test
    func `A thread runs its body once, and join waits for it`() throws {
        let runs = Atomic(0)
        try withoutActuallyEscaping({ _ = runs.add(1, ordering: .relaxed) }) { body in
            try SystemThread(name: "a name longer than fifteen bytes", body).join()
        }
        expectEqual(runs.load(ordering: .relaxed), 1)
    }

    @Test
    func `Waiters see what an update made true`() throws {
        let monitor = Monitor(0)
        let thread = try SystemThread(name: "test") {
            for _ in 0..<1_000 { monitor.update { $0 += 1 } }
        }
        expectEqual(monitor.wait { $0 == 1_000 ? $0 : nil }, 1_000)
        thread.join()
    }

    @Test
    func `A wait with a deadline in the past returns nil, or the value that is already there`() {
        let monitor = Monitor(7)
        let now = SystemClock.monotonicNanoseconds()
        expectNil(monitor.wait(untilNanoseconds: now) { (state: inout Int) -> Int? in state == 8 ? state : nil })
        expectEqual(monitor.wait(untilNanoseconds: now) { (state: inout Int) -> Int? in state == 7 ? state : nil }, 7)
    }

    @Test
    func `A thread with pauses works until it is stopped, which ends a pause and waits for work under way`() throws {
        let thread = PacedThread()
        let rounds = Monitor(0)
        let hasEnded = Monitor(false)
        try thread.start(name: "paced", everyMilliseconds: 1) { pause in
            while pause() { rounds.update { $0 += 1 } }
            hasEnded.update { $0 = true }
        }
        rounds.wait { $0 >= 3 ? () : nil }
        thread.stop()
        expect(hasEnded.withLock { $0 })
        thread.stop()
        PacedThread().stop()

        let slow = PacedThread()
        try slow.start(name: "slow", everyMilliseconds: 100_000_000) { pause in expect(!pause()) }
        slow.stop()
    }

    @Test
    func `The monotonic clock never steps back, and the wall clock is in this century`() {
        var last = SystemClock.monotonicNanoseconds()
        for _ in 0..<10_000 {
            let now = SystemClock.monotonicNanoseconds()
            expect(now >= last)
            last = now
        }
        expectEqual(CalendarDate(secondsSinceEpoch: SystemClock.wallNanoseconds() / 1_000_000_000).year / 100, 20)
    }
}
