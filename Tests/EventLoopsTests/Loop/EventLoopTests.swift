// What a loop keeps, and for how long.

import Testing

@testable import EventLoops

@Suite(.timeLimit(.minutes(20))) struct EventLoopTests {
    /// Work that knows its loop, as the services of a server do.
    private final class Service: LoopWork, TimerTarget, Sendable {
        let loop: EventLoop

        init(on loop: EventLoop) { self.loop = loop }

        func work() { loop.needsWork(self) }
        func timerFired(_ token: UInt64) {}
    }

    @Test func `A loop that has stopped holds none of its work`() {
        weak var observer: Service?
        weak var target: Service?
        weak var worker: Service?
        weak var stopped: EventLoop?
        do {
            let loop = EventLoop()
            let services = (0..<3).map { _ in Service(on: loop) }
            (observer, target, worker, stopped) = (services[0], services[1], services[2], loop)
            loop.start()
            loop.execute {
                let observing = services[0]
                loop.beforeEachWait { observing.loop.spend(0) }
                _ = loop.schedule(afterMilliseconds: 1 << 40, services[1])
                loop.needsWork(services[2])
            }
            loop.stop()
        }
        #expect(observer == nil)
        #expect(target == nil)
        #expect(worker == nil)
        #expect(stopped == nil)
    }
}
