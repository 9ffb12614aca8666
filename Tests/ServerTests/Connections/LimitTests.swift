// Every limit of a server, over real sockets: a clear text, and other clients continue.

import Basics
import ConnectionTestSupport
import Glibc
import TestSupport
import Testing

@testable import Calls
@testable import Connections
@testable import EventLoops
@testable import NativeProtocol
@testable import Server

@Suite(.timeLimit(.minutes(20))) struct LimitTests {
    @Test func `A connection beyond the limit gets a clear refusal and the others continue`() throws {
        let live = try LiveServer { $0.connectionsMax = 1 }
        defer { live.stop() }
        let first = live.connect()
        expectEqual(first.callAndWait(.getDocument, [1])?.outcome, .ok)
        let second = live.connect().callAndWait(.getDocument, [1])
        expectEqual(second?.outcome.code, .unavailable)
        expectEqual(second?.outcome.isUnprocessed, true)
        expectEqual(second?.outcome.message.contains("more than 1 connections"), true)
        expectEqual(first.callAndWait(.getDocument, [2])?.bytes, [2])
    }

    @Test func `A call beyond the limit waits in the client, and is refused when a client does not wait`() throws {
        let live = try LiveServer { $0.streamsPerConnectionMax = 2 }
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(Preface.hearth)
        raw.send(
            .hello, .request(.commit, stream: 1), .request(.commit, stream: 2), .request(.commit, stream: 3),
            TestFrame(.goAway))
        expect(live.record.reaches { $0.pending.count == 2 })
        for call in live.record.state.withLock({ $0.pending }) { call.loop.execute { call.respond { _ in } } }
        let frames = raw.receiveFrames()
        let refusal = frames.first { $0.isKind(.status) }
        expectEqual(refusal?.stream, 3)
        expectEqual(refusal?.code, UInt16(StatusCode.resourceExhausted.rawValue))
        expectEqual(refusal?.text.contains("more than 2 calls"), true)
        expectEqual(frames.filter { $0.isKind(.message) }.map(\.stream).sorted(), [1, 2])
    }

    @Test func `A message above the limit is refused and the connection stays usable`() throws {
        let live = try LiveServer { $0.messageBytesMax = 100_000 }
        defer { live.stop() }
        let connection = live.connect()
        expectEqual(connection.callAndWait(.getDocument, [1])?.outcome, .ok)
        let large = connection.callAndWait(.getDocument, [UInt8](repeating: 0, count: 100_001))
        expectEqual(large?.outcome.code, .invalidArgument)
        let fitting = [UInt8](repeating: 3, count: 100_000)
        expectEqual(connection.callAndWait(.getDocument, fitting)?.bytes, fitting)
    }

    @Test func `A reply above the client's limit ends its call and no other`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        var configuration = ClientConfiguration()
        configuration.messageBytesMax = 50_000
        let connection = live.connect(configuration)
        let reply = connection.callAndWait(.deleteDocument, littleEndianBytes(50_001))
        expectEqual(reply?.outcome.code, .resourceExhausted)
        expectEqual(connection.callAndWait(.deleteDocument, littleEndianBytes(50_000))?.bytes.count, 50_000)
    }

    @Test func `A client that says nothing is dropped`() throws {
        let live = try LiveServer { $0.headerMilliseconds = 50 }
        defer { live.stop() }
        expectEqual(RawClient(port: live.server.port).receiveAll(), [])
        let greeting = RawClient(port: live.server.port)
        greeting.send(Preface.hearth)
        let frames = greeting.receiveFrames()
        expectEqual(frames.last?.isKind(.goAway), true)
        expectEqual(frames.last?.code, UInt16(StatusCode.deadlineExceeded.rawValue))
    }

    @Test func `A frame that does not end is not waited for`() throws {
        let live = try LiveServer { $0.headerMilliseconds = 50 }
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(Preface.hearth)
        raw.send(.hello)
        raw.send(Array(TestFrame.request(.getDocument, stream: 1, [1, 2, 3]).bytes.dropLast()))
        let last = raw.receiveFrames().last
        expectEqual(last?.isKind(.goAway), true)
        expectEqual(last?.text.contains("did not arrive completely"), true)
    }

    @Test func `A message in parts that stalls ends its call, and no other one`() throws {
        let live = try LiveServer { $0.headerMilliseconds = 50 }
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(Preface.hearth)
        raw.send(.hello, .request(.getDocument, .more, stream: 1, [1, 2, 3]))
        var frames: [TestFrame] = []
        while frames.last?.isKind(.status) != true, frames.last?.isKind(.goAway) != true {
            let bytes = raw.receive()
            try #require(!bytes.isEmpty, "the server has closed the connection")
            frames += TestFrame.all(in: bytes)
        }
        expect(frames.last?.stream == 1 && frames.last?.code == UInt16(StatusCode.deadlineExceeded.rawValue))
        // Late parts are ignored, and another call gets its reply.
        raw.send(
            TestFrame(.message, .endStream, stream: 1, [4]), .request(.getDocument, stream: 2, [5]),
            TestFrame(.goAway))
        let rest = raw.receiveFrames()
        expect(rest.map(\.stream) == [2] && rest.first?.payload == [5], "\(rest)")
    }

    @Test func `Frames of another kind do not prolong the time of a message in parts`() throws {
        let live = try LiveServer { $0.headerMilliseconds = 100 }
        defer { live.stop() }
        for parts in [
            [TestFrame.request(.getDocument, .more, stream: 1, [1, 2, 3])], [.request(.getDocument, .more, stream: 1)],
        ] {
            let raw = RawClient(port: live.server.port)
            raw.send(Preface.hearth)
            raw.send([TestFrame.hello] + parts)
            var frames: [TestFrame] = []
            for _ in 0..<500 where !frames.contains(where: { $0.isKind(.status) }) {
                raw.send(TestFrame(.ping, stream: 0, [UInt8](repeating: 1, count: 8)))
                usleep(10_000)
                frames += TestFrame.all(in: raw.receive())
            }
            let last = frames.last { $0.isKind(.status) }
            expectEqual(last?.code, UInt16(StatusCode.deadlineExceeded.rawValue))
        }
    }

    @Test func `Incomplete messages of all connections have one limit, which is given back`() throws {
        let live = try LiveServer { $0.assemblyBytesTotalMax = 100_000 }
        defer { live.stop() }
        for _ in 0..<3 {
            let first = RawClient(port: live.server.port)
            first.send(Preface.hearth)
            first.send(
                .hello, .request(.commit, .more, stream: 1, [UInt8](repeating: 0, count: 60_000)),
                TestFrame(.ping, stream: 0, [UInt8](repeating: 1, count: 8)))
            var received: [UInt8] = []
            try waitUntil("the pong is there") {
                received += first.receive()
                return TestFrame.all(in: received).contains { $0.isKind(.pong) }
            }
            let second = RawClient(port: live.server.port)
            second.send(Preface.hearth)
            second.send(.hello, .request(.commit, .more, stream: 1, [UInt8](repeating: 0, count: 60_000)))
            let last = second.receiveFrames().last
            expectEqual(last?.isKind(.goAway), true)
            expectEqual(last?.code, UInt16(StatusCode.resourceExhausted.rawValue))
            // Leaving without an end gives the bytes back, once the server has noticed.
            first.send(TestFrame(.status, stream: 1))
            expectEqual(first.receiveFrames().last?.isKind(.goAway), true)
        }
    }

    @Test func `A port that is taken is not shared`() throws {
        let live = try LiveServer(loops: 2)
        defer { live.stop() }
        let group = EventLoopGroup(count: 2)
        defer { group.stop() }
        var configuration = ServerConfiguration()
        configuration.port = live.server.port
        #expect(throws: SocketError.self) {
            try SocketServer.start(configuration, rpcs: TestProcedures.table, on: group) { _ in
                LoopServices(calls: EchoService())
            }
        }
    }

    @Test func `An idle connection is closed in good order, one with an open call is not`() throws {
        let live = try LiveServer { $0.idleMilliseconds = 50 }
        defer { live.stop() }
        let waiting = live.connect()
        let promise = Promise<Reply>()
        waiting.unary(.commit, []) { promise.fulfil(Reply(outcome: $0, bytes: [UInt8](copying: $1))) }
        expect(live.record.reaches { $0.pending.count == 1 })
        let closed = Promise<Bool>()
        let idle = live.connect { event in
            if case .closed = event { closed.fulfil(true) }
        }
        expectEqual(idle.callAndWait(.getDocument, [1])?.outcome, .ok)
        expectEqual(closed.wait(), true)
        let call = live.record.state.withLock { $0.pending[0] }
        call.loop.execute { call.respond { $0.append([9]) } }
        expectEqual(promise.wait()?.bytes, [9])
    }

    @Test func `A deadline ends a call on both sides`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let reply = live.connect().callAndWait(.commit, [], RequestOptions(deadlineMilliseconds: 30))
        expectEqual(reply?.outcome.code, .deadlineExceeded)
        expect(live.record.reaches { !$0.cancelled.isEmpty })
        expect(live.record.state.withLock { $0.pending.isEmpty })

        // The server ends the call of a client that does not watch its deadline.
        let raw = RawClient(port: live.server.port)
        raw.send(Preface.hearth)
        raw.send(
            .hello, .request(.commit, [.endStream, .deadline], stream: 1, littleEndianBytes(20)), TestFrame(.goAway))
        let status = raw.receiveFrames().first { $0.isKind(.status) }
        expectEqual(status?.code, UInt16(StatusCode.deadlineExceeded.rawValue))
    }

    @Test func `The deadline of a call whose message comes in parts counts from its first part`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(Preface.hearth)
        raw.send(.hello, .request(.commit, [.more, .deadline], stream: 1, littleEndianBytes(20)))
        var received: [UInt8] = []
        var status: TestFrame?
        while status == nil {
            received += raw.receive()
            status = TestFrame.all(in: received).first { $0.isKind(.status) }
        }
        expectEqual(status?.text, "the deadline of the call has passed")
        expectEqual(live.record.state.withLock { $0.cancelled }, [])
    }

    @Test func `A reader that does not read is paused, then dropped`() throws {
        let live = try LiveServer {
            $0.outputPauseBytes = 100_000
            $0.slowReaderMilliseconds = 50
        }
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.shrinkReceiveBuffer()
        raw.send(Preface.hearth)
        var hello = TestFrame.hello
        hello.payload = [4, 0, 0xFF, 0xFF, 0xFF, 0x7F]
        raw.send(hello, .request(.runQuery, stream: 1, littleEndianBytes(1_000_000, 10_000)))
        expect(live.record.reaches { $0.sourcesCancelled == 1 })
        try waitUntil("the connection is closed") { live.statistics().connectionsOpen == 0 }
        // Only what the pause mark, a turn and the kernel's buffers hold was ever produced, of 10 GB.
        expect(live.record.state.withLock { $0.messagesProduced } < 2_000)
    }

    @Test func `A reply of which the client takes nothing ends with a status`() throws {
        let live = try LiveServer { $0.stalledReplyMilliseconds = 50 }
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(Preface.hearth)
        var hello = TestFrame.hello
        hello.payload = [4, 0] + littleEndianBytes(25_000)
        raw.send(hello, .request(.runQuery, stream: 1, littleEndianBytes(1_000, 10_000)), TestFrame(.goAway))
        let frames = raw.receiveFrames()
        expectEqual(frames.count { $0.isKind(.message) }, 3)
        expectEqual(frames.last { $0.isKind(.status) }?.code, UInt16(StatusCode.deadlineExceeded.rawValue))
        expectEqual(live.record.state.withLock { $0.sourcesCancelled }, 1)
    }

    @Test func `A reader that does not read its replies stops being read`() throws {
        let live = try LiveServer {
            $0.outputPauseBytes = 100_000
            $0.slowReaderMilliseconds = 0
        }
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(Preface.hearth)
        raw.send(.hello)
        // Two hundred replies of a megabyte; far more than may gather, and than the kernel holds.
        let requests = (1...200).flatMap {
            TestFrame.request(.deleteDocument, stream: UInt32($0), littleEndianBytes(1_000_000)).bytes
        }
        raw.send(requests + TestFrame(.goAway).bytes)
        let replies = raw.receiveFrames().filter { $0.isKind(.message) }
        expectEqual(replies.reduce(0) { $0 + $1.payload.count }, 200_000_000)
    }
}
