// Who reads metrics and the state of health: on the main port, and on a port for observation.

import AuthorizationTestSupport
import Basics
import FirestoreMessages
import Identity
import NativeProtocol
import ServiceTestSupport
import TestSupport
import Testing

@testable import Server

@Suite(.timeLimit(.minutes(20))) struct ObservationPortTests {
    private static let document = "/v1/projects/p/databases/d/documents/c/x"
    private static let proxied = "X-Forwarded-For: 192.0.2.1"

    /// A closed server with an admin.
    private func closed(
        _ change: (inout DatabaseServerConfiguration) -> Void = { _ in }
    ) throws -> (live: LiveDatabaseServer, key: String) {
        var list = PrincipalList()
        let key = try list.addAPIKey(
            to: "root", PrincipalList.Grant(role: .admin, scope: Scope(projects: nil)), now: 1)
        let authorization = try TestAuthorization.make(nil, mode: .closed, records: list.records)
        let live = try LiveDatabaseServer {
            $0.authorization = authorization
            change(&$0)
        }
        return (live, "Authorization: Bearer \(key)")
    }

    @Test func `With a port for observation, metrics are there and not at the main port`() throws {
        let (live, key) = try closed { $0.observation = ObservationOptions(host: "127.0.0.1", port: 0) }
        let main = HTTPTestClient(port: Int(live.gateway.port))
        let side = HTTPTestClient(port: Int(try #require(live.gateway.observationPort)))
        expect(live.gateway.observationPort != live.gateway.port)
        // The connections that are counted are those of the main port.
        expectEqual(main.request("GET", "/livez")?.status, 200)
        for headers in [[], [Self.proxied]] {
            let page = try #require(side.request("GET", "/metrics", headers: headers))
            expect(page.status == 200 && page.body.contains("\nhearth_connections_open{protocol=\"http1\"} 1\n"))
        }
        for page in ["/", "/livez", "/readyz"] {
            expectEqual(side.request("GET", page)?.status, 200, "\(page)")
            expectEqual(main.request("GET", page)?.status, 200, "\(page)")
        }
        for headers in [[], [key]] {
            let gone = try #require(main.request("GET", "/metrics", headers: headers))
            expect(gone.status == 404 && gone.body.contains("--metrics-address"))
        }
    }

    @Test func `A port for observation has nothing else, whatever the credential`() throws {
        let (live, key) = try closed {
            $0.observation = ObservationOptions(host: "127.0.0.1", port: 0, allowedHosts: .local(and: []))
            $0.http.emulatorEndpoints = true
        }
        let port = try #require(live.gateway.observationPort)
        let side = HTTPTestClient(port: Int(port))
        let none = [
            Self.document, "/hearth-auth.js", "/token", "/emulator/v1/projects/p:securityRules", "/livez/",
            "/google.firestore.v1.Firestore/Listen/channel?VER=8",
        ]
        for path in none { expectEqual(side.request("GET", path, headers: [key])?.status, 404, "\(path)") }
        expectEqual(side.request("POST", "/metrics", body: "x")?.status, 405)
        expectEqual(side.request("GET", "/metrics", headers: ["Origin: https://evil.example"])?.status, 403)
        side.send("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        expectEqual(side.reply()?.status, 403)
        let native = live.connect(to: port)
        defer { native.close() }
        let request = GetDocumentRequest(name: Harness.name("c/x")).encodedBytes()
        expectEqual(live.call(.getDocument, request, on: native).outcome.code, .unimplemented)
        expectEqual(live.call(.adminListRules, [], on: native).outcome.code, .unimplemented)
        expectEqual(live.call(.healthCheck, [], on: native).outcome.code, .ok)
    }

    @Test func `A port that is taken ends the start`() throws {
        let taken = try LiveDatabaseServer()
        #expect(throws: (any Error).self) {
            _ = try LiveDatabaseServer {
                $0.observation = ObservationOptions(host: "127.0.0.1", port: taken.gateway.port)
            }
        }
    }

    @Test func `Only observers read why a server takes no work`() throws {
        let (live, key) = try closed {
            $0.store.engine.runBytesMax = 1 << 20
            $0.store.engine.memtableBytesMax = 128 << 10
        }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let value = String(repeating: "a", count: 60_000)
        let body = "{\"fields\":{\"a\":{\"stringValue\":\"\(value)\"}}}"
        func write(_ number: Int) -> Int? {
            let path = "/v1/projects/p/databases/d/documents/c/d\(number)"
            return http.request("PATCH", path, body: body, headers: [key])?.status
        }
        var number = 0
        while write(number) == 200, number < 1_000 { number += 1 }
        expectEqual(write(number), 429)
        let here = try #require(http.request("GET", "/readyz"))
        expect(here.status == 503 && here.body.hasPrefix("not ready: the disk is full"))
        let elsewhere = try #require(http.request("GET", "/readyz", headers: [Self.proxied]))
        expect(elsewhere.status == 503 && elsewhere.body == "not ready\n")
        let wrong = try #require(http.request("GET", "/readyz", headers: [Self.proxied, key + "x"]))
        expect(wrong.status == 503 && wrong.body == "not ready\n")
        let admin = try #require(http.request("GET", "/readyz", headers: [Self.proxied, key]))
        expect(admin.body.hasPrefix("not ready: the disk is full"))
    }
}
