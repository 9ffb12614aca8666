// Calls that reach a service of the same loop without a socket.

import Basics
import ConnectionTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Calls
@testable import Connections
@testable import EventLoops

@Suite(.timeLimit(.minutes(20)))
struct InProcessConnectionTests {
    /// What a call has received.
    private final class Received: StartedCallHandler, Sendable {
        struct State {
            var messages: [[UInt8]] = []
            var outcome: CallOutcome?
            var ends = 0
        }
        private let state = Mutex(State())
        /// Called with each message on the loop's thread.
        private let onMessage: @Sendable () -> Void

        init(onMessage: @escaping @Sendable () -> Void = {}) { self.onMessage = onMessage }

        func received(_ message: RawSpan) {
            state.withLock { $0.messages.append([UInt8](copying: message)) }
            onMessage()
        }

        func finished(_ outcome: CallOutcome) {
            state.withLock {
                $0.outcome = outcome
                $0.ends += 1
            }
        }

        var messages: [[UInt8]] { state.withLock { $0.messages } }
        var ends: Int { state.withLock { $0.ends } }

        func end() throws -> CallOutcome {
            try waitUntil("the call ends") { state.withLock { $0.outcome != nil } }
            return state.withLock { $0.outcome ?? .ok }
        }
    }

    /// A loop with a service and a connection to it.
    private final class Fixture: Sendable {
        let group = EventLoopGroup(count: 1, name: "in-process")
        let record = EchoService.Record()
        let connection: InProcessConnection
        var loop: EventLoop { group.loops[0] }

        init(messageBytesMax: UInt32 = 1 << 20) {
            connection = InProcessConnection(
                to: EchoService(record: record), on: group.loops[0], messageBytesMax: messageBytesMax)
        }

        deinit { group.stop() }

        func start(
            _ rpc: RPC, _ request: [UInt8], isComplete: Bool = true, deadlineMilliseconds: UInt32? = nil,
            _ handler: Received
        ) -> InProcessCall {
            let made = Mutex<InProcessCall?>(nil)
            onLoop { [connection] in
                let call = connection.start(
                    rpc, request, isComplete: isComplete, RequestOptions(deadlineMilliseconds: deadlineMilliseconds),
                    handler: handler)
                made.withLock { $0 = call }
            }
            return made.withLock { $0! }
        }

        /// Runs work on the loop and waits for it.
        func onLoop(_ work: @escaping @Sendable () -> Void) {
            let done = Gate(isOpen: false)
            loop.execute {
                work()
                done.open()
            }
            done.pass()
        }

        func close() { onLoop { [connection] in connection.close() } }
    }

    private func count(_ count: Int, _ size: Int) -> [UInt8] {
        [count, size].flatMap { number in (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) } }
    }

    @Test
    func `A reply, an error, a stream: each ends once, with its status`() throws {
        let fixture = Fixture()
        let echo = Received()
        let failure = Received()
        let stream = Received()
        let empty = Received()
        _ = fixture.start(.getDocument, [9, 8], echo)
        _ = fixture.start(.rollback, Array("why".utf8), failure)
        _ = fixture.start(.runQuery, count(3, 8), stream)
        _ = fixture.start(.runQuery, count(0, 8), empty)
        try expectEqual(echo.end(), .ok)
        expectEqual(echo.messages, [[9, 8]])
        try expectEqual(failure.end(), CallOutcome(.aborted, "why"))
        try expectEqual(stream.end(), .ok)
        expectEqual(stream.messages.map { $0[0] }, [0, 1, 2])
        try expectEqual(empty.end(), .ok)
        fixture.close()
        expectEqual([echo, failure, stream, empty].map(\.ends), [1, 1, 1, 1])
    }

    @Test
    func `The deadline passes, the caller cancels, the connection closes: the service learns why`() throws {
        let fixture = Fixture()
        let late = Received()
        let cancelled = Received()
        let cut = Received()
        let after = Received()
        _ = fixture.start(.commit, [1], deadlineMilliseconds: 20, late)
        try expectEqual(late.end().code, .deadlineExceeded)
        fixture.start(.commit, [1], cancelled).cancel()
        try expectEqual(cancelled.end().code, .cancelled)
        _ = fixture.start(.commit, [1], cut)
        fixture.close()
        try expectEqual(cut.end().code, .unavailable)
        expectEqual(fixture.record.state.withLock { $0.cancelled }, [.deadlineExceeded, .client, .connectionClosed])
        _ = fixture.start(.getDocument, [1], after)
        try expectEqual(after.end(), CallOutcome(.unavailable, "the connection is closed", isUnprocessed: true))
    }

    @Test
    func `Messages above the limit are refused`() throws {
        let fixture = Fixture(messageBytesMax: 100)
        let first = Received()
        let later = Received()
        _ = fixture.start(.getDocument, [UInt8](repeating: 0, count: 101), first)
        try expectEqual(first.end(), CallOutcome(.invalidArgument, "a message exceeds the limit of 100 bytes"))
        let call = fixture.start(.write, [1], isComplete: false, later)
        call.send([UInt8](repeating: 0, count: 101), isLast: false)
        try expectEqual(later.end().code, .invalidArgument)
        fixture.close()
    }

    @Test
    func `A bidirectional call passes messages both ways, also while the service asks to pause`() throws {
        let fixture = Fixture()
        let received = Received()
        fixture.record.state.withLock { $0.holdsWrites = true }
        let call = fixture.start(.write, [0], isComplete: false, received)
        for number in UInt8(1)...3 { call.send([number], isLast: number == 3) }
        try waitUntil("the first two are back") { received.messages == [[0], [1]] }
        // The service took one message after it asked to pause; the others wait.
        fixture.onLoop {}
        expectEqual(received.messages, [[0], [1]])
        fixture.record.state.withLock { $0.holdsWrites = false }
        fixture.onLoop { [connection = fixture.connection] in connection.setPaused(call.number, false) }
        try expectEqual(received.end(), .ok)
        expectEqual(received.messages, [[0], [1], [2], [3]])
        fixture.close()
    }

    @Test
    func `A client that pauses gets nothing more, and everything when it continues`() throws {
        let fixture = Fixture()
        let held = Mutex<InProcessCall?>(nil)
        let received = Received(onMessage: { held.withLock { $0 }?.pauseMessages() })
        let connection = fixture.connection
        let request = count(40, 64 << 10)
        // The call has its first messages before this returns, and asks to pause when the next one comes.
        fixture.onLoop {
            let call = connection.start(
                .runQuery, request, isComplete: true, RequestOptions(), handler: received)
            held.withLock { $0 = call }
        }
        let first = received.messages.count
        for _ in 0..<3 { fixture.onLoop {} }
        expect(received.messages.count <= first + 1 && received.messages.count < 40)
        let call = try #require(held.withLock { $0 })
        held.withLock { $0 = nil }
        call.resumeMessages()
        try expectEqual(received.end(), .ok)
        expectEqual(received.messages.count, 40)
        fixture.close()
    }

    @Test
    func `A call that is started while another takes its message comes after it`() throws {
        let fixture = Fixture()
        let inner = Received()
        let order = Mutex<[Int]>([])
        let connection = fixture.connection
        let outer = Received(onMessage: {
            order.withLock { $0.append(inner.messages.count) }
            _ = connection.start(.getDocument, [2], isComplete: true, RequestOptions(), handler: inner)
            order.withLock { $0.append(inner.messages.count) }
        })
        _ = fixture.start(.getDocument, [1], outer)
        try expectEqual(inner.end(), .ok)
        expectEqual(order.withLock { $0 }, [0, 0], "the service is not called from within itself")
        fixture.close()
    }
}
