// WebChannel over sockets: what a page's SDK does, request by request, and what a bad page may try.

import AuthorizationTestSupport
import Basics
import ConnectionTestSupport
import FirestoreMessages
import FirestoreService
import Server
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct WebChannelTests {
    private static let database = "projects/p/databases/d"

    @Test func `A page writes through a session`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        let opened = try page.open()
        expectEqual(opened.status, 200)
        expectEqual(opened.headers["content-type"], "text/plain; charset=utf-8")
        expectEqual(opened.body, "60\n[[0,[\"c\",\"\(page.id)\",\"\",8,12,30000]]]")
        expectEqual(page.id.count, 32)
        let head = try page.listen()
        expect(head.status == 200 && head.headers["transfer-encoding"] == "chunked")
        expectEqual(head.headers["x-content-type-options"], "nosniff")
        expectEqual(head.headers["cache-control"], "private, max-age=0")
        try expect(page.frame(with: "streamId").contains("[[1,[{\"streamId\":"))
        for number in 0..<20 {
            try expect(page.set("c/\(number)").contains("\n[1,"))
            try expect(page.frame(with: "commitTime").contains("writeResults"))
        }
        expectEqual(page.request("POST", "&SID=\(page.id)&RID=9&TYPE=terminate", body: "")?.status, 200)
        try expectEqual(page.frame(), "")
        let after = try #require(page.request("POST", "&SID=\(page.id)&RID=9", body: "count=0"))
        expect(after.status == 400 && after.body == "Unknown SID")
        try waitUntil("the call has ended") { live.gateway.totals["streams_open"] == 0 }
    }

    @Test func `A message that is read in several shares of the loop keeps its place before the next one`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        _ = try page.open()
        _ = try page.listen()
        try expect(page.frame(with: "streamId").contains("[[1,[{\"streamId\":"))
        let numbers = Array(repeating: "{\"integerValue\":7}", count: 20_000).joined(separator: ",")
        let name = "\(Self.database)/documents/c/large"
        let fields = "{\"a\":{\"arrayValue\":{\"values\":[\(numbers)]}}}"
        _ = try page.send("{\"writes\":[{\"update\":{\"name\":\"\(name)\",\"fields\":\(fields)}}]}")
        // Only after the first one the document is there.
        _ = try page.send("{\"writes\":[{\"delete\":\"\(name)\",\"currentDocument\":{\"exists\":true}}]}")
        for _ in 0..<2 { try expect(page.frame(with: "commitTime").contains("writeResults")) }
        let document = "/v1/projects/p/databases/d/documents/c/large"
        expectEqual(HTTPTestClient(port: page.port).request("GET", document)?.status, 404)
    }

    @Test func `A long poll ends with its first frame`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        _ = try page.open()
        _ = try page.listen("&CI=1")
        try expect(page.frame().hasPrefix("[[1,[{\"streamId\""))
        try expectEqual(page.frame(), "")
        page.acknowledge(1)
        try expect(page.set("c/a").contains("\n[0,1,0]"))
        _ = try page.listen("&CI=1")
        try expect(page.frame(with: "commitTime").hasPrefix("[[2,"))
        page.acknowledge(2)
        _ = try page.listen("&CI=1&TO=20")
        try expectEqual(page.frame(), "[[3,[\"noop\"]]]")
        try expectEqual(page.frame(), "")
    }

    @Test func `What a broken connection lost is sent again`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        _ = try page.open()
        _ = try page.listen()
        let first = try page.frame(with: "streamId")
        page.cut()
        _ = try page.listen()
        try expect(page.frame().hasPrefix(String(first.dropLast())))
    }

    @Test func `A second back channel ends the first`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        let other = WebPage(live)
        _ = try page.open()
        _ = try page.listen()
        _ = try page.frame(with: "streamId")
        let query = "&RID=rpc&SID=\(page.id)&AID=0&CI=1"
        expectEqual(other.request("GET", query)?.body.contains("streamId"), true)
        try expectEqual(page.frame(), "")
    }

    @Test func `A back channel that another one replaces keeps nothing for a client that does not read`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        _ = try page.open()
        let client = HTTP2Client(port: live.gateway.port, settings: [(4, 0)])
        let streams = try (0..<2).map { _ in
            let stream = client.newStream()
            let path = WebPage.write + "&RID=rpc&SID=\(page.id)&AID=0&CI=0"
            let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", path)]
            client.send(.headers(fields, stream: stream, endStream: true))
            client.ping()
            // The session gives its back channel what it has after each message of the page.
            for _ in 0..<1_000 { if try page.set("c/a").contains("\n[1,") { break } }
            return stream
        }
        func text(_ stream: UInt32) -> String {
            String(decoding: client.transcript.answers[stream]?.data ?? [], as: UTF8.self)
        }
        client.send(.window(100_000, stream: streams[1]))
        expect(client.read { _ in text(streams[1]).contains("streamId") })
        client.send(.window(100_000, stream: streams[0]))
        expect(client.answer(streams[0]).isEnded && text(streams[0]) == "")
    }

    @Test func `A repeated message counts once`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        _ = try page.open()
        _ = try page.listen()
        let name = "\(Self.database)/documents/c/a"
        let increment = "{\"fieldPath\":\"n\",\"increment\":{\"integerValue\":\"1\"}}"
        let message = "{\"writes\":[{\"transform\":{\"document\":\"\(name)\",\"fieldTransforms\":[\(increment)]}}]}"
        _ = try page.send(message, times: 5)
        try expect(page.frame(with: "commitTime").contains("\"integerValue\":\"1\""))
        _ = try page.send(message)
        try expect(page.frame(with: "commitTime").contains("\"integerValue\":\"2\""))
    }

    @Test func `A failure of the stream is the last array`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        _ = try page.open()
        _ = try page.listen()
        _ = try page.set("c/none", mask: ",\"currentDocument\":{\"exists\":true}")
        let frame = try page.frame(with: "error")
        expect(frame.contains("\"status\": \"NOT_FOUND\"") && frame.contains("No document to update"))
        try expectEqual(page.frame(), "")
    }

    @Test(arguments: ["{", "[]", "{\"nonsense\":1}", "\"x\"", "{\"database\":5}", ""])
    func `A message that cannot be read fails the stream`(json: String) throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        _ = try page.open("count=1&ofs=0&req0___data__=\(json)")
        _ = try page.listen()
        try expect(page.frame(with: "error").contains("INVALID_ARGUMENT"))
    }

    @Test func `A session belongs to the user and the database of its first request`() throws {
        let live = try LiveDatabaseServer {
            $0.authorization = try? TestAuthorization.make("match /{p=**} { allow read, write; }")
        }
        let first = "&database=projects%2Fp%2Fdatabases%2Fd"
        let (alice, bob) = (TestAuthorization.user("alice"), TestAuthorization.user("bob"))
        let next = TestAuthorization.user("alice", claims: "\"next\":1")
        let elsewhere = TestAuthorization.user("alice", claims: "\"iss\":\"other\"")
        func request(_ method: String, _ query: String, _ user: String?, body: String? = nil) -> HTTPTestClient.Reply? {
            HTTPTestClient(port: Int(live.gateway.port)).request(
                method, WebPage.write + query, body: body, headers: user.map { ["Authorization: \($0)"] } ?? [])
        }
        let opened = try #require(request("POST", "&RID=1" + first, alice, body: "count=0"))
        let id = opened.body.split(separator: "\"").dropFirst(3).first.map(String.init) ?? ""
        let session = "&SID=\(id)&RID=2"
        for user in [nil, alice, next] {
            expectEqual(request("POST", session, user, body: "count=0")?.status, 200)
            expectEqual(request("POST", session + first, user, body: "count=0")?.status, 200)
        }
        for user in [bob, elsewhere, "Bearer owner", "Bearer a.b.c", "Basic eA=="] {
            let refused = try #require(request("POST", session + first, user, body: "count=0"))
            expect(refused.status == 400 && refused.body == "Unknown SID", "\(user)")
            expectEqual(request("GET", "&SID=\(id)&RID=rpc&AID=0&CI=1&TO=10", user)?.status, 400)
            expectEqual(request("POST", "&SID=\(id)&TYPE=terminate", user, body: "")?.status, 400)
        }
        for database in ["projects%2Fp%2Fdatabases%2Fe", "x"] {
            let refused = try #require(request("POST", session + "&database=\(database)", alice, body: "count=0"))
            expect(refused.status == 400 && refused.body == "Unknown SID", "\(database)")
        }
        // None of that has ended it.
        expectEqual(request("POST", session, alice, body: "count=0")?.status, 200)
    }

    @Test func `A session without a user takes no token later`() throws {
        let live = try LiveDatabaseServer {
            $0.authorization = try? TestAuthorization.make("match /{p=**} { allow read, write; }")
        }
        let page = WebPage(live)
        _ = try page.open()
        func status(_ headers: [String]) -> Int? {
            HTTPTestClient(port: page.port).request(
                "POST", WebPage.write + "&SID=\(page.id)&RID=2", body: "count=0", headers: headers)?.status
        }
        expectEqual(status(["Authorization: \(TestAuthorization.user("alice"))"]), 400)
        expectEqual(status([]), 200)
    }

    @Test func `The database may be in the URL only, and the first message may come later`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        let encoded = "projects%2Fp%2Fdatabases%2Fd"
        let opened = try #require(page.request("POST", "&RID=1&database=\(encoded)", body: "count=0"))
        expectEqual(opened.status, 200)
        let id = String(opened.body.split(separator: "\"")[3])
        expectEqual(page.request("GET", "&SID=\(id)&RID=rpc&AID=0&CI=1&TO=10")?.body.contains("noop"), true)
        let first = page.request("POST", "&SID=\(id)&RID=2&AID=1", body: "count=1&ofs=0&req0___data__={}")
        expectEqual(first?.status, 200)
        expectEqual(page.request("GET", "&SID=\(id)&RID=rpc&AID=1&CI=1")?.body.contains("streamId"), true)
    }

    @Test func `Responses may be read by pages of allowed origins`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        for reply in [try page.open(), try #require(page.request("GET", "&SID=unknown&RID=rpc&AID=0"))] {
            expectEqual(reply.headers["access-control-allow-origin"], "http://localhost:3000")
            expectEqual(reply.headers["access-control-allow-credentials"], "true")
            expectEqual(reply.headers["access-control-expose-headers"]?.contains("x-client-wire-protocol"), true)
            expectEqual(reply.headers["vary"], "Origin")
        }
        let foreign = HTTPTestClient(port: page.port)
        let refused = foreign.request("POST", WebPage.write, body: "count=0", headers: ["Origin: https://evil.example"])
        expectEqual(refused?.status, 403)
    }

    @Test func `Six back channels of one browser end in turn and continue where they were`() throws {
        let live = try LiveDatabaseServer()
        let pages = (0..<6).map { _ in WebPage(live) }
        for page in pages { _ = try page.open() }
        for page in pages {
            _ = try page.listen()
            try expect(page.frame().hasPrefix("[[1,[{\"streamId\""))
            page.acknowledge(1)
        }
        for last in [1, 3] {
            for page in pages {
                try expectEqual(page.frame(), "")
                _ = try page.listen()
                try expectEqual(page.frame(), "[[\(last + 1),[\"noop\"]]]")
                _ = try page.set("c/\(last)")
                try expect(page.frame(with: "commitTime").hasPrefix("[[\(last + 2),"))
                page.acknowledge(last + 2)
            }
        }
    }

    @Test func `Long polls of a browser that holds six end with a no-op`() throws {
        let live = try LiveDatabaseServer()
        let pages = (0..<6).map { _ in WebPage(live) }
        for page in pages {
            _ = try page.open("count=0")
            page.ask("&CI=1")
        }
        for page in pages {
            _ = try page.head()
            try expectEqual(page.frame(), "[[1,[\"noop\"]]]")
            try expectEqual(page.frame(), "")
            page.acknowledge(1)
            page.ask("&CI=1")
        }
    }

    @Test func `Requests that are of no session are refused`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        _ = try page.open()
        expectEqual(page.request("GET", "&RID=rpc")?.status, 400)
        expectEqual(page.request("GET", "&SID=\(page.id)&RID=rpc&AID=77&CI=0")?.status, 400)
        expectEqual(page.request("POST", "&SID=\(page.id)&AID=77", body: "count=0")?.status, 400)
        expectEqual(page.request("POST", "&SID=\(page.id)&AID=0", body: "count=2")?.status, 400)
        expectEqual(page.request("PUT", "&SID=\(page.id)", body: "")?.status, 405)
        let http = HTTPTestClient(port: page.port)
        expectEqual(http.request("GET", "/google.firestore.v1.Firestore/Commit/channel?VER=8")?.status, 404)
        expectEqual(http.request("GET", "/google.firestore.v1.Firestore/Write")?.status, 404)
        let listen = "/google.firestore.v1.Firestore/Listen/channel?VER=8&SID=\(page.id)&RID=rpc&AID=0"
        expectEqual(http.request("GET", listen)?.status, 400)
    }

    @Test func `The token of a page comes in the first body or in its URL`() throws {
        let log = TestLog()
        let authorization = try TestAuthorization.make("match /none { allow get; }", log: log.log)
        let live = try LiveDatabaseServer { $0.authorization = authorization }
        let page = WebPage(live)
        let write = "{\"writes\":[{\"delete\":\"\(Self.database)/documents/c/a\"}]}"
        let message = "count=2&ofs=0&req0___data__={\"database\":\"\(Self.database)\"}&req1___data__=\(write)"
        func header(_ uid: String) -> String {
            "Authorization%3A" + TestAuthorization.user(uid).replacing(" ", with: "%20") + "%0D%0A"
        }
        _ = try page.open("headers=\(header("one"))x-goog-api-key%3Aa%0D%0A&" + message)
        let inQuery = "&RID=1&%24httpHeaders=\(header("two"))"
        expectEqual(page.request("POST", inQuery, body: message)?.status, 200)
        _ = try page.open(message)
        try waitUntil("all writes are judged") { log.lines.count { $0.contains("access_denied") } == 3 }
        for caller in ["one", "two", "anonymous"] {
            expectEqual(log.lines.count { $0.contains("caller=\(caller) ") }, 1, "\(caller)")
        }
        let forbidden = page.request("POST", "&RID=1", body: "headers=Host%3Aevil%0D%0A&count=0")
        expectEqual(forbidden?.status, 400)
    }

    @Test func `Sessions are bounded in number and end when their pages are gone`() throws {
        let live = try LiveDatabaseServer {
            $0.webChannel.sessionsMax = 2
            $0.webChannel.idleMilliseconds = 200
        }
        let page = WebPage(live)
        _ = try page.open()
        _ = try WebPage(live).open()
        let third = page.request("POST", "&RID=1", body: "count=0")
        expectEqual(third?.status, 429)
        try waitUntil("the sessions have expired") { live.gateway.totals["streams_open"] == 0 }
        try expectEqual(WebPage(live).open().status, 200)
    }

    @Test func `A page whose connection closes is noticed`() throws {
        let live = try LiveDatabaseServer { $0.webChannel.idleMilliseconds = 200 }
        let page = WebPage(live)
        _ = try page.open()
        _ = try page.listen()
        _ = try page.frame(with: "streamId")
        expectEqual(live.gateway.totals["streams_open"], 1)
        page.cut()
        try waitUntil("the session has expired") { live.gateway.totals["streams_open"] == 0 }
    }

    @Test func `A page that writes and does not read is bounded`() throws {
        let live = try LiveDatabaseServer {
            $0.webChannel.unacknowledgedBytesMax = 16 << 10
            $0.webChannel.waitingMessagesMax = 20
        }
        let page = WebPage(live)
        _ = try page.open()
        // Its responses fill the session; then the stream stops it, and its messages wait; then there are too many.
        for number in 0..<400 { _ = try page.set("c/\(number)") }
        _ = try page.listen()
        try expect(page.frame(with: "error").contains("RESOURCE_EXHAUSTED"))
        try expectEqual(page.frame(), "")
    }

    @Test func `All sessions together are bounded in bytes`() throws {
        let live = try LiveDatabaseServer { $0.webChannel.bytesTotalMax = 5_000 }
        let page = WebPage(live)
        _ = try page.open()
        _ = try page.listen()
        for number in 0..<200 {
            let reply = page.request(
                "POST", "&SID=\(page.id)&RID=2",
                body: "count=1&ofs=\(number + 2)&req0___data__=\(String(repeating: "x", count: 200))")
            if reply?.status == 400 { break }
        }
        try expect(page.frame(with: "error").contains("RESOURCE_EXHAUSTED"))
    }

    @Test func `A server that drains ends the streams and their back channels`() throws {
        let live = try LiveDatabaseServer()
        let page = WebPage(live)
        let waiting = WebPage(live)
        _ = try page.open()
        _ = try page.listen()
        _ = try waiting.open("count=0")
        _ = try waiting.listen()
        _ = try page.frame(with: "streamId")
        live.stop()
        try expect(page.frame(with: "error").contains("UNAVAILABLE"))
        try expectEqual(page.frame(), "")
        try expect(waiting.frame(with: "error").contains("UNAVAILABLE"))
        try expectEqual(waiting.frame(), "")
    }
}
