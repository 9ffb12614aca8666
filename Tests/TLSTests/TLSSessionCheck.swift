// What must hold for sessions, whatever the bytes between them. Called by tests and by the fuzzer.

import Basics

#if canImport(TLS)
    import TLS
    import TLSTestSupport
#endif

enum TLSSessionCheck {
    private struct Contexts {
        let client: TLSContext
        let server: TLSContext

        init() throws {
            let authority = TestAuthority()
            let certificate = authority.issue(["DNS:localhost"])
            server = try TLSContext(
                server: TLSServerSettings(
                    credential: TLSCredential(
                        certificates: certificate.certificate, key: certificate.key.privatePEM),
                    clients: TLSClientVerification(authorities: authority.certificate), protocols: ["h2"]),
                tickets: TicketKeys(now: { 0 }))
            client = try TLSContext(
                client: TLSClientSettings(authorities: .certificates(authority.certificate), protocols: ["h2"]))
        }
    }

    private static let contexts = try? Contexts()
    private static let text = Array("the text of a side".utf8)

    /// The broken property, or nil.
    ///
    /// The first byte chooses: a server or a client that receives the bytes at once, or two sessions between which the
    /// bytes change flights. Nothing traps; a side receives what the other sent, or a part, and fails once.
    static func violation(_ input: [UInt8]) -> String? {
        guard let contexts, let first = input.first else { return nil }
        let bytes = Array(input.dropFirst())
        do {
            // Pairs are slow, so few inputs choose them.
            switch first % 16 {
            case 0: return try damagedPair(contexts, bytes, from: 0)
            case 1: return try damagedPair(contexts, bytes, from: 3)
            case 2..<5: return violation(try TLSSession(client: contexts.client, serverName: "localhost"), bytes)
            default: return violation(try TLSSession(server: contexts.server), bytes)
            }
        } catch {
            return "a session cannot be made: \(error)"
        }
    }

    /// One session that receives bytes of a stranger, in two pieces.
    private static func violation(_ session: TLSSession, _ bytes: [UInt8]) -> String? {
        let middle = bytes.count / 2
        for range in [0..<middle, middle..<bytes.count] {
            var plaintext = ByteBuffer(capacity: 0)
            let before = session.failure
            try? session.receive(bytes.byteSpan.extracting(range), into: &plaintext)
            if plaintext.count > 0 { return "a stranger's bytes are received" }
            if session.handshake != nil { return "a stranger has a session" }
            if let before, before != session.failure { return "a failure changes" }
        }
        return session.outputBytes > 1 << 16 ? "too many bytes are sent" : nil
    }

    /// Two sessions. Each three bytes of the input change one byte of a flight, from the flight of a number on.
    private static func damagedPair(_ contexts: Contexts, _ bytes: [UInt8], from start: Int) throws -> String? {
        let sides = [
            try TLSSession(client: contexts.client, serverName: "localhost"),
            try TLSSession(server: contexts.server),
        ]
        var received: [[UInt8]] = [[], []]
        var hasSent = [false, false]
        for flight in 0..<12 {
            let (from, to) = (flight % 2, 1 - flight % 2)
            if !hasSent[from], sides[from].handshake != nil, sides[from].failure == nil {
                hasSent[from] = true
                _ = try sides[from].send(text.byteSpan)
                sides[from].close()
            }
            var output = ByteBuffer(capacity: 0)
            sides[from].takeOutput(into: &output)
            var moved = output.copyBytes()
            let change = (flight - start) * 3
            if change >= 0, change + 2 < bytes.count, !moved.isEmpty {
                let at = (Int(bytes[change]) << 8 | Int(bytes[change + 1])) % moved.count
                moved[at] ^= bytes[change + 2]
            }
            var plaintext = ByteBuffer(capacity: 0)
            try? sides[to].receive(moved.byteSpan, into: &plaintext)
            received[to] += plaintext.copyBytes()
        }
        for side in 0..<2 {
            if !received[side].isEmpty, received[side] != text { return "another text is received" }
            if !received[side].isEmpty, !hasSent[1 - side] { return "a text is received that was not sent" }
            if sides[side].hasReceivedClose, !hasSent[1 - side] { return "an end that was not sent" }
        }
        return nil
    }
}
