// Whose address counts, loopback and the log of refused calls included, when requests come through a proxy.

import AuthorizationTestSupport
import Basics
import Calls
import ConnectionTestSupport
import FirestoreMessages
import Identity
import Server
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct TrustedProxyTests {
    private static let document = "/v1/projects/p/databases/d/documents/c/x"
    private let log = TestLog()

    /// A server that takes the word of proxies at these addresses.
    private func live(_ proxies: [String], mode: SecurityMode = .closed) throws -> LiveDatabaseServer {
        let authorization = try TestAuthorization.make(nil, mode: mode, log: log.log)
        return try LiveDatabaseServer {
            $0.authorization = authorization
            $0.transport.trustedProxies = TrustedProxies(proxies.compactMap { NetworkRange($0) })
        }
    }

    /// The addresses in the lines about refused calls, without ports of loopback.
    private var peers: [String] {
        log.lines.filter { $0.contains("event=access_refused") }.map { line in
            let peer = line.split(separator: " ").first { $0.hasPrefix("peer=") }?.dropFirst("peer=".count) ?? ""
            return peer.hasPrefix("127.0.0.1:") ? "127.0.0.1" : String(peer)
        }
    }

    @Test func `A trusted proxy names the client, over HTTP1 and HTTP2, for each request of a connection`() throws {
        let live = try live(["127.0.0.0/8"])
        let http = HTTPTestClient(port: Int(live.gateway.port))
        for list in ["198.51.100.7, 192.0.2.1", "192.0.2.2,127.0.0.9", "unknown"] {
            expectEqual(http.request("GET", Self.document, headers: ["X-Forwarded-For: \(list)"])?.status, 401)
        }
        expectEqual(http.request("GET", Self.document, headers: ["Forwarded: for=192.0.2.3"])?.status, 401)
        expectEqual(http.request("GET", Self.document)?.status, 401)
        expectEqual(peers, ["192.0.2.1", "192.0.2.2", "127.0.0.1", "192.0.2.3", "127.0.0.1"])
        let grpc = HTTP2Client(port: live.gateway.port)
        let request = GetDocumentRequest(name: Harness.name("c/x")).encodedBytes()
        for fields in [[("x-forwarded-for", "192.0.2.4")], [("forwarded", "for=192.0.2.5")], []] {
            let stream = grpc.newStream()
            grpc.send(
                .request(FirestoreMessages.Method.getDocument.paths[0], stream: stream, fields: fields),
                .data(grpcMessage(request), stream: stream, endStream: true))
            expect(grpc.answer(stream).isEnded)
        }
        expectEqual(peers.suffix(3), ["192.0.2.4", "192.0.2.5", "127.0.0.1"])
        expect(!log.lines.contains { $0.contains("event=proxy_not_trusted") })
    }

    @Test func `What others say about their clients is not believed, and is noted once`() throws {
        let live = try live(["192.0.2.0/24"])
        let http = HTTPTestClient(port: Int(live.gateway.port))
        for _ in 0..<3 {
            expectEqual(http.request("GET", Self.document, headers: ["X-Forwarded-For: 192.0.2.1"])?.status, 401)
        }
        expectEqual(peers, ["127.0.0.1", "127.0.0.1", "127.0.0.1"])
        expectEqual(log.lines.filter { $0.contains("event=proxy_not_trusted") }.count, 1)
    }

    @Test func `A page cannot name a client by headers in its URL`() throws {
        let live = try live(["127.0.0.1"])
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let target = Self.document + "?%24httpHeaders=X-Forwarded-For%3A192.0.2.9%0D%0A"
        expectEqual(http.request("GET", target, headers: ["X-Forwarded-For: 192.0.2.1"])?.status, 401)
        expectEqual(peers, ["192.0.2.1"])
    }

    @Test func `Requests of a trusted proxy are not of this machine`() throws {
        for (proxies, status) in [([], 200), (["127.0.0.1"], 401)] {
            let live = try live(proxies)
            let http = HTTPTestClient(port: Int(live.gateway.port))
            expectEqual(http.request("GET", "/metrics")?.status, status)
            expectEqual(http.request("GET", "/metrics", headers: ["X-Forwarded-For: 127.0.0.1"])?.status, 401)
        }
    }

    @Test func `An open server refuses what a trusted proxy forwards`() throws {
        let live = try live(["127.0.0.1"], mode: .open)
        let http = HTTPTestClient(port: Int(live.gateway.port))
        expectEqual(http.request("GET", Self.document, headers: ["X-Forwarded-For: 127.0.0.1"])?.status, 403)
        expectEqual(http.request("GET", "/metrics", headers: ["Forwarded: for=127.0.0.1"])?.status, 403)
    }

    @Test func `Clients that use TLS up to a trusted proxy are asked to stay with it`() throws {
        for (proxies, expected) in [([], nil), (["127.0.0.1"], "max-age=60")] {
            let live = try LiveDatabaseServer {
                $0.transport.trustedProxies = TrustedProxies(proxies.compactMap { NetworkRange($0) })
                $0.http.hstsSeconds = 60
            }
            let http = HTTPTestClient(port: Int(live.gateway.port))
            func field(_ scheme: String) -> String? {
                http.request("GET", "/livez", headers: ["X-Forwarded-Proto: \(scheme)"])?
                    .headers["strict-transport-security"]
            }
            expectEqual(field("https"), expected)
            expectNil(field("http"))
        }
    }

    @Test func `Failed logins with one key slow it for all addresses but those where it has logged in`() throws {
        var list = PrincipalList()
        let grant = PrincipalList.Grant(role: .reader, scope: Scope(projects: ["p"]), bypassesRules: true)
        let (key, other) = (try list.addAPIKey(to: "a", grant, now: 1), try list.addAPIKey(to: "b", grant, now: 1))
        let authorization = try TestAuthorization.make(nil, mode: .closed, records: list.records)
        let live = try LiveDatabaseServer {
            $0.authorization = authorization
            $0.transport.trustedProxies = TrustedProxies([NetworkRange("127.0.0.1")].compactMap { $0 })
        }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        func status(_ key: String, _ client: String) -> Int? {
            let headers = ["Authorization: Bearer \(key)", "X-Forwarded-For: \(client)"]
            return http.request("GET", Self.document, headers: headers)?.status
        }
        expectEqual(status(key, "198.51.100.1"), 404)
        let guess = String(key.dropLast(8)) + "AAAAAAAA"
        for number in 1...6 { expectEqual(status(guess, "192.0.2.\(number)"), 401, "\(number)") }
        expectEqual(status(guess, "192.0.2.7"), 429)
        expectEqual(status(key, "198.51.100.2"), 429)
        expectEqual(status(key, "198.51.100.1"), 404)
        expectEqual(status(other, "198.51.100.2"), 404)
    }

    @Test func `Failed logins slow the client that a trusted proxy names, and no other`() throws {
        let live = try live(["127.0.0.1"])
        let http = HTTPTestClient(port: Int(live.gateway.port))
        func status(_ client: String) -> Int? {
            let guess = "Authorization: Bearer hearth_0123456789abcdef_\(String(repeating: "a", count: 43))"
            return http.request("GET", Self.document, headers: [guess, "X-Forwarded-For: \(client)"])?.status
        }
        for number in 1...6 { expectEqual(status("192.0.2.1"), 401, "\(number)") }
        expectEqual(status("192.0.2.1"), 429)
        expectEqual(status("10.9.9.9, 192.0.2.1"), 429)
        expectEqual(status("192.0.2.2"), 401)
    }
}
