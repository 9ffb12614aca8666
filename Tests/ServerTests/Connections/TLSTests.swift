// TLS on the port of a server: calls of every shape, clients that do not verify, clients that speak something else.

import Basics
import ConnectionTestSupport
import HTTPProtocols
import Synchronization
import TLS
import TLSTestSupport
import TestSupport
import Testing

@testable import Calls
@testable import Connections
@testable import NativeProtocol
@testable import Server

@Suite(.timeLimit(.minutes(20))) struct TLSTests {
    private let authority = TestAuthority()

    private func serverContext(_ names: [String] = ["IP:127.0.0.1"]) throws -> TLSContext {
        let issued = authority.issue(names)
        let credential = TLSCredential(certificates: issued.certificate, key: issued.key.privatePEM)
        return try TLSContext(
            server: TLSServerSettings(credential: credential, protocols: SocketServer.protocolNames),
            tickets: TicketKeys { SystemClock.monotonicNanoseconds() / 1_000_000_000 })
    }

    private func clientContext(_ protocols: [String] = [Preface.protocolName]) throws -> TLSContext {
        try TLSContext(
            client: TLSClientSettings(authorities: .certificates(authority.certificate), protocols: protocols))
    }

    private func serve(_ configure: (inout ServerConfiguration) -> Void = { _ in }) throws -> LiveServer {
        let context = try serverContext()
        return try LiveServer {
            $0.tls = ServerTLS { context }
            configure(&$0)
        }
    }

    private func connect(_ live: LiveServer) throws -> ClientConnection {
        var configuration = ClientConfiguration()
        configuration.tls = try clientContext()
        return live.connect(configuration)
    }

    // MARK: Calls

    @Test func `Messages of every size arrive over TLS as they were sent`() throws {
        let live = try serve()
        defer { live.stop() }
        let connection = try connect(live)
        // A prime number of bytes, again and again: a record that is out of its place differs.
        let block = (0..<65_521).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) }
        for size in [0, 1, 100, 16_384, 20_000, 70_000, 1_000_000, 9_000_000] {
            var payload: [UInt8] = []
            while payload.count < size { payload += block.prefix(size - payload.count) }
            let reply = connection.callAndWait(.getDocument, payload)
            expectEqual(reply?.outcome, .ok)
            expectEqual(reply?.bytes, payload)
        }
    }

    @Test func `Streams in both directions are whole and in order over TLS`() throws {
        let live = try serve()
        defer { live.stop() }
        let connection = try connect(live)
        let down = Collector()
        connection.stream(.runQuery, littleEndianBytes(5_000, 2_000), handler: down)
        let both = Collector()
        let call = connection.stream(.write, [0], isComplete: false, handler: both)
        for number in 1..<200 { call.send([UInt8](repeating: UInt8(number), count: 10_000)) }
        call.finishSending()
        expect(down.waitForEnd() == .ok && both.waitForEnd() == .ok)
        expectEqual(down.messages.count, 5_000)
        expect(down.messages.indices.allSatisfy { down.messages[$0].prefix(4) == littleEndianBytes(UInt32($0))[...] })
        expectEqual(both.messages.map(\.first), (0..<200).map { UInt8($0) })
    }

    @Test(arguments: [1, 3, 1_000])
    func `Records may arrive in pieces of any size`(piece: Int) throws {
        let live = try serve()
        defer { live.stop() }
        let client = try SecureRawClient(live, clientContext(), piece: piece)
        client.send(Preface.hearth + TestFrame.hello.bytes)
        for stream in UInt32(1)...3 {
            let payload = [UInt8](repeating: UInt8(stream), count: 3_000)
            client.send(TestFrame(.request, .endStream, code: RPC.getDocument.number, stream: stream, payload).bytes)
        }
        let frames = client.receive { $0.count { $0.isKind(.message) } == 3 }
        expectEqual(frames.filter { $0.isKind(.message) }.map { $0.payload.count }, [3_000, 3_000, 3_000])
    }

    @Test func `A server that ends sends close_notify`() throws {
        let live = try serve()
        defer { live.stopAtOnce() }
        let client = try SecureRawClient(live, clientContext(), piece: 10_000)
        client.send(Preface.hearth + TestFrame.hello.bytes)
        _ = client.receive { !$0.isEmpty }
        live.drain()
        _ = client.receive { _ in false }
        expect(client.session.hasReceivedClose)
    }

    // MARK: Verification

    @Test func `A client gets the reason when the certificate does not verify`() throws {
        let live = try serve()
        defer { live.stop() }
        var configuration = ClientConfiguration()
        configuration.tls = try TLSContext(
            client: TLSClientSettings(authorities: .certificates(TestAuthority("other").certificate)))
        let outcome = live.connect(configuration).callAndWait(.getDocument, [1])?.outcome
        expect(outcome?.code == .unavailable && outcome?.isUnprocessed == true)
        expectEqual(outcome?.message.contains("no secure connection to 127.0.0.1"), true)
        expectEqual(outcome?.message.contains("certificate"), true, "\(outcome?.message ?? "")")
        expect(live.record.state.withLock { $0.heads.isEmpty })
    }

    @Test func `A certificate of another name is refused`() throws {
        let context = try serverContext(["DNS:hearth.example"])
        let live = try LiveServer { $0.tls = ServerTLS { context } }
        defer { live.stop() }
        let outcome = try connect(live).callAndWait(.getDocument, [1])?.outcome
        expectEqual(outcome?.code, .unavailable)
        expect(live.record.state.withLock { $0.heads.isEmpty })
    }

    @Test func `A client without TLS gets a GOAWAY that says what the port requires`() throws {
        let live = try serve()
        defer { live.stop() }
        let outcome = live.connect().callAndWait(.getDocument, [1])?.outcome
        expectEqual(outcome?.code, .unavailable)
        expectEqual(outcome?.message.contains("this port requires TLS"), true, "\(outcome?.message ?? "")")
    }

    @Test func `A new context is for new connections, and open ones continue`() throws {
        let first = try serverContext()
        let current = Mutex(first)
        let live = try LiveServer { $0.tls = ServerTLS { current.withLock { $0 } } }
        defer { live.stop() }
        let old = try connect(live)
        expectEqual(old.callAndWait(.getDocument, [1])?.bytes, [1])
        let second = try serverContext(["DNS:elsewhere.example"])
        current.withLock { $0 = second }
        try expectEqual(connect(live).callAndWait(.getDocument, [2])?.outcome.code, .unavailable)
        expectEqual(old.callAndWait(.getDocument, [3])?.bytes, [3])
    }

    // MARK: Plain text

    @Test func `HTTP 1 in plain text gets 400 and the reason`() throws {
        let live = try serve()
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
        let reply = String(decoding: raw.receiveAll(), as: UTF8.self)
        expect(reply.hasPrefix("HTTP/1.1 400 Bad Request\r\n"), "\(reply)")
        expect(reply.contains(#""message": "This port requires TLS.", "status": "FAILED_PRECONDITION""#))
    }

    @Test func `HTTP 2 in plain text gets an answer to its first request`() throws {
        let live = try serve()
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(
            HTTP2Preface.bytes + HTTP2Frame.settings().bytes
                + HTTP2Frame.request(path(.getDocument), stream: 1).bytes)
        var transcript = HTTP2Transcript()
        transcript.add(raw.receiveAll())
        expectEqual(transcript.answers[1]?.head[":status"], "400")
        expect(transcript.answers[1]?.status == 9 && transcript.answers[1]?.text == "this port requires TLS")
    }

    @Test(arguments: [[0x00, 0x01], [0x16, 0x02, 0x00], [0x16, 0x03, 0x01, 0x00, 0x05, 1, 2, 3, 4, 5], [0xFF]])
    func `Other bytes close the connection`(bytes: [UInt8]) throws {
        let live = try serve { $0.refusalMilliseconds = 50 }
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(bytes)
        let reply = raw.receiveAll()
        // An alert at most.
        expect(reply.isEmpty || reply[0] == 0x15)
        live.drain()
    }

    @Test func `A client that negotiates HTTP 2 must speak it`() throws {
        let live = try serve()
        defer { live.stop() }
        let client = try SecureRawClient(live, clientContext(["h2"]), piece: 10_000)
        expectEqual(client.session.handshake?.protocolName, "h2")
        client.send(Preface.hearth + TestFrame.hello.bytes)
        expect(client.receive { _ in false }.isEmpty)
    }

    // MARK: Bounds

    @Test func `A handshake that does not end is closed in time`() throws {
        let live = try serve { $0.headerMilliseconds = 100 }
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send([0x16, 0x03, 0x01])
        expect(raw.receiveAll().isEmpty)
    }

    @Test func `Handshakes at once are bounded: the one that has lasted longest ends for another`() throws {
        let live = try serve { $0.tls?.handshakesMax = 2 }
        defer { live.stop() }
        // More clients than there may be handshakes, none of which ends its own.
        let slow = (0..<3).map { _ in
            let client = RawClient(port: live.server.port)
            client.send([0x16, 0x03, 0x01, 0x02])
            return client
        }
        try expectEqual(connect(live).callAndWait(.getDocument, [7])?.bytes, [7])
        expect(slow[0].receiveAll().isEmpty)
        try expectEqual(connect(live).callAndWait(.getDocument, [8])?.bytes, [8])
    }
}
