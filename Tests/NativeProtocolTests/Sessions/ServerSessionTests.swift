// The server's rules, without sockets.

import Basics
import ConnectionTestSupport
import TestSupport
import Testing

@testable import Calls
@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct ServerSessionTests {
    @Test func `Nothing is taken before HELLO`() {
        for kind in FrameKind.allCases where kind != .hello {
            var session = ServerSession(limits: .forTests(), rpcs: TestProcedures.table)
            let length = kind == .window ? 4 : kind == .ping || kind == .pong ? 8 : 0
            let stream: UInt32 = [.ping, .pong, .credential].contains(kind) ? 0 : 1
            let frame = TestFrame(kind, stream: stream, [UInt8](repeating: 0, count: length))
            expectEqual(session.receive(frame), .fail(.helloExpected))
        }
    }

    @Test func `A version that is not spoken ends the connection`() {
        var session = ServerSession(limits: .forTests(), rpcs: TestProcedures.table)
        expectEqual(session.receive(TestFrame(.hello, code: 2)), .fail(.unsupportedVersion(2)))
    }

    @Test func `A call answered at once never enters the table`() {
        var session = ServerSession.opened()
        expectEqual(
            session.receive(.request(.getDocument, stream: 1)),
            .begin(1, RequestHead(rpc: .getDocument), .inFrame(from: 0)))
        expect(session.isOpen(1))
        expectEqual(session.finishCurrent(1), true)
        expect(!session.isOpen(1))
        expect(session.streams.isEmpty)
        expectEqual(session.settleCurrent(), false)
    }

    @Test func `A call not answered at once is parked until it is finished`() {
        var session = ServerSession.opened()
        _ = session.receive(.request(.commit, stream: 1))
        expectEqual(session.settleCurrent(), true)
        expect(session.isOpen(1))
        expectEqual(session.openCalls, 1)
        expect(session.finish(1) != nil)
        expectNil(session.finish(1))
        expectEqual(session.openCalls, 0)
    }

    @Test func `Stream numbers only grow`() {
        var session = ServerSession.opened()
        _ = session.receive(.request(.commit, stream: 5))
        _ = session.settleCurrent()
        expectEqual(session.receive(.request(.commit, stream: 5)), .fail(.streamNotIncreasing(5)))
        expectEqual(session.receive(.request(.commit, stream: 4)), .fail(.streamNotIncreasing(4)))
    }

    @Test func `A call beyond the limit is refused and the others continue`() {
        var session = ServerSession.opened(.forTests(streamsMax: 2))
        for stream in 1...2 as ClosedRange<UInt32> {
            _ = session.receive(.request(.commit, stream: stream))
            _ = session.settleCurrent()
        }
        expectEqual(session.receive(.request(.commit, stream: 3)), .refuse(3, .tooManyStreams(max: 2)))
        _ = session.finish(1)
        guard case .begin(4, _, _) = session.receive(.request(.commit, stream: 4)) else {
            Issue.record("a finished call makes room")
            return
        }
    }

    @Test func `A message in parts is joined, and its bytes do not count against the window`() {
        var session = ServerSession.opened(.forTests(initialWindowBytes: 10))
        expectEqual(session.receive(.request(.commit, .more, stream: 1, [1, 2, 3])), .nothing)
        expectEqual(session.receive(TestFrame(.message, .more, stream: 1, [UInt8](repeating: 4, count: 500))), .nothing)
        expectEqual(
            session.receive(TestFrame(.message, .endStream, stream: 1, [5])),
            .begin(1, RequestHead(rpc: .commit), .assembled))
        expectEqual(session.assembled, [1, 2, 3] + [UInt8](repeating: 4, count: 500) + [5])
    }

    @Test func `Parts of different messages may interleave`() {
        var session = ServerSession.opened()
        expectEqual(session.receive(.request(.commit, .more, stream: 1, [1])), .nothing)
        expectEqual(session.receive(.request(.commit, .more, stream: 2, [2])), .nothing)
        expectEqual(
            session.receive(TestFrame(.message, .endStream, stream: 2, [2])),
            .begin(2, RequestHead(rpc: .commit), .assembled))
        expectEqual(session.assembled, [2, 2])
        expectEqual(
            session.receive(TestFrame(.message, .endStream, stream: 1, [1])),
            .begin(1, RequestHead(rpc: .commit), .assembled))
        expectEqual(session.assembled, [1, 1])
    }

    @Test func `A message above the limit is refused, whole or in parts`() {
        var session = ServerSession.opened(.forTests(messageBytesMax: 10))
        let large = [UInt8](repeating: 0, count: 11)
        expectEqual(session.receive(.request(.commit, stream: 1, large)), .refuse(1, .messageTooLarge(max: 10)))
        expectEqual(session.receive(.request(.commit, .more, stream: 2, [UInt8](repeating: 0, count: 6))), .nothing)
        expectEqual(
            session.receive(TestFrame(.message, .more, stream: 2, [UInt8](repeating: 0, count: 5))),
            .refuse(2, .messageTooLarge(max: 10)))
    }

    @Test func `Incomplete messages together have a limit, and give their bytes back`() {
        var session = ServerSession.opened(.forTests(assemblyBytesMax: 10))
        let part = [UInt8](repeating: 0, count: 6)
        expectEqual(session.receive(.request(.commit, .more, stream: 1, part)), .nothing)
        expectEqual(
            session.receive(.request(.commit, .more, stream: 2, part)), .refuse(2, .incompleteMessagesTooLarge(max: 10))
        )
        _ = session.finish(2)
        _ = session.finish(1)
        expectEqual(session.receive(.request(.commit, .more, stream: 3, part)), .nothing)
        expectEqual(
            session.receive(TestFrame(.message, .endStream, stream: 3, [])),
            .begin(3, RequestHead(rpc: .commit), .assembled))
        expectEqual(session.receive(.request(.commit, .more, stream: 4, part)), .nothing)
    }

    @Test func `A call that takes one message must end with it`() {
        var session = ServerSession.opened()
        expectEqual(session.receive(.request(.commit, [], stream: 1)), .refuse(1, .takesOneMessage("Commit")))
        guard case .begin(2, let head, _) = session.receive(.request(.listen, [], stream: 2)) else {
            Issue.record("a bidirectional call stays open")
            return
        }
        expect(!head.isComplete)
    }

    @Test func `Messages of a bidirectional call use up the window and are permitted again when taken`() {
        var session = ServerSession.opened(.forTests(initialWindowBytes: 100))
        _ = session.receive(.request(.write, [], stream: 1))
        _ = session.settleCurrent()
        let message = TestFrame(.message, stream: 1, [UInt8](repeating: 0, count: 40))
        expectEqual(session.receive(message), .message(1, .inFrame(from: 0), isLast: false))
        expectNil(session.creditDue(1))
        expectEqual(session.receive(message), .message(1, .inFrame(from: 0), isLast: false))
        expectEqual(session.creditDue(1), 80)
        expectNil(session.creditDue(1))
        if let position = session.streams.position(of: 1) { session.streams[position: position].isPaused = true }
        for _ in 0..<3 { expectEqual(session.receive(message), .message(1, .inFrame(from: 0), isLast: false)) }
        expectNil(session.creditDue(1))
        expectEqual(session.receive(message), .refuse(1, .noWindow))
    }

    @Test func `What comes after the client's end is a breach`() {
        for frame in [TestFrame(.message, stream: 1), TestFrame(.end, stream: 1)] {
            var session = ServerSession.opened()
            _ = session.receive(.request(.write, [], stream: 1))
            _ = session.settleCurrent()
            expectEqual(session.receive(TestFrame(.end, stream: 1)), .halfClosed(1))
            expectEqual(session.receive(frame), .fail(.messageAfterEnd(1)))
        }
    }

    @Test func `Frames for a finished stream are ignored, those for one never opened are a breach`() {
        for kind in [FrameKind.message, .end, .cancel, .window] {
            var session = ServerSession.opened()
            _ = session.receive(.request(.write, [], stream: 1))
            _ = session.finishCurrent(1)
            let payload = [UInt8](repeating: 0, count: kind == .window ? 4 : 0)
            expectEqual(session.receive(TestFrame(kind, stream: 1, payload)), .nothing)
            expectEqual(session.receive(TestFrame(kind, stream: 2, payload)), .fail(.streamNeverOpened(kind, 2)))
        }
    }

    @Test func `While draining, open calls continue and new ones are not touched`() {
        var session = ServerSession.opened()
        _ = session.receive(.request(.write, [], stream: 3))
        _ = session.settleCurrent()
        expectEqual(session.drain(), 3)
        expectEqual(session.receive(.request(.getDocument, stream: 4)), .nothing)
        expectEqual(session.openCalls, 1)
        expectEqual(
            session.receive(TestFrame(.message, .endStream, stream: 3)), .message(3, .inFrame(from: 0), isLast: true))
        expectEqual(session.drain(), 3)
    }

    @Test func `A window may not overflow`() {
        var session = ServerSession.opened()
        _ = session.receive(.request(.listen, [], stream: 1))
        _ = session.settleCurrent()
        let most = TestFrame(.window, stream: 1, [0xFF, 0xFF, 0xFF, 0x7F])
        expectEqual(session.receive(most), .refuse(1, .windowTooLarge(max: FlowWindow.max)))
    }

    @Test(arguments: [
        (
            TestFrame(.request, FrameFlags(rawValue: 0x10), code: 1, stream: 1),
            ProtocolViolation.unknownFlags(.request, 0x10)
        ),
        (TestFrame(.message, .deadline, stream: 1), .unknownFlags(.message, 4)),
        (TestFrame(.request, code: 1), .streamExpected(.request)),
        (TestFrame(.ping, stream: 1, [0, 0, 0, 0, 0, 0, 0, 0]), .noStreamExpected(.ping)),
        (TestFrame(.ping, stream: 0, [0]), .wrongLength(.ping, 1)),
        (TestFrame(.window, stream: 1, [0]), .wrongLength(.window, 1)),
        (TestFrame(.cancel, stream: 1, [0]), .wrongLength(.cancel, 1)),
        (TestFrame(.request, .deadline, code: 1, stream: 1, [0, 0, 0]), .wrongLength(.request, 3)),
        (TestFrame(.status, stream: 1), .kindFromWrongSide(.status)),
        (.hello, .secondHello),
    ])
    func `A malformed frame ends the connection`(frame: TestFrame, violation: ProtocolViolation) {
        var session = ServerSession.opened()
        expectEqual(session.receive(frame), .fail(violation))
    }

    @Test func `Kinds for extensions are ignored and other unknown kinds are not`() {
        for kind in UInt8.min...UInt8.max where FrameKind(rawValue: kind) == nil {
            var session = ServerSession.opened()
            var frame = TestFrame(.ping)
            frame.kind = kind
            expectEqual(session.receive(frame), kind >= 128 ? .nothing : .fail(.unknownKind(kind)))
        }
    }

    @Test func `An unknown method is refused, also when its message comes in parts`() {
        var session = ServerSession.opened()
        expectEqual(session.receive(TestFrame(.request, .more, code: 999, stream: 1)), .refuse(1, .unknownMethod(999)))
        expectEqual(session.receive(TestFrame(.message, .endStream, stream: 1)), .nothing)
        expect(session.streams.isEmpty)
    }
}
