// Sessions that begin with a ticket of an earlier one.

import Basics
import Synchronization
import TLS
import TLSTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct ResumptionTests {
    private let site = TestSite.shared

    /// Seconds that a test steps.
    private final class Clock: Sendable {
        let seconds = Mutex<UInt64>(1_000_000)
        var now: @Sendable () -> UInt64 { { self.seconds.withLock { $0 } } }
        func step(_ by: UInt64) { seconds.withLock { $0 += by } }
    }

    /// Makes a session, and returns its ticket.
    private func session(
        _ client: TLSContext, _ server: TLSContext, _ ticket: TLSTicket? = nil, name: String = "localhost"
    ) throws -> (isResumed: Bool, ticket: TLSTicket?, peer: TLSPeer?) {
        let pair = try SessionPair(client, server, name: name, ticket: ticket)
        pair.exchange()
        expect(pair.isOpen, "\(String(describing: pair.clientError)) \(String(describing: pair.serverError))")
        // Tickets of TLS 1.3 come after the handshake.
        try sendAll([1], pair.server, pair)
        expectEqual(pair.client.handshake?.isResumed, pair.server.handshake?.isResumed)
        return (pair.server.handshake?.isResumed == true, pair.client.ticket(), pair.server.handshake?.peer)
    }

    @Test
    func `A ticket resumes a session for an hour and more, and not after its key is gone`() throws {
        let clock = Clock()
        let keys = TicketKeys(now: clock.now)
        let (client, server) = (try site.client(), try site.server(tickets: keys))
        let first = try session(client, server)
        expect(!first.isResumed)
        try expect(session(client, server, first.ticket).isResumed)
        // The key is no longer used for new tickets, and still opens the old ones.
        clock.step(3700)
        let second = try session(client, server, first.ticket)
        expect(second.isResumed)
        clock.step(3600)
        try expect(!session(client, server, first.ticket).isResumed)
        try expect(session(client, server, second.ticket).isResumed)
    }

    @Test
    func `Tickets survive a reload of the certificate, and not another server's keys or another name`() throws {
        let keys = TicketKeys(now: { 0 })
        let client = try site.client()
        let ticket = try session(client, site.server(tickets: keys)).ticket
        let renewed = site.authority.issue(["DNS:localhost", "DNS:a.example.test"])
        let reloaded = try site.server(tickets: keys) { $0.credential = credential(renewed) }
        try expect(session(client, reloaded, ticket).isResumed)
        try expect(!session(client, reloaded, ticket, name: "a.example.test").isResumed)
        try expect(!session(client, site.server(), ticket).isResumed)
    }

    @Test
    func `A ticket is ignored where certificates are required, and where other authorities are trusted`() throws {
        let keys = TicketKeys(now: { 0 })
        let authority = TestAuthority("Clients")
        func server(isRequired: Bool) throws -> TLSContext {
            try site.server(tickets: keys) {
                $0.clients = TLSClientVerification(authorities: authority.certificate, isRequired: isRequired)
            }
        }
        let client = try site.client()
        let ticket = try session(client, server(isRequired: false)).ticket
        try expect(session(client, server(isRequired: false), ticket).isResumed)
        let pair = try SessionPair(client, server(isRequired: true), ticket: ticket)
        pair.exchange()
        expectEqual(pair.serverError?.kind, .untrustedPeer)

        let stranger = try site.client { $0.authorities = .certificates(authority.certificate) }
        let other = try SessionPair(stranger, server(isRequired: false), ticket: ticket)
        other.exchange()
        expectEqual(other.clientError?.kind, .untrustedPeer)
    }

    @Test
    func `Tickets keep the client's names, and are void when authorities or revocation lists change`() throws {
        let keys = TicketKeys(now: { 0 })
        let authority = TestAuthority("Clients")
        let certificate = authority.issue(["URI:urn:job"])
        let client = try site.client { $0.credential = credential(certificate) }
        func server(_ authorities: [UInt8]?, _ lists: [UInt8]? = nil) throws -> TLSContext {
            try site.server(tickets: keys) { settings in
                settings.clients = authorities.map { TLSClientVerification(authorities: $0, revocationLists: lists) }
            }
        }
        let first = try session(client, server(authority.certificate))
        let again = try session(client, server(authority.certificate), first.ticket)
        expect(again.isResumed)
        expectEqual(again.peer, TLSPeer(uris: ["urn:job"]))

        let more = authority.certificate + TestAuthority("More").certificate
        try expect(!session(client, server(more), first.ticket).isResumed)
        try expect(
            !session(client, server(authority.certificate, authority.revocationList([])), first.ticket).isResumed)
        try expect(!session(client, server(nil), first.ticket).isResumed)
    }

    @Test
    func `A ticket does not outlive the client's certificate`() async throws {
        let keys = TicketKeys(now: { 0 })
        let authority = TestAuthority("Clients")
        let certificate = authority.issue(["URI:urn:job"], valid: -60...2)
        let client = try site.client { $0.credential = credential(certificate) }
        let server = try site.server(tickets: keys) {
            $0.clients = TLSClientVerification(authorities: authority.certificate)
        }
        let ticket = try session(client, server).ticket
        try await eventually("the certificate has expired") {
            let pair = try SessionPair(client, server, ticket: ticket)
            pair.exchange()
            return pair.serverError?.reason.contains("expired") == true && pair.server.handshake == nil
        }
    }
}
