// How calls and connections end: cancellation, loss, drains, flow control and pings.

import Basics
import ConnectionTestSupport
import TestSupport
import Testing

@testable import Calls
@testable import Connections
@testable import EventLoops
@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct EndingTests {
    @Test func `A cancelled call ends on both sides and late answers go nowhere`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let connection = live.connect()
        let promise = Promise<Reply>()
        let call = connection.unary(.commit, []) { outcome, _ in promise.fulfil(Reply(outcome: outcome)) }
        expect(live.record.reaches { $0.pending.count == 1 })
        let pending = live.record.state.withLock { $0.pending[0] }
        call.cancel()
        expectEqual(promise.wait()?.outcome.code, .cancelled)
        expect(live.record.reaches { $0.cancelled == [.client] })
        pending.loop.execute { pending.respond { $0.append([1]) } }
        expectEqual(connection.callAndWait(.getDocument, [5])?.bytes, [5])
    }

    @Test func `A cancelled stream stops its source`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let collector = Collector()
        let call = live.connect().stream(.runQuery, littleEndianBytes(1_000_000, 10_000), handler: collector)
        expect(collector.waitForMessages(3))
        call.cancel()
        expectEqual(collector.waitForEnd()?.code, .cancelled)
        expect(live.record.reaches { $0.sourcesCancelled == 1 })
        expect(live.record.state.withLock { $0.messagesProduced } < 1_000_000)
    }

    @Test func `A held stream stops within its window and continues when released`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        var configuration = ClientConfiguration()
        configuration.initialWindowBytes = 50_000
        let connection = live.connect(configuration)
        let collector = Collector()
        let call = connection.stream(.runQuery, littleEndianBytes(1_000, 10_000), handler: collector)
        call.pauseMessages()
        expect(collector.waitForMessages(5))
        // The loop holds the stream before it makes the next call; until then windows may have been opened.
        expectEqual(connection.callAndWait(.getDocument, [1])?.outcome, .ok)
        let held = collector.messages.count
        // From then on no more comes than one window of five messages, however long one waits.
        for _ in 0..<20 { expectEqual(connection.callAndWait(.getDocument, [1])?.outcome, .ok) }
        expect(collector.messages.count <= held + 6)
        expect(collector.messages.count < 1_000)
        call.resumeMessages()
        expectEqual(collector.waitForEnd(), .ok)
        expectEqual(collector.messages.count, 1_000)
    }

    @Test func `When a connection is lost its calls fail, and whether they were carried out is unknown`() throws {
        let live = try LiveServer()
        defer { live.stopAtOnce() }
        let connection = live.connect()
        let promise = Promise<Reply>()
        connection.unary(.commit, []) { outcome, _ in promise.fulfil(Reply(outcome: outcome)) }
        expect(live.record.reaches { $0.pending.count == 1 })
        live.group.stop()
        expectEqual(promise.wait()?.outcome.code, .unavailable)
        expectEqual(promise.wait()?.outcome.isUnprocessed, false)
    }

    @Test func `A server that is not there fails calls as not processed`() throws {
        let live = try LiveServer()
        let port = live.server.port
        live.stop()
        let loops = EventLoopGroup(count: 1)
        defer { loops.stop() }
        let connection = ClientConnection.connect(to: "127.0.0.1", port: port, on: loops.loops[0])
        let reply = connection.callAndWait(.getDocument, [])
        expectEqual(reply?.outcome.code, .unavailable)
        expectEqual(reply?.outcome.isUnprocessed, true)
    }

    @Test func `A host that does not exist fails calls with its name`() {
        let loops = EventLoopGroup(count: 1)
        defer { loops.stop() }
        let connection = ClientConnection.connect(to: "no-such-host.invalid", port: 1, on: loops.loops[0])
        let reply = connection.callAndWait(.getDocument, [])
        expectEqual(reply?.outcome.code, .unavailable)
        expectEqual(reply?.outcome.message.contains("no-such-host.invalid"), true)
    }

    @Test func `A drain lets open calls finish, refuses new ones, and ends`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let goingAway = Promise<Bool>()
        let connection = live.connect { event in
            if case .goingAway = event { goingAway.fulfil(true) }
        }
        let promise = Promise<Reply>()
        connection.unary(.commit, []) { promise.fulfil(Reply(outcome: $0, bytes: [UInt8](copying: $1))) }
        expect(live.record.reaches { $0.pending.count == 1 })
        let drained = Promise<Bool>()
        live.server.drain(graceMilliseconds: 60_000) { drained.fulfil(true) }
        expectEqual(goingAway.wait(), true)
        let refused = connection.callAndWait(.getDocument, [])
        expectEqual(refused?.outcome.code, .unavailable)
        expectEqual(refused?.outcome.isUnprocessed, true)
        let call = live.record.state.withLock { $0.pending[0] }
        call.loop.execute { call.respond { $0.append([7]) } }
        expectEqual(promise.wait(), Reply(outcome: .ok, bytes: [7]))
        expectEqual(drained.wait(), true)
    }

    @Test func `A drain gives up calls that do not finish in time`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let promise = Promise<Reply>()
        live.connect().unary(.commit, []) { outcome, _ in promise.fulfil(Reply(outcome: outcome)) }
        expect(live.record.reaches { $0.pending.count == 1 })
        live.drain(graceMilliseconds: 20)
        expectEqual(promise.wait()?.outcome, CallOutcome(.unavailable, "the server is shutting down"))
        expectEqual(live.record.state.withLock { $0.cancelled }, [.connectionClosed])
    }

    @Test func `A drained client finishes what it began and closes`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let closed = Promise<CloseReason>()
        let connection = live.connect { event in
            if case .closed(let reason, _) = event { closed.fulfil(reason) }
        }
        let promise = Promise<Reply>()
        connection.unary(.getDocument, [3]) { promise.fulfil(Reply(outcome: $0, bytes: [UInt8](copying: $1))) }
        connection.drain()
        expectEqual(promise.wait(), Reply(outcome: .ok, bytes: [3]))
        expectEqual(closed.wait(), .finished)
    }

    @Test func `A PING gets its acknowledgement`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let connection = live.connect()
        expectEqual(connection.callAndWait(.getDocument, [])?.outcome, .ok)
        let promise = Promise<Bool>()
        connection.ping { promise.fulfil($0) }
        expectEqual(promise.wait(), true)
    }

    @Test(arguments: [Acceptance.everyLoop, .handedOver])
    func `All loops share one port and serve`(acceptance: Acceptance) throws {
        let live = try LiveServer(loops: 3) { $0.acceptance = acceptance }
        defer { live.stop() }
        let connections = (0..<12).map { _ in live.connect() }
        for (number, connection) in connections.enumerated() {
            expectEqual(connection.callAndWait(.getDocument, [UInt8(number)])?.bytes, [UInt8(number)])
        }
        expectEqual(live.statistics().connectionsOpen, 12)
        expectEqual(live.statistics().calls, 12)
    }

    @Test func `Hundreds of calls completed from another thread all arrive`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let connection = live.connect()
        let count = 900
        let replies = Promise<Int>()
        let left = Collector()
        for _ in 0..<count {
            connection.unary(.commit, []) { outcome, reply in
                left.received(reply, on: connection)
                if left.messages.count == count { replies.fulfil(count) }
            }
        }
        expect(live.record.reaches { $0.pending.count == count })
        for (number, call) in live.record.state.withLock({ $0.pending }).enumerated() {
            call.loop.execute { call.respond { $0.append(littleEndianBytes(UInt32(number))) } }
        }
        expectEqual(replies.wait(), count)
        expectEqual(Set(left.messages), Set((0..<count).map { littleEndianBytes(UInt32($0)) }))
    }
}

extension Collector {
    func received(_ message: RawSpan, on connection: ClientConnection) {
        let copy = [UInt8](copying: message)
        state.withLock { $0.messages.append(copy) }
        changed.notify()
    }
}
