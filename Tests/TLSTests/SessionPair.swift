// A client's and a server's session, and the bytes between them.

import Basics
import TLS
import TLSTestSupport
import TestSupport

/// Two sessions without a network.
final class SessionPair {
    let client: TLSSession
    let server: TLSSession
    /// What each side has received.
    private(set) var clientText: [UInt8] = []
    private(set) var serverText: [UInt8] = []
    private(set) var clientError: TLSError?
    private(set) var serverError: TLSError?
    /// How many bytes of a flight are received at once; the whole flight if nil.
    var piece: (() -> Int)?
    /// Changes each flight on its way.
    var change: (_ fromClient: Bool, _ flight: [UInt8]) -> [UInt8] = { $1 }

    init(client: TLSSession, server: TLSSession) {
        self.client = client
        self.server = server
    }

    convenience init(
        _ client: TLSContext, _ server: TLSContext, name: String = "localhost", ticket: TLSTicket? = nil
    ) throws {
        self.init(
            client: try TLSSession(client: client, serverName: name, ticket: ticket),
            server: try TLSSession(server: server))
    }

    /// Carries bytes until there are none.
    func exchange() {
        var isMoving = true
        while isMoving {
            isMoving = false
            if let flight = take(client) {
                isMoving = true
                deliver(change(true, flight), to: server, &serverText, &serverError)
            }
            if let flight = take(server) {
                isMoving = true
                deliver(change(false, flight), to: client, &clientText, &clientError)
            }
        }
    }

    private func take(_ session: TLSSession) -> [UInt8]? {
        var output = ByteBuffer()
        session.takeOutput(into: &output)
        return output.count == 0 ? nil : output.copyBytes()
    }

    private func deliver(_ flight: [UInt8], to session: TLSSession, _ text: inout [UInt8], _ error: inout TLSError?) {
        var start = 0
        while start < flight.count {
            let end = min(flight.count, start + (piece?() ?? flight.count))
            var plaintext = ByteBuffer(capacity: 0)
            // A failure is kept by the session.
            try? session.receive(flight.byteSpan.extracting(start..<end), into: &plaintext)
            text += plaintext.copyBytes()
            error = error ?? session.failure
            start = end
        }
    }

    /// Whether both sides are done with the handshake and without a failure.
    var isOpen: Bool {
        client.handshake != nil && server.handshake != nil && clientError == nil && serverError == nil
    }
}

/// Sends everything, as often as the session takes a part.
func sendAll(_ bytes: [UInt8], _ session: TLSSession, _ pair: SessionPair) throws {
    var sent = 0
    while sent < bytes.count {
        sent += try session.send(bytes.byteSpan.extracting(sent..<bytes.count))
        pair.exchange()
    }
}

/// A root, a server's certificate for localhost, and contexts for both.
struct TestSite {
    static let shared = TestSite()

    let authority = TestAuthority("Root of tests")
    let certificate: TestCertificate

    init() { certificate = authority.issue(["DNS:localhost", "DNS:*.example.test", "IP:127.0.0.1", "IP:::1"]) }

    var serverSettings: TLSServerSettings {
        TLSServerSettings(credential: credential(certificate), protocols: ["h2", "http/1.1"])
    }

    var clientSettings: TLSClientSettings {
        TLSClientSettings(authorities: .certificates(authority.certificate), protocols: ["h2"])
    }

    /// A server whose settings are changed by `change`.
    func server(
        tickets: TicketKeys = TicketKeys(now: { 0 }), _ change: (inout TLSServerSettings) -> Void = { _ in }
    ) throws -> TLSContext {
        var settings = serverSettings
        change(&settings)
        return try TLSContext(server: settings, tickets: tickets)
    }

    func client(_ change: (inout TLSClientSettings) -> Void = { _ in }) throws -> TLSContext {
        var settings = clientSettings
        change(&settings)
        return try TLSContext(client: settings)
    }
}

func credential(_ certificate: TestCertificate, chain: [UInt8] = []) -> TLSCredential {
    TLSCredential(certificates: certificate.certificate + chain, key: certificate.key.privatePEM)
}
