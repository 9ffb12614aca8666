// Who calls, as a policy sees it over each protocol, and what a policy decides about resets.

import Basics
import DocumentModel
import FirestoreMessages
import FirestoreService
import Server
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct AccessTests {
    /// Notes who asked, and permits all but resets by others than `owner`.
    private final class Witness: AccessPolicy {
        let seen = Mutex<[Principal]>([])

        func check(_ method: FirestoreMessages.Method, on resource: RawSpan, by principal: Principal)
            throws(RequestError)
        {
            seen.withLock { $0.append(principal) }
        }

        func checkReset(of database: RawSpan, by principal: Principal) throws(RequestError) {
            seen.withLock { $0.append(principal) }
            if principal != .bearer("owner") {
                throw RequestError(.permissionDenied, "\(String(repairingUTF8: database)) stays.")
            }
        }
    }

    /// Says nothing about resets.
    private struct Silent: AccessPolicy {
        func check(_ method: FirestoreMessages.Method, on resource: RawSpan, by principal: Principal)
            throws(RequestError)
        {}
    }

    private let reset = "/emulator/v1/projects/p/databases/d/documents"

    @Test
    func `Callers are trusted over native frames, and show a token or nothing over HTTP`() throws {
        let witness = Witness()
        let live = try LiveDatabaseServer { $0.policy = witness }
        _ = live.call(.getDocument, GetDocumentRequest(name: Harness.name("c/x")).encodedBytes())
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let target = "/v1/projects/p/databases/d/documents/c/x"
        for header in ["authorization: Bearer owner", "Authorization: bearer a.b.c", "Authorization: Basic eA=="] {
            #expect(http.request("GET", target, headers: [header])?.status == 404)
        }
        #expect(http.request("GET", target)?.status == 404)
        // Where a page puts it so as to need no preflight; the header itself counts before it.
        let inQuery = target + "?$httpHeaders=Authorization:Bearer%20page%0D%0A"
        #expect(http.request("GET", inQuery)?.status == 404)
        #expect(http.request("GET", inQuery, headers: ["Authorization: Bearer owner"])?.status == 404)
        #expect(
            witness.seen.withLock { $0 } == [
                .trusted, .bearer("owner"), .bearer("a.b.c"), .anonymous, .anonymous, .bearer("page"), .bearer("owner"),
            ])
    }

    @Test
    func `A reset asks the policy, which permits none by default`() throws {
        let live = try LiveDatabaseServer {
            $0.policy = Witness()
            $0.http.emulatorEndpoints = true
        }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let refused = try #require(http.request("DELETE", reset))
        #expect(refused.status == 403 && refused.body.contains("projects/p/databases/d stays."))
        #expect(http.request("DELETE", reset, headers: ["Authorization: Bearer owner"])?.status == 200)
        let silent = try LiveDatabaseServer {
            $0.policy = Silent()
            $0.http.emulatorEndpoints = true
        }
        #expect(HTTPTestClient(port: Int(silent.gateway.port)).request("DELETE", reset)?.status == 403)
    }

    @Test
    func `A server that is bound to loopback answers to this machine's names`() throws {
        let live = try LiveDatabaseServer { $0.http.allowedHosts = .local(and: ["hearth"]) }
        func status(_ host: String) -> Int? {
            let client = HTTPTestClient(port: Int(live.gateway.port))
            client.send("GET /livez HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            return client.reply()?.status
        }
        for host in [
            "localhost", "localhost:8080", "LocalHost", "127.0.0.1:1", "127.1.2.3", "[::1]:8080", "db.localhost",
            "hearth:8080",
        ] {
            #expect(status(host) == 200, "\(host)")
        }
        for host in [
            "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[::2]", "10.0.0.1", "hearth.example",
            "localhost:x",
        ] {
            #expect(status(host) == 403, "\(host)")
        }
        let old = HTTPTestClient(port: Int(live.gateway.port))
        old.send("GET /livez HTTP/1.0\r\n\r\n")
        #expect(old.reply()?.status == 200)
    }

    @Test
    func `Names are any, local, or a list without ports`() {
        #expect(AllowedHosts("any") == .any && AllowedHosts("any")?.contains("evil.example") == true)
        #expect(AllowedHosts("local") == .local(and: []))
        #expect(AllowedHosts("Hearth,db.example.org") == .local(and: ["hearth", "db.example.org"]))
        for text in ["", "a,", "a:80", "http://a", "a b"] { #expect(AllowedHosts(text) == nil, "\(text)") }
    }
}
