import Dispatch
import EventLoops
import TestSupport
import Testing

@testable import Server

@Suite(.timeLimit(.minutes(20))) struct LoopPulseTests {
    @Test func `A beat is true when all loops have run since the one before`() throws {
        let group = EventLoopGroup(count: 2)
        defer { group.stop() }
        let pulse = LoopPulse(group.loops)
        expect(pulse.beat())
        try waitUntil("both loops have run") { pulse.beat() }
        let hold = DispatchSemaphore(value: 0)
        group.loops[1].execute { hold.wait() }
        // The beat before may be done; that of this call cannot be.
        try waitUntil("a beat begins after the loop hangs") { pulse.beat() }
        for _ in 0..<1_000 { expect(!pulse.beat()) }
        hold.signal()
        try waitUntil("the loop runs again") { pulse.beat() }
    }
}
