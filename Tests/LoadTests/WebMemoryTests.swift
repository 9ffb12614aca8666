// The memory of a server whose web pages have gone: what it counts, and what it keeps afterwards.

import Foundation
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct WebMemoryTests {
    private static let sessions = 600
    private static let database = "projects/load/databases/(default)"

    @Test
    func `Sessions count what they hold to within 20 %, and a burst of them leaves little`() throws {
        let fixture = try LoadFixture(["--automatic-indexes", "off", "--web-session-idle", "1h"])
        let client = HTTPTestClient(port: fixture.server.port)
        try fill(client)
        // The first session makes what all share.
        var open = [try openSession(client, 0)]
        let before = try fixture.metric("process_anonymous_memory_bytes")
        let countedBefore = try fixture.metric("hearth_web_session_bytes")
        for number in 1...Self.sessions { open.append(try openSession(client, number)) }
        var counted = 0
        try waitUntil("each session has read what it may hold") {
            let now = try fixture.metric("hearth_web_session_bytes") - countedBefore
            defer { counted = now }
            return now == counted && now > Self.sessions * (64 << 10)
        }
        let grown = try fixture.metric("process_anonymous_memory_bytes") - before
        expect(abs(grown - counted) <= grown / 5, "\(counted) bytes are counted, \(grown) are held")
        for session in open { try close(client, session) }
        try waitUntil("the memory is given back") {
            try fixture.metric("process_anonymous_memory_bytes") - before < grown / 4
        }
        try expectEqual(fixture.metric("hearth_web_session_bytes"), 0)
        try fixture.expectSoundEnd()
    }

    /// Documents of more bytes than a session may hold.
    private func fill(_ client: HTTPTestClient) throws {
        let text = String(repeating: "x", count: 500)
        let writes = (0..<400).map { number in
            """
            {"update":{"name":"\(Self.database)/documents/pages/\(number)","fields":{"text":{"stringValue":"\(text)"}}}}
            """
        }
        let reply = client.request(
            "POST", "/v1/\(Self.database)/documents:commit", body: "{\"writes\":[\(writes.joined(separator: ","))]}",
            headers: ["Content-Type: application/json"])
        expectEqual(reply?.status, 200)
    }

    /// Opens a session that listens to the collection, and never reads; its identifier.
    private func openSession(_ client: HTTPTestClient, _ number: Int) throws -> String {
        let request = """
            {"database":"\(Self.database)","addTarget":{"targetId":2,"query":{"parent":"\(Self.database)/documents",\
            "structuredQuery":{"from":[{"collectionId":"pages"}]}}}}
            """
        let body = "count=1&ofs=0&req0___data__=\(escaped(request))"
        let reply = client.request(
            "POST", "\(Self.path)?VER=8&database=\(escaped(Self.database))&RID=\(number + 1)&CVER=22&t=1", body: body,
            headers: ["Content-Type: application/x-www-form-urlencoded"])
        // 51\n[[0,["c","IDENTIFIER",...
        let parts = (reply?.body ?? "").split(separator: "\"")
        guard reply?.status == 200, parts.count > 3 else { throw LoadFailure("no session: \(reply?.body ?? "")") }
        return String(parts[3])
    }

    private func close(_ client: HTTPTestClient, _ session: String) throws {
        let reply = client.request("GET", "\(Self.path)?VER=8&SID=\(session)&RID=2&TYPE=terminate&t=1")
        expectEqual(reply?.status, 200)
    }

    private static let path = "/google.firestore.v1.Firestore/Listen/channel"

    private func escaped(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }
}
