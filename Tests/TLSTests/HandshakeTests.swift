// Handshakes of our client with our server, and the bytes after them.

import Basics
import TLS
import TLSTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct HandshakeTests {
    private let site = TestSite.shared

    @Test(arguments: 0..<6)
    func `The newest common version is spoken, and texts arrive in pieces of any size`(run: Int) throws {
        let pair = try SessionPair(site.client(), site.server())
        var random = SeededGenerator(seed: UInt64(run))
        switch run {
        case 0: break
        case 1: pair.piece = { 1 }
        default: pair.piece = { 1 + random.below(2000) }
        }
        pair.exchange()
        expect(pair.isOpen)
        expectEqual(pair.client.handshake?.version, .tls13)
        expectEqual(pair.server.handshake?.protocolName, "h2")
        expectEqual(pair.client.handshake?.protocolName, "h2")
        expectEqual(pair.client.handshake?.peer?.dnsNames, ["localhost", "*.example.test"])
        expectNil(pair.server.handshake?.peer)

        var other = SeededGenerator(seed: UInt64(run) + 100)
        let question = (0..<(run == 1 ? 20_000 : 200_000)).map { _ in UInt8(other.below(256)) }
        try sendAll(question, pair.client, pair)
        try sendAll(question.reversed(), pair.server, pair)
        expectEqual(pair.serverText, question)
        expectEqual(pair.clientText, question.reversed())
    }

    @Test
    func `TLS 1.2 is spoken with a client that knows no newer one, with AEAD and ECDHE`() throws {
        let command = try OpenSSLCommand.client(
            against: site.server(), ["-tls1_2", "-alpn", "http/1.1"], says: "hello\n", answer: "good day\n")
        expectEqual(command.serverHandshake?.version, .tls12)
        expectEqual(command.serverHandshake?.protocolName, "http/1.1")
        expectEqual(command.serverHandshake?.cipher.hasPrefix("ECDHE-"), true)
        expectEqual(command.serverText, "hello\n")
        expect(command.output.contains("good day"))
    }

    @Test
    func `A minimum of 1.3 refuses TLS 1.2 on either side`() throws {
        let strict = try site.server { $0.minimum = .tls13 }
        let refused = try OpenSSLCommand.client(against: strict, ["-tls1_2"], says: "", answer: "")
        expectNil(refused.serverHandshake)
        expectEqual(refused.failure?.kind, .violation)
        expectEqual(refused.failure?.reason.contains("protocol"), true, "\(String(describing: refused.failure))")
        let pair = try SessionPair(site.client { $0.minimum = .tls13 }, strict)
        pair.exchange()
        expect(pair.isOpen)
    }

    @Test(arguments: [
        ["-tls1_1", "-cipher", "ALL@SECLEVEL=0"], ["-tls1_2", "-cipher", "AES128-GCM-SHA256"],
        ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA256"], ["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"],
    ])
    func `Old versions and ciphers without AEAD or forward secrecy are refused`(arguments: [String]) throws {
        let key = TestKey(.rsa(bits: 2048))
        let certificate = site.authority.issue(["DNS:localhost"], key: key)
        let server = try site.server { $0.credential = credential(certificate) }
        let refused = try OpenSSLCommand.client(against: server, arguments, says: "", answer: "")
        expectNil(refused.serverHandshake)
        expectEqual(refused.failure?.kind, .violation, "\(String(describing: refused.failure))")
    }

    @Test(arguments: [
        (["h2", "http/1.1"], ["http/1.1", "h2"], "h2"), (["http/1.1", "h2"], ["h2", "http/1.1"], "http/1.1"),
        (["h2"], ["x", "h2"], "h2"), ([], ["h2"], nil), (["h2"], [], nil),
    ])
    func `The server's order decides among the client's protocols`(
        server: [String], client: [String], expected: String?
    ) throws {
        let pair = try SessionPair(site.client { $0.protocols = client }, site.server { $0.protocols = server })
        pair.exchange()
        expect(pair.isOpen)
        expectEqual(pair.server.handshake?.protocolName, expected)
        expectEqual(pair.client.handshake?.protocolName, expected)
    }

    @Test
    func `No protocol in common is an alert`() throws {
        let pair = try SessionPair(site.client { $0.protocols = ["spdy/1"] }, site.server())
        pair.exchange()
        expectEqual(pair.serverError?.kind, .violation)
        // no_application_protocol of RFC 7301.
        expectEqual(pair.clientError?.kind, .alert(120))
        #expect(throws: TLSError.self) { try site.client { $0.protocols = [""] } }
        #expect(throws: TLSError.self) { try site.client { $0.protocols = [String(repeating: "a", count: 256)] } }
    }

    @Test
    func `Nothing is sent before the handshake is done, and roles cannot be exchanged`() throws {
        let (client, server) = (try site.client(), try site.server())
        let session = try TLSSession(client: client, serverName: "localhost")
        expect(session.outputBytes > 0)
        #expect(throws: TLSError(.state, "the session is not open")) { try session.send([1, 2].byteSpan) }
        #expect(throws: TLSError.self) { try TLSSession(server: client) }
        #expect(throws: TLSError.self) { try TLSSession(client: server, serverName: "localhost") }
    }
}
