// What a loop keeps, and for how long.

import Basics
import Glibc
import TestSupport
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

    /// Passes what comes on to another channel.
    private final class Relay: ChannelDriver {
        private let target: Channel
        /// Bytes that waited at the target each time that something came.
        private(set) var waiting: [Int] = []

        init(to target: Channel) { self.target = target }

        func received(_ bytes: RawSpan) -> ReceiveProgress {
            waiting.append(target.pendingBytes)
            target.write { $0.append(bytes) }
            return ReceiveProgress(consumed: bytes.byteCount)
        }

        func produce() {}
        func channelClosed(_ reason: CloseReason) {}
    }

    /// A channel of the loop, and the descriptor of its other end.
    private static func makePair(_ loop: EventLoop) throws -> (channel: Channel, peer: Int32) {
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        return (try #require(Channel(adopting: ends[0], loop: loop, limits: ChannelLimits())), ends[1])
    }

    @Test(arguments: [false, true])
    func `Output leaves at the end of each turn, or of the iteration if it is gathered`(isGathered: Bool) throws {
        let loop = EventLoop()
        let target = try Self.makePair(loop)
        target.channel.gathersOutput = isGathered
        let relay = Relay(to: target.channel)
        let sources = try (0..<2).map { _ in try Self.makePair(loop) }
        for source in sources {
            expectEqual(write(source.peer, "abc", 3), 3)
            source.channel.driver = relay
            source.channel.startReading()
        }
        loop.run { relay.waiting.count == 2 }
        expectEqual(relay.waiting, [0, isGathered ? 3 : 0])
        // The next iteration begins with what was gathered, and has nothing to wait for.
        loop.execute {}
        loop.run { target.channel.pendingBytes == 0 }
        var bytes = [UInt8](repeating: 0, count: 7)
        expectEqual(read(target.peer, &bytes, 7), 6)
        for (channel, peer) in sources + [target] {
            channel.close(.finished)
            close(peer)
        }
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
        expectNil(observer)
        expectNil(target)
        expectNil(worker)
        expectNil(stopped)
    }
}
