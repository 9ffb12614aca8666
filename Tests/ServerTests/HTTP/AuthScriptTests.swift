// The reply of /hearth-auth.js. What the script does is tested in a browser: Tests/Interop/web.

import AuthorizationTestSupport
import Server
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct AuthScriptTests {
    private static let path = "/hearth-auth.js"

    @Test
    func `Everyone gets the script for web pages, from a closed server too`() throws {
        let authorization = try TestAuthorization.make(nil, mode: .closed, records: [])
        let live = try LiveDatabaseServer { $0.authorization = authorization }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let reply = try #require(http.request("GET", Self.path))
        expectEqual(reply.status, 200)
        expectEqual(reply.headers["content-type"], "text/javascript; charset=utf-8")
        expectEqual(reply.headers["cache-control"], "public, max-age=3600")
        expect(reply.body.contains("\nexport function provideTokens(app, getToken) {\n"))
        expectEqual(http.request("HEAD", Self.path)?.status, 200)
        expectEqual(http.request("POST", Self.path, body: "")?.status, 405)
    }

    @Test
    func `A page of an allowed origin may import the script, and another one may not`() throws {
        let live = try LiveDatabaseServer { $0.http.allowedOrigins = .listed(["https://app.example.org"]) }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let reply = http.request("GET", Self.path, headers: ["Origin: https://app.example.org"])
        expectEqual(reply?.status, 200)
        expectEqual(reply?.headers["access-control-allow-origin"], "https://app.example.org")
        expectEqual(reply?.headers["vary"], "Origin")
        expectEqual(http.request("GET", Self.path, headers: ["Origin: https://evil.example"])?.status, 403)
    }
}
