// Connections through a proxy that sends a header of the PROXY protocol, over every protocol of the port.

import Basics
import ConnectionTestSupport
import HTTPProtocols
import TLS
import TLSTestSupport
import TestSupport
import Testing

@testable import Calls
@testable import Connections
@testable import NativeProtocol
@testable import Server

@Suite(.timeLimit(.minutes(20))) struct ProxyHeaderTests {
    private typealias Origin = EchoService.Record.Origin

    private static let client = Origin(isProxied: true, forwardedFor: "192.0.2.7")
    private static let nativeRequest =
        Preface.hearth + TestFrame.hello.bytes
        + TestFrame(.request, .endStream, code: RPC.getDocument.number, stream: 1, [5]).bytes

    /// A server that trusts proxies on this machine.
    private func serve(
        trusting range: String = "127.0.0.0/8", _ configure: (inout ServerConfiguration) -> Void = { _ in }
    ) throws -> LiveServer {
        try LiveServer {
            $0.trustedProxies = TrustedProxies([NetworkRange(range)].compactMap { $0 })
            configure(&$0)
        }
    }

    private func origins(_ live: LiveServer) -> [Origin] { live.record.state.withLock { $0.origins } }

    /// Whether a connection that begins with these bytes is closed without an answer.
    private func isClosed(_ live: LiveServer, _ bytes: [UInt8]) -> Bool {
        let raw = RawClient(port: live.server.port)
        raw.send(bytes)
        return raw.receiveAll().isEmpty
    }

    private func answersNative(_ raw: RawClient) -> Bool {
        var received: [UInt8] = []
        while !TestFrame.all(in: received).contains(where: { $0.isKind(.message) }) {
            let bytes = raw.receive()
            if bytes.isEmpty { return false }
            received += bytes
        }
        return true
    }

    // MARK: Protocols

    @Test func `The header names the client of native calls, in pieces of any size`() throws {
        let live = try serve()
        defer { live.stop() }
        let bytes = TestProxyHeader().bytes + Self.nativeRequest
        for piece in [1, 5, 13, 27, bytes.count] {
            let raw = RawClient(port: live.server.port)
            for start in stride(from: 0, to: bytes.count, by: piece) { raw.send(Array(bytes[start...].prefix(piece))) }
            expect(answersNative(raw), "\(piece)")
        }
        expectEqual(origins(live), Array(repeating: Self.client, count: 5))
    }

    @Test func `The header names the client of gRPC calls, and its own fields are not believed`() throws {
        let live = try serve()
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(TestProxyHeader().bytes)
        let client = HTTP2Client(raw)
        _ = client.callAndWait(.getDocument, [1])
        _ = client.callAndWait(.getDocument, [1], fields: [("x-forwarded-for", "198.51.100.1")])
        expectEqual(origins(live), [Self.client, Self.client])
    }

    @Test func `A client of the header that is a trusted proxy too names its own client`() throws {
        let live = try serve()
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(TestProxyHeader([127, 0, 0, 9]).bytes)
        let client = HTTP2Client(raw)
        _ = client.callAndWait(.getDocument, [1], fields: [("x-forwarded-for", "198.51.100.1")])
        _ = client.callAndWait(.getDocument, [1])
        expectEqual(origins(live).map(\.forwardedFor), ["198.51.100.1", "127.0.0.9"])
    }

    @Test func `A proxy that names nobody counts as the client, and its fields are not believed`() throws {
        let live = try serve()
        defer { live.stop() }
        let unknown = TestProxyHeader().with {
            $0.familyAndKind = 0
            $0.addresses = []
        }
        for header in [TestProxyHeader.local, unknown] {
            let raw = RawClient(port: live.server.port)
            raw.send(header.bytes)
            _ = HTTP2Client(raw).callAndWait(.getDocument, [1], fields: [("x-forwarded-for", "198.51.100.1")])
        }
        expectEqual(origins(live), Array(repeating: Origin(isProxied: true, forwardedFor: "127.0.0.1"), count: 2))
    }

    @Test(arguments: [1, 20, 10_000])
    func `TLS follows the header`(piece: Int) throws {
        let authority = TestAuthority()
        let issued = authority.issue(["IP:127.0.0.1"])
        let credential = TLSCredential(certificates: issued.certificate, key: issued.key.privatePEM)
        let context = try TLSContext(
            server: TLSServerSettings(credential: credential, protocols: SocketServer.protocolNames),
            tickets: TicketKeys { SystemClock.monotonicNanoseconds() / 1_000_000_000 })
        let live = try serve { $0.tls = ServerTLS { context } }
        defer { live.stop() }
        let secure = try SecureRawClient(
            live,
            TLSContext(
                client: TLSClientSettings(
                    authorities: .certificates(authority.certificate), protocols: [Preface.protocolName])),
            piece: piece, after: TestProxyHeader().bytes)
        secure.send(Self.nativeRequest)
        expect(!secure.receive { $0.contains { $0.isKind(.message) } }.isEmpty)
        expectEqual(origins(live), [Self.client])
        // Within TLS there is no header.
        let inside = try SecureRawClient(
            live,
            TLSContext(
                client: TLSClientSettings(
                    authorities: .certificates(authority.certificate), protocols: [Preface.protocolName])),
            piece: piece)
        inside.send(TestProxyHeader().bytes + Self.nativeRequest)
        expect(inside.receive { _ in false }.isEmpty)
        expectEqual(origins(live).count, 1)
    }

    // MARK: What is refused

    @Test func `A header from others is refused with its first byte`() throws {
        let live = try serve(trusting: "192.0.2.0/24")
        defer { live.stop() }
        expect(isClosed(live, TestProxyHeader().bytes + Self.nativeRequest))
        expect(isClosed(live, [0x0D]))
        expect(origins(live).isEmpty)
    }

    @Test(arguments: ["127.0.0.1", "192.0.2.0/24"])
    func `Version 1 gets 400 and the reason`(range: String) throws {
        let live = try serve(trusting: range)
        defer { live.stop() }
        for text in ["PROXY TCP4 192.0.2.7 127.0.0.1 4660 80\r\nGET / HTTP/1.1\r\n\r\n", "PROXY UNKNOWN\r\n"] {
            let raw = RawClient(port: live.server.port)
            raw.send(Array(text.utf8))
            let reply = String(decoding: raw.receiveAll(), as: UTF8.self)
            expect(reply.hasPrefix("HTTP/1.1 400 Bad Request\r\n"), "\(reply)")
            expect(reply.contains("The PROXY protocol is served in version 2 alone, not in version 1."))
        }
    }

    @Test func `Headers that break a rule, and second ones, close the connection`() throws {
        let live = try serve()
        defer { live.stop() }
        let header = TestProxyHeader()
        let hostile: [TestProxyHeader] = [
            header.with { $0.versionAndCommand = 0x31 }, header.with { $0.versionAndCommand = 0x2A },
            header.with { $0.familyAndKind = 0x51 }, header.with { $0.claimedLength = 0xFFFF },
            header.with { $0.addresses = [1, 2, 3] }, header.with { $0.additions = [0x20, 0xFF, 0xFF, 1] },
        ]
        for header in hostile { expect(isClosed(live, header.bytes + Self.nativeRequest), "\(header)") }
        expect(isClosed(live, header.bytes + header.bytes + Self.nativeRequest))
        expect(isClosed(live, Array(header.bytes[..<11]) + [0x00] + Self.nativeRequest))
        expect(origins(live).isEmpty)
    }

    @Test func `A header that does not end is closed in time`() throws {
        let live = try serve { $0.headerMilliseconds = 100 }
        defer { live.stop() }
        for count in [1, 12, 16, 27] { expect(isClosed(live, Array(TestProxyHeader().bytes[..<count]))) }
        expect(isClosed(live, TestProxyHeader().bytes))
        expect(isClosed(live, Array("PROX".utf8)))
    }

    // MARK: Limits

    @Test func `Connections count for the client that the header names`() throws {
        let live = try serve { $0.networkConnectionsMax = 2 }
        defer { live.stop() }
        func open(_ client: UInt8) -> RawClient {
            let raw = RawClient(port: live.server.port)
            raw.send(TestProxyHeader([10, 0, 0, client]).bytes + Self.nativeRequest)
            return raw
        }
        var held = [open(1), open(1), open(2)]
        for raw in held { expect(answersNative(raw)) }
        let refused = String(decoding: open(1).receiveAll(), as: UTF8.self)
        expect(refused.contains("your address has more than 2 connections"))
        expectEqual(live.statistics().networkConnectionsRefused, 1)
        held.removeFirst()
        expect(eventually { answersNative(open(1)) })
        expect(answersNative(open(2)))
    }

    private func eventually(_ isTrue: () -> Bool) -> Bool {
        for _ in 0..<1_000 where isTrue() { return true }
        return false
    }
}
