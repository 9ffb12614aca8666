// What a connection says of its client: tokens of the native protocol, names of certificates, proxies, loopback.

import Basics
import ConnectionTestSupport
import HTTPProtocols
import NativeProtocol
import TLS
import TLSTestSupport
import TestSupport
import Testing

@testable import Calls
@testable import Connections
@testable import Server

@Suite(.timeLimit(.minutes(20))) struct OriginTests {
    private typealias Origin = EchoService.Record.Origin

    private func origins(_ live: LiveServer) -> [Origin] { live.record.state.withLock { $0.origins } }

    private func authorizations(_ live: LiveServer) -> [String?] { live.record.state.withLock { $0.authorizations } }

    // MARK: Tokens

    @Test func `A native client shows its token with HELLO, and another one on the same connection`() throws {
        let live = try LiveServer { $0.keepsAuthorization = true }
        defer { live.stop() }
        var configuration = ClientConfiguration()
        configuration.credential = try #require(Credential("first"))
        let connection = live.connect(configuration)
        let held = Promise<CallOutcome>()
        connection.unary(.commit, []) { outcome, _ in held.fulfil(outcome) }
        expect(live.record.reaches { $0.pending.count == 1 })
        connection.show(try #require(Credential("second")))
        _ = connection.callAndWait(.getDocument, [1])
        connection.show(.none)
        _ = connection.callAndWait(.getDocument, [1])
        expectEqual(authorizations(live), ["Bearer first", "Bearer second", nil])
        // The call that was open when the token changed is still open, and has the token with which it began.
        let call = live.record.state.withLock { $0.pending[0] }
        call.loop.execute {
            let shown = call.authorization ?? "nothing"
            call.fail(.aborted, shown)
        }
        expectEqual(held.wait(), CallOutcome(.aborted, "Bearer first"))
        expect(origins(live).allSatisfy { $0 == Origin() })
    }

    @Test func `A server that needs no tokens keeps none`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        var configuration = ClientConfiguration()
        configuration.credential = try #require(Credential("first"))
        expectEqual(live.connect(configuration).callAndWait(.getDocument, [1])?.outcome, .ok)
        expectEqual(authorizations(live), [nil])
    }

    @Test func `A client that breaks the rule of tokens is sent away without its token`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let raw = RawClient(port: live.server.port)
        raw.send(
            Preface.hearth + TestFrame.hello.bytes + TestFrame(.credential, stream: 0, Array("canary token".utf8)).bytes
        )
        let bytes = raw.receiveAll()
        let text = String(decoding: bytes, as: UTF8.self)
        expect(text.contains("the token of CREDENTIAL is not visible ASCII"))
        expect(!text.contains("canary"))
    }

    // MARK: Certificates

    private func context(_ authority: TestAuthority, asksClients: Bool) throws -> TLSContext {
        let issued = authority.issue(["IP:127.0.0.1"])
        let settings = TLSServerSettings(
            credential: TLSCredential(certificates: issued.certificate, key: issued.key.privatePEM),
            clients: asksClients ? TLSClientVerification(authorities: authority.certificate) : nil,
            protocols: SocketServer.protocolNames)
        return try TLSContext(
            server: settings, tickets: TicketKeys { SystemClock.monotonicNanoseconds() / 1_000_000_000 })
    }

    @Test func `A call has the names of the client's certificate`() throws {
        let authority = TestAuthority()
        let context = try context(authority, asksClients: true)
        let live = try LiveServer { $0.tls = ServerTLS { context } }
        defer { live.stop() }
        let issued = authority.issue(["URI:spiffe://a/b", "DNS:job.example"])
        let credential = TLSCredential(certificates: issued.certificate, key: issued.key.privatePEM)
        for shown in [credential, nil] {
            var configuration = ClientConfiguration()
            configuration.tls = try TLSContext(
                client: TLSClientSettings(
                    authorities: .certificates(authority.certificate), credential: shown,
                    protocols: [Preface.protocolName]))
            expectEqual(live.connect(configuration).callAndWait(.getDocument, [1])?.outcome, .ok)
        }
        expectEqual(
            origins(live), [Origin(certificateNames: ["URI:spiffe://a/b", "DNS:job.example"]), Origin()])
    }

    @Test func `The certificate of a trusted proxy counts for no client, and one after a proxy header counts`() throws {
        let authority = TestAuthority()
        let context = try context(authority, asksClients: true)
        let live = try LiveServer {
            $0.tls = ServerTLS { context }
            $0.trustedProxies = TrustedProxies([NetworkRange("127.0.0.0/8")].compactMap { $0 })
        }
        defer { live.stop() }
        let issued = authority.issue(["DNS:proxy.example"])
        let client = try TLSContext(
            client: TLSClientSettings(
                authorities: .certificates(authority.certificate),
                credential: TLSCredential(certificates: issued.certificate, key: issued.key.privatePEM),
                protocols: [Preface.protocolName]))
        let request =
            Preface.hearth + TestFrame.hello.bytes
            + TestFrame(.request, .endStream, code: RPC.getDocument.number, stream: 1, [5]).bytes
        for header in [[], TestProxyHeader().bytes] {
            let secure = try SecureRawClient(live, client, piece: 10_000, after: header)
            secure.send(request)
            expect(!secure.receive { $0.contains { $0.isKind(.message) } }.isEmpty)
        }
        expectEqual(
            origins(live),
            [
                Origin(forwardedFor: "127.0.0.1"),
                Origin(certificateNames: ["DNS:proxy.example"], isProxied: true, forwardedFor: "192.0.2.7"),
            ])
    }

    // MARK: Proxies

    @Test(arguments: ["via", "forwarded", "x-forwarded-for"])
    func `A request over HTTP2 with a header of a proxy marks its connection`(name: String) throws {
        let live = try LiveServer()
        defer { live.stop() }
        let client = HTTP2Client(live)
        _ = client.callAndWait(.getDocument, [1], fields: [("x-forwarded-proto", "https")])
        _ = client.callAndWait(.getDocument, [1], fields: [(name, "1.1 proxy")])
        _ = client.callAndWait(.getDocument, [1])
        _ = HTTP2Client(live).callAndWait(.getDocument, [1])
        expectEqual(origins(live).map(\.isProxied), [false, true, true, false])
    }
}
