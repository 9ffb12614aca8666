// A service that sends on its own initiative: what a live listener does.

import Basics
import ConnectionTestSupport
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Calls
@testable import Connections
@testable import EventLoops
@testable import NativeProtocol
@testable import Server

/// Messages from any thread to the one stream of a test.
private final class Feed: Sendable {
    struct State {
        var messages: [[UInt8]] = []
        var isEnded = false
        var signal: LoopSignal?
        var call: Call?
        var timesAsked = 0
        var received: [[UInt8]] = []
        var isHalfClosed = false
        var isCancelled = false
    }
    let state = Mutex(State())
    let changed = Signal()

    func push(_ message: [UInt8]) {
        let signal = state.withLock { state in
            state.messages.append(message)
            return state.signal
        }
        signal?.raise()
    }

    func end() {
        let signal = state.withLock { state in
            state.isEnded = true
            return state.signal
        }
        signal?.raise()
    }

    func change(_ body: (inout sending State) -> Void) {
        state.withLock { body(&$0) }
        changed.notify()
    }

    func reaches(_ condition: (State) -> Bool) -> Bool { changed.wait { state.withLock { condition($0) } } }

    /// Runs `body` on the call's loop and returns what it returns.
    func onLoop<Result: Sendable>(_ body: @escaping @Sendable (Call) -> Result) -> Result? {
        guard let call = state.withLock({ $0.call }) else { return nil }
        let promise = Promise<Result>()
        call.loop.execute { promise.fulfil(body(call)) }
        return promise.wait()
    }
}

private final class PushStream: CallStream {
    private let feed: Feed
    init(_ feed: Feed) { self.feed = feed }

    func received(_ message: RawSpan) {
        let copy = [UInt8](copying: message)
        feed.change { $0.received.append(copy) }
    }

    func halfClosed() { feed.change { $0.isHalfClosed = true } }

    func next(into output: inout ByteBuffer) -> SourceStep {
        let (message, isEnded) = feed.state.withLock { state in
            state.timesAsked += 1
            return (state.messages.isEmpty ? nil : state.messages.removeFirst(), state.isEnded)
        }
        feed.changed.notify()
        guard let message else { return isEnded ? .finished : .waiting }
        output.append(message)
        return .message
    }

    func cancelled() { feed.change { $0.isCancelled = true } }
}

private final class PushService: ServiceHandler {
    private let feed: Feed
    init(_ feed: Feed) { self.feed = feed }

    func begin(_ call: Call, payload: RawSpan) {
        let signal = call.makeSignal()
        call.open(PushStream(feed))
        feed.change {
            $0.call = call
            $0.signal = signal
        }
    }
}

@Suite(.timeLimit(.minutes(20))) struct PushTests {
    /// A server with one stream open on it.
    private final class Fixture {
        let feed = Feed()
        let group = EventLoopGroup(count: 1, name: "test-push")
        let clients = EventLoopGroup(count: 1, name: "test-push-client")
        let server: SocketServer

        init() throws {
            server = try SocketServer.start(ServerConfiguration(), rpcs: TestProcedures.table, on: group) { [feed] _ in
                LoopServices(calls: PushService(feed))
            }
        }

        deinit {
            clients.stop()
            group.stop()
            feed.change {
                $0.call = nil
                $0.signal = nil
            }
        }

        func connect(_ configuration: ClientConfiguration = ClientConfiguration()) -> ClientConnection {
            .connect(to: "127.0.0.1", port: server.port, on: clients.loops[0], configuration)
        }

        /// Opens the stream over native frames.
        func open(_ collector: Collector, _ configuration: ClientConfiguration = ClientConfiguration()) -> ClientCall {
            let call = connect(configuration).stream(.listen, [1], isComplete: false, handler: collector)
            expect(feed.reaches { $0.call != nil && $0.timesAsked > 0 })
            return call
        }
    }

    private static let messages = (0..<500).map { littleEndianBytes(UInt32($0)) }

    /// Pushes from several threads' worth of wake-ups, one after the other.
    private func pushAll(_ feed: Feed) {
        Thread.detachNewThread {
            for message in Self.messages { feed.push(message) }
            feed.end()
        }
    }

    @Test func `Messages pushed by another thread arrive in order over native frames`() throws {
        let fixture = try Fixture()
        let collector = Collector()
        _ = fixture.open(collector)
        pushAll(fixture.feed)
        expectEqual(collector.waitForEnd()?.code, .ok)
        expectEqual(collector.messages, Self.messages)
    }

    @Test func `Messages pushed by another thread arrive in order over gRPC`() throws {
        let fixture = try Fixture()
        let client = HTTP2Client(port: fixture.server.port)
        let stream = client.request(.listen, [1], endStream: false)
        expect(fixture.feed.reaches { $0.call != nil })
        pushAll(fixture.feed)
        let answer = client.answer(stream)
        expectEqual(answer.status, 0)
        expectEqual(answer.messages, Self.messages)
    }

    @Test func `Signals raised before the loop acts on one are one question`() throws {
        let fixture = try Fixture()
        let feed = fixture.feed
        _ = fixture.open(Collector())
        let signal = try #require(feed.state.withLock { $0.signal })
        let before = try #require(
            feed.onLoop { _ in
                for _ in 0..<1_000 { signal.raise() }
                return feed.state.withLock { $0.timesAsked }
            })
        // After the loop's next two rounds, the first of which acts on the signals.
        _ = feed.onLoop { _ in }
        let after = try #require(feed.onLoop { _ in feed.state.withLock { $0.timesAsked } })
        expectEqual(after, before + 1)
    }

    @Test func `A client that takes nothing stops the source, and taking starts it`() throws {
        let fixture = try Fixture()
        let feed = fixture.feed
        var configuration = ClientConfiguration()
        configuration.initialWindowBytes = 65_536
        let collector = Collector()
        let call = fixture.open(collector, configuration)
        expectEqual(feed.onLoop { $0.hasRoom }, true)
        call.pauseMessages()
        // The client's loop has come past the hold when it has had an answer to a ping.
        let pinged = Promise<Bool>()
        call.connection.ping { pinged.fulfil($0) }
        expectEqual(pinged.wait(), true)
        let large = [UInt8](repeating: 5, count: 10_000)
        for _ in 0..<40 { feed.push(large) }
        expect(collector.waitForMessages(7))
        // The window, and the message that overdrew it.
        expectEqual(feed.onLoop { $0.hasRoom }, false)
        expectEqual(feed.state.withLock { $0.messages.count }, 33)
        call.resumeMessages()
        expect(collector.waitForMessages(40))
        expectEqual(feed.onLoop { $0.hasRoom }, true)
    }

    @Test func `The stream gets the client's messages and its end, and may answer after it`() throws {
        let fixture = try Fixture()
        let collector = Collector()
        let call = fixture.open(collector)
        call.send([2])
        call.send([3])
        call.finishSending()
        expect(fixture.feed.reaches { $0.isHalfClosed })
        expectEqual(fixture.feed.state.withLock { $0.received }, [[2], [3]])
        fixture.feed.push([4])
        fixture.feed.end()
        expectEqual(collector.waitForEnd()?.code, .ok)
        expectEqual(collector.messages, [[4]])
        expectEqual(fixture.feed.state.withLock { $0.isCancelled }, false)
    }

    @Test func `A stream ends when its client cancels or disappears, and signals are harmless then`() throws {
        for ending in 0..<2 {
            let fixture = try Fixture()
            let call = fixture.open(Collector())
            ending == 0 ? call.cancel() : call.connection.close()
            expect(fixture.feed.reaches { $0.isCancelled })
            fixture.feed.push([1])
            expectEqual(fixture.feed.onLoop { $0.isOpen }, false)
            expectEqual(fixture.feed.onLoop { $0.hasRoom }, false)
        }
    }
}
