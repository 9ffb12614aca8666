// The client's rules, without sockets.

import Basics
import ConnectionTestSupport
import TestSupport
import Testing

@testable import NativeProtocol

@Suite(.timeLimit(.minutes(20))) struct ClientSessionTests {
    private static func opened(_ settings: Settings = Settings()) -> ClientSession<String> {
        var session = ClientSession<String>(settings: settings)
        _ = session.receive(TestFrame.hello)
        return session
    }

    @Test func `Calls are numbered from one and found by their number`() {
        var session = Self.opened()
        expectEqual(session.open(isComplete: true, "a"), 1)
        expectEqual(session.open(isComplete: true, "b"), 2)
        expectEqual(session.finish(1), "a")
        expectNil(session.finish(1))
        expectEqual(session.finish(2), "b")
    }

    @Test func `A server that is full may say so before HELLO`() {
        var session = ClientSession<String>(settings: Settings())
        expectEqual(session.receive(TestFrame(.goAway, code: 8)), .goAway(.resourceExhausted, lastStream: 0))
        expect(!session.takesCalls)
    }

    @Test func `The server's limit of streams counts open calls only`() {
        var session = ClientSession<String>(settings: Settings())
        var hello = TestFrame.hello
        hello.payload = [3, 0, 2, 0, 0, 0]
        expectEqual(session.receive(hello), .opened)
        _ = session.open(isComplete: true, "a")
        expect(session.hasRoom)
        _ = session.open(isComplete: true, "b")
        expect(!session.hasRoom)
        _ = session.finish(1)
        expect(session.hasRoom)
    }

    @Test func `What was sent before HELLO counts against the server's real window`() {
        var session = ClientSession<String>(settings: Settings())
        let stream = session.open(isComplete: false, "a")
        if let position = session.streams.position(of: stream) {
            session.streams[position: position].sendWindow.consume(1_000)
        }
        var hello = TestFrame.hello
        hello.payload = [4, 0, 0xE8, 3, 0, 0]
        expectEqual(session.receive(hello), .opened)
        let position = session.streams.position(of: stream)!
        expectEqual(session.streams[position: position].sendWindow, FlowWindow(0))
    }

    @Test func `A reply in parts is joined and bounded`() {
        var session = Self.opened(Settings(messageBytesMax: 10))
        _ = session.open(isComplete: true, "a")
        _ = session.open(isComplete: true, "b")
        expectEqual(session.receive(TestFrame(.message, .more, stream: 1, [1, 2])), .nothing)
        expectEqual(
            session.receive(TestFrame(.message, .endStream, stream: 1, [3])), .message(1, .assembled, isLast: true))
        expectEqual(session.assembled, [1, 2, 3])
        expectEqual(session.receive(TestFrame(.message, .more, stream: 2, [UInt8](repeating: 0, count: 8))), .nothing)
        expectEqual(
            session.receive(TestFrame(.message, .more, stream: 2, [UInt8](repeating: 0, count: 8))),
            .refuse(2, .messageTooLarge(max: 10)))
    }

    @Test func `GOAWAY can only shrink what will be served`() {
        var session = Self.opened()
        for _ in 0..<5 { _ = session.open(isComplete: true, "a") }
        expectEqual(session.receive(TestFrame(.goAway, stream: 3)), .goAway(.ok, lastStream: 3))
        expectEqual(session.receive(TestFrame(.goAway, stream: 5)), .goAway(.ok, lastStream: 3))
        expect(!session.takesCalls)
    }

    @Test func `Late frames are ignored, impossible ones are a breach`() {
        var session = Self.opened()
        _ = session.open(isComplete: true, "a")
        _ = session.finish(1)
        expectEqual(session.receive(TestFrame(.message, stream: 1)), .nothing)
        expectEqual(session.receive(TestFrame(.status, stream: 1)), .nothing)
        expectEqual(session.receive(TestFrame(.status, stream: 2)), .fail(.streamNeverOpened(.status, 2)))
        expectEqual(session.receive(TestFrame(.status, code: 17, stream: 1)), .fail(.unknownStatus(17)))
        for kind in [FrameKind.request, .end, .cancel] {
            expectEqual(session.receive(TestFrame(kind, stream: 1)), .fail(.kindFromWrongSide(kind)))
        }
    }
}
