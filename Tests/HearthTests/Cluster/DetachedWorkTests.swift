// Work that may hang, and whose owner does not wait for it.

import Basics
import Storage
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(20)))
struct DetachedWorkTests {
    @Test
    func `Work that ends hands over its outcome, and its error`() throws {
        let work = try DetachedWork("work") { pulse in pulse.beat() ? 7 : 0 }
        try waitUntil("the work has ended") { try work.wait(milliseconds: 10)?.get() == 7 }
        let failing = try DetachedWork<Int>("work") { _ in throw StorageError(.full, "no space") }
        try waitUntil("the work has failed") {
            if case .failure(let error)? = failing.wait(milliseconds: 10) {
                (error as? StorageError)?.code == .full
            } else {
                false
            }
        }
    }

    @Test
    func `Work that is given up learns it with its next piece, however late that comes`() throws {
        let isFree = Monitor(false)
        let hasBegun = Monitor(false)
        let work = try DetachedWork("work") { pulse in
            let first = pulse.beat()
            hasBegun.update { $0 = true }
            _ = isFree.wait { $0 ? true : nil }
            return (first, pulse.beat())
        }
        try waitUntil("the work has begun") { hasBegun.withLock { $0 } }
        try expectNil((work.wait(milliseconds: 10)?.get()))
        work.pulse.giveUp()
        try expectNil((work.wait(milliseconds: 10)?.get()))
        isFree.update { $0 = true }
        var outcome: (Bool, Bool)?
        try waitUntil("the work has ended") {
            outcome = try work.wait(milliseconds: 10)?.get()
            return outcome != nil
        }
        expect(outcome?.0 == true && outcome?.1 == false)
        expect(work.pulse.silenceMilliseconds < 1_000_000)
    }

    @Test
    func `A piece ends the silence`() throws {
        let pulse = WorkPulse()
        try waitUntil("time has passed") { pulse.silenceMilliseconds >= 3 }
        let before = SystemClock.monotonicMilliseconds()
        expect(pulse.beat())
        expect(pulse.silenceMilliseconds <= SystemClock.monotonicMilliseconds() - before)
    }
}
