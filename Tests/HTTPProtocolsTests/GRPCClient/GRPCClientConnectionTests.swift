// The gRPC client against this project's own server: calls of every shape, windows, ends.

import Basics
import Calls
import ConnectionTestSupport
import Connections
import EventLoops
import Synchronization
import TestSupport
import Testing

@testable import HTTPProtocols

@Suite(.timeLimit(.minutes(5)))
struct GRPCClientConnectionTests {
    /// Collects what comes back on a call.
    private final class Answer: StartedCallHandler, Sendable {
        private let state = Mutex((messages: [[UInt8]](), outcome: CallOutcome?.none))
        private let changed = Signal()

        func received(_ message: RawSpan) {
            let copy = [UInt8](copying: message)
            state.withLock { $0.messages.append(copy) }
            changed.notify()
        }

        func finished(_ outcome: CallOutcome) {
            state.withLock { $0.outcome = outcome }
            changed.notify()
        }

        var messages: [[UInt8]] { state.withLock { $0.messages } }

        func end() -> CallOutcome? {
            _ = changed.wait { state.withLock { $0.outcome != nil } }
            return state.withLock { $0.outcome }
        }

        func has(_ count: Int) -> Bool { changed.wait { state.withLock { $0.messages.count >= count } } }
    }

    private static func connect(
        _ server: LiveServer, port: UInt16? = nil, _ configure: (inout GRPCClientConfiguration) -> Void = { _ in },
        onEvent: @escaping @Sendable (GRPCClientEvent) -> Void = { _ in }
    ) -> GRPCClientConnection {
        var configuration = GRPCClientConfiguration()
        configure(&configuration)
        return GRPCClientConnection.connect(
            to: "127.0.0.1", port: port ?? server.server.port, on: server.clientLoop, configuration, onEvent: onEvent)
    }

    private static func call(
        _ connection: GRPCClientConnection, _ rpc: RPC, _ message: [UInt8], deadline: UInt32? = nil
    ) -> Answer {
        let answer = Answer()
        _ = connection.start(
            path(rpc), message, isComplete: true, deadlineMilliseconds: deadline, handler: answer)
        return answer
    }

    private final class Nobody: GRPCClientSessionDelegate {
        func opened() {}
        func goingAway(_ text: String) {}
        func ended(_ call: GRPCClientCall, _ outcome: CallOutcome) {}
    }

    @Test
    func `Unary calls get their replies, small and larger than all windows`() throws {
        let server = try LiveServer()
        let connection = Self.connect(server) { configuration in
            configuration.streamWindowBytes = 70_000
            configuration.connectionWindowBytes = 70_000
        }
        let large = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for message in [[1, 2, 3], [], large, [4]] {
            let answer = Self.call(connection, .getDocument, message)
            expectEqual(answer.end(), .ok)
            expectEqual(answer.messages, [message])
        }
        // Many at the same time, more than the server's limit of streams.
        let answers = (0..<300).map { number in
            Self.call(connection, .getDocument, [UInt8](repeating: UInt8(number % 250), count: 9))
        }
        for (number, answer) in answers.enumerated() {
            expectEqual(answer.end(), .ok)
            expectEqual(answer.messages, [[UInt8](repeating: UInt8(number % 250), count: 9)])
        }
        server.stop()
    }

    @Test
    func `A call shows its token and metadata, and the server's status reaches the caller`() throws {
        let server = try LiveServer { $0.keepsAuthorization = true }
        let connection = Self.connect(server) { configuration in
            configuration.token = "one"
            configuration.metadata = [("x-test", "y z")]
        }
        let failed = Self.call(connection, .rollback, Array("écrit 100 %\n".utf8))
        expectEqual(failed.end(), CallOutcome(.aborted, "écrit 100 %\n"))
        connection.show(token: "two")
        expectEqual(Self.call(connection, .getDocument, []).end(), .ok)
        expectEqual(server.record.state.withLock { $0.authorizations }, ["Bearer one", "Bearer two"])
        let unknown = Answer()
        _ = connection.start("/test.Store/None", [], isComplete: true, deadlineMilliseconds: nil, handler: unknown)
        expectEqual(unknown.end()?.code, .unimplemented)
        server.stop()
    }

    @Test
    func `A stream that its reader pauses stops at the window, and continues`() throws {
        let server = try LiveServer()
        let connection = Self.connect(server) { $0.streamWindowBytes = 65_535 }
        let answer = Answer()
        let call = connection.start(
            path(.runQuery), littleEndianBytes(2_000, 1_000), isComplete: true, deadlineMilliseconds: nil,
            handler: answer)
        expect(answer.has(1))
        call.pauseMessages()
        // A call that needs the connection's window passes the one that is paused.
        expectEqual(Self.call(connection, .getDocument, [UInt8](repeating: 1, count: 60_000)).end(), .ok)
        call.resumeMessages()
        expectEqual(answer.end(), .ok)
        let messages = answer.messages
        expectEqual(messages.count, 2_000)
        expect(messages.enumerated().allSatisfy { $0.element.starts(with: littleEndianBytes(UInt32($0.offset))) })
        server.stop()
    }

    @Test
    func `A paused reader holds at most a window, and no more`() throws {
        let server = try LiveServer()
        let connection = Self.connect(server) { $0.streamWindowBytes = 65_535 }
        let answer = Answer()
        let call = connection.start(
            path(.runQuery), littleEndianBytes(100_000, 1_000), isComplete: true, deadlineMilliseconds: nil,
            handler: answer)
        call.pauseMessages()
        // The replies of these calls come after what the window of the stream permits.
        for _ in 0..<200 { expectEqual(Self.call(connection, .getDocument, [1]).end(), .ok) }
        expect(answer.messages.count <= 66)
        call.cancel()
        expectEqual(answer.end()?.code, .cancelled)
        expect(server.record.reaches { $0.sourcesCancelled == 1 })
        server.stop()
    }

    @Test
    func `Messages of a bidirectional call go both ways until the client ends it`() throws {
        let server = try LiveServer()
        let connection = Self.connect(server)
        let answer = Answer()
        let call = connection.start(
            path(.write), [0], isComplete: false, deadlineMilliseconds: nil, handler: answer)
        for number in 1..<50 {
            expect(answer.has(number))
            call.send([UInt8(number)], isLast: number == 49)
        }
        expectEqual(answer.end(), .ok)
        expectEqual(answer.messages, (0..<50).map { [UInt8($0)] })
        server.stop()
    }

    @Test
    func `Calls end at their deadline, by their caller, and with the connection`() throws {
        let server = try LiveServer()
        let closed = Promise<String>()
        let connection = Self.connect(
            server,
            onEvent: { event in
                if case .closed(let reason) = event { closed.fulfil(reason) }
            })
        expectEqual(Self.call(connection, .commit, [1], deadline: 30).end()?.code, .deadlineExceeded)
        let cancelled = Answer()
        let call = connection.start(
            path(.commit), [2], isComplete: true, deadlineMilliseconds: nil, handler: cancelled)
        expect(server.record.reaches { $0.heads.count == 2 })
        call.cancel()
        expectEqual(cancelled.end()?.code, .cancelled)
        expect(server.record.reaches { $0.cancelled.count == 2 })
        let lost = Self.call(connection, .commit, [3])
        expect(server.record.reaches { $0.pending.count == 1 })
        server.drain()
        expectEqual(lost.end()?.code, .unavailable)
        expect(closed.wait() != nil)
        let late = Self.call(connection, .getDocument, []).end()
        expect(late?.code == .unavailable && late?.isUnprocessed == true)
        server.stopAtOnce()
    }

    @Test
    func `A server that is not there is UNAVAILABLE with its address, and other protocols are seen`() throws {
        for bytes in ["220 mail.example\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", "\u{16}\u{3}\u{1}\u{0}\u{5}hello"] {
            let nobody = Nobody()
            let session = GRPCClientSession(GRPCClientConfiguration(), delegate: nobody)
            expect(session.receive(Array(bytes.utf8).byteSpan) != nil, "\(bytes)")
            withExtendedLifetime(nobody) {}
        }
        let server = try LiveServer()
        let port = server.server.port
        server.drain()
        let nobody = Self.call(Self.connect(server, port: port), .getDocument, []).end()
        expect(nobody?.code == .unavailable && nobody?.isUnprocessed == true)
        expectEqual(nobody?.message.contains("127.0.0.1:\(port)"), true)
        server.stopAtOnce()
    }
}
