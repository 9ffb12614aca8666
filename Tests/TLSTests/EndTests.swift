// How sessions end: by close_notify, by a cut, by bytes that are not TLS, and at limits.

import Basics
import TLS
import TLSTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct EndTests {
    private let site = TestSite.shared

    private func open() throws -> SessionPair {
        let pair = try SessionPair(site.client(), site.server())
        pair.exchange()
        expect(pair.isOpen)
        return pair
    }

    @Test
    func `close_notify ends one direction; the other is open until its end`() throws {
        let pair = try open()
        try sendAll([1, 2, 3], pair.client, pair)
        pair.client.close()
        pair.client.close()
        pair.exchange()
        expect(pair.server.hasReceivedClose)
        try pair.server.receiveEnd()
        #expect(throws: TLSError(.state, "the session is not open")) { try pair.client.send([1].byteSpan) }

        try sendAll([4, 5], pair.server, pair)
        expectEqual(pair.clientText, [4, 5])
        pair.server.close()
        pair.exchange()
        expect(pair.client.hasReceivedClose)
        try pair.client.receiveEnd()
        expectEqual(pair.serverText, [1, 2, 3])
        expectNil(pair.clientError)
        expectNil(pair.serverError)
    }

    @Test
    func `An end without close_notify is an error, within a record too`() throws {
        for cut in [0, 1, 30] {
            let pair = try open()
            _ = try pair.client.send([UInt8](repeating: 7, count: 100).byteSpan)
            pair.change = { _, flight in Array(flight.dropLast(cut)) }
            pair.exchange()
            expectEqual(pair.serverText.count, cut == 0 ? 100 : 0)
            let error = #expect(throws: TLSError.self) { try pair.server.receiveEnd() }
            expectEqual(error?.kind, .truncated)
            #expect(throws: TLSError.self) { try pair.server.send([1].byteSpan) }
        }
    }

    @Test
    func `A changed record is refused with an alert, and nothing of it is received`() throws {
        let pair = try open()
        pair.change = { isFromClient, flight in
            isFromClient ? flight.dropLast() + [flight[flight.count - 1] ^ 1] : flight
        }
        try sendAll([1, 2, 3], pair.client, pair)
        expect(pair.serverText.isEmpty)
        expectEqual(pair.serverError?.kind, .violation)
        // bad_record_mac.
        expectEqual(pair.clientError?.kind, .alert(20))
    }

    @Test(
        arguments: [
            ([], nil), ([0x16], nil), ([0x16, 0x03], .tls), ([0x16, 0x03, 0x01], .tls), ([0x16, 0x16], .other),
            (Array("G".utf8), .plainHTTP), (Array("PRI * HTTP/2.0".utf8), .plainHTTP), ([0x89, 0x48], .other),
            (Array("get".utf8), .other), ([0], .other),
        ] as [([UInt8], FirstBytes?)])
    func `The first bytes say what a client speaks`(bytes: [UInt8], expected: FirstBytes?) throws {
        expectEqual(FirstBytes.of(bytes.byteSpan), expected)
        expectEqual(FirstBytes.looksLikePlainText(bytes.byteSpan), expected == .plainHTTP)
    }

    @Test
    func `Plain text is refused`() throws {
        let session = try TLSSession(server: site.server())
        var plaintext = ByteBuffer()
        let error = #expect(throws: TLSError.self) {
            try session.receive(Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8).byteSpan, into: &plaintext)
        }
        expectEqual(error?.kind, .violation)
        expectEqual(error?.reason, "http request")
        expectEqual(session.failure, error)
    }

    @Test
    func `A handshake has a bounded number of bytes`() throws {
        let session = try TLSSession(server: site.server())
        var plaintext = ByteBuffer()
        // The start of a hello of 131,071 bytes, again and again.
        let hello: [UInt8] = [0x16, 3, 1, 0x40, 0, 1, 0x01, 0xFF, 0xFF] + [UInt8](repeating: 3, count: 16_380)
        for _ in 0..<3 { try session.receive(hello.byteSpan, into: &plaintext) }
        let refused = #expect(throws: TLSError.self) { try session.receive(hello.byteSpan, into: &plaintext) }
        expectEqual(refused?.kind, .limit)

        var limits = TLSLimits()
        limits.handshakeBytesMax = 100
        let pair = try SessionPair(
            client: TLSSession(client: site.client(), serverName: "localhost"),
            server: TLSSession(server: site.server(), limits: limits))
        pair.exchange()
        expectEqual(pair.serverError, TLSError(.limit, "the handshake has too many bytes"))
    }

    @Test
    func `A session takes only as much as may wait to be sent`() throws {
        var limits = TLSLimits()
        limits.outputBytesMax = 40_000
        let pair = try SessionPair(
            client: TLSSession(client: site.client(), serverName: "localhost", limits: limits),
            server: TLSSession(server: site.server()))
        pair.exchange()
        let bytes = [UInt8](repeating: 9, count: 100_000)
        let taken = try pair.client.send(bytes.byteSpan)
        expect((40_000..<60_000).contains(taken))
        try expectEqual(pair.client.send(bytes.byteSpan), 0)
        expect(pair.client.outputBytes < 60_000)
        pair.exchange()
        expectEqual(pair.serverText.count, taken)
        try expectEqual(pair.client.send([1].byteSpan), 1)
    }

    @Test
    func `A client may change its keys and ask for new ones`() throws {
        let outcome = try OpenSSLCommand.client(
            against: site.server(), ["-tls1_3"], says: "k\nK\nhello\n", answer: "bye\n", readsCommands: true)
        expectEqual(outcome.serverText, "hello\n")
        expect(outcome.output.contains("bye"))
    }

    @Test
    func `A peer that changes its keys again and again is refused`() throws {
        func outcome(_ count: Int) throws -> OpenSSLCommand.Outcome {
            try OpenSSLCommand.client(
                against: site.server(), ["-tls1_3"], says: String(repeating: "k\n", count: count) + "hello\n",
                answer: "bye\n", readsCommands: true)
        }
        try expectEqual(outcome(30).serverText, "hello\n")
        let refused = try outcome(40)
        expectEqual(refused.failure, TLSError(.limit, "too many key updates"))
        expectEqual(refused.serverText, "")
    }

    @Test
    func `Renegotiation is refused`() throws {
        let outcome = try OpenSSLCommand.client(
            against: site.server(), ["-tls1_2"], says: "R\n", answer: nil, readsCommands: true)
        expectEqual(outcome.serverHandshake?.version, .tls12)
        expectEqual(outcome.serverText, "")
        expect(outcome.errors.contains("no renegotiation"), "\(outcome.errors)")
    }

    @Test(arguments: 0..<4)
    func `Random and damaged bytes break no property`(share: Int) throws {
        for seed in 0..<150 {
            var random = SeededGenerator(seed: UInt64(share * 1000 + seed))
            let bytes = (0..<random.below(400)).map { _ in UInt8(random.below(256)) }
            expectNil(TLSSessionCheck.violation([[0, 1, 2, 5][share]] + bytes), "seed \(random.seed)")
        }
    }
}
