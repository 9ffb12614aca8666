// REST, the pages and the emulator's reset, against a real server process.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RESTTests {
    private static let root = "/v1/projects/p/databases/(default)/documents"
    private static let names = "projects/p/databases/(default)/documents"

    private let directory = TemporaryDirectory("rest")
    private let server: ServerProcess
    private let client: HTTPTestClient

    init() throws {
        server = try ServerProcess(data: directory.path(of: "data"), arguments: ["--loops", "2"])
        client = HTTPTestClient(port: server.port)
    }

    /// The reply's body as JSON: a dictionary, or an array of them.
    private func send(_ method: String, _ target: String, _ body: String? = nil, status: Int = 200) throws -> Any {
        let reply = try #require(client.request(method, target, body: body))
        expectEqual(reply.status, status, "\(method) \(target): \(reply.body)")
        expectEqual(reply.headers["content-type"], "application/json; charset=utf-8")
        return try JSONSerialization.jsonObject(with: Data(reply.body.utf8))
    }

    private func error(_ method: String, _ target: String, _ body: String? = nil, status: Int) throws -> String {
        let all = try send(method, target, body, status: status)
        let object = all as? [String: Any] ?? (all as? [[String: Any]])?.first
        let error = try #require(object?["error"] as? [String: Any])
        expect(error["code"] as? Int == status)
        return try #require(error["status"] as? String)
    }

    private static let everyType = #"""
        {"a":{"arrayValue":{"values":[{"integerValue":"1"},{"nullValue":null}]}},"b":{"bytesValue":"AAEC/w=="},
        "d":{"doubleValue":-0.5},"g":{"geoPointValue":{"latitude":1.5,"longitude":-2.25}},
        "i":{"integerValue":"-9223372036854775808"},"m":{"mapValue":{"fields":{"x":{"booleanValue":false}}}},
        "n":{"doubleValue":"NaN"},"r":{"referenceValue":"projects/p/databases/(default)/documents/c/d"},
        "s":{"stringValue":"é\" \\ \u0001😀"},"t":{"timestampValue":"2020-02-29T12:00:00.123456Z"},
        "z":{"nullValue":null}}
        """#

    @Test
    func `A document of every type goes in, out, is changed in part and is deleted`() throws {
        let fields = try #require(try JSONSerialization.jsonObject(with: Data(Self.everyType.utf8)) as? NSDictionary)
        let created = try #require(
            try send("POST", "\(Self.root)/c?documentId=d", #"{"fields":\#(Self.everyType)}"#) as? [String: Any])
        expect(created["name"] as? String == "\(Self.names)/c/d")
        expect(created["fields"] as? NSDictionary == fields)
        expect(created["createTime"] as? String == created["updateTime"] as? String)
        let read = try #require(try send("GET", "\(Self.root)/c/d") as? NSDictionary)
        expect(read == created as NSDictionary)
        try expectEqual(error("POST", "\(Self.root)/c?documentId=d", "{}", status: 409), "ALREADY_EXISTS")

        let mask = "updateMask.fieldPaths=s&updateMask.fieldPaths=a&mask.fieldPaths=s"
        let changed = try #require(
            try send(
                "PATCH", "\(Self.root)/c/d?\(mask)&currentDocument.exists=true",
                #"{"fields":{"s":{"stringValue":"new"}}}"#) as? [String: Any])
        expect(changed["fields"] as? NSDictionary == ["s": ["stringValue": "new"]])
        let rest = try #require((try send("GET", "\(Self.root)/c/d") as? [String: Any])?["fields"] as? [String: Any])
        expect(rest["a"] == nil && rest.count == fields.count - 1)

        try expect(send("DELETE", "\(Self.root)/c/d") as? NSDictionary == [:])
        try expectEqual(error("GET", "\(Self.root)/c/d", status: 404), "NOT_FOUND")
        try expectEqual(error("PATCH", "\(Self.root)/c/d?currentDocument.exists=true", "{}", status: 404), "NOT_FOUND")
        try expectEqual(error("GET", "\(Self.root)/c/d?pagesize=1", status: 400), "INVALID_ARGUMENT")
        expectEqual(server.stop(), 0)
    }

    // Swift 6.3 released an array too early where it optimized: a release build ended on literals of 22 bytes.
    @Test
    func `Pipelines take literal strings and bytes of every length`() throws {
        _ = try send("PATCH", "\(Self.root)/c/d", #"{"fields":{"a":{"stringValue":"x"}}}"#)
        for length in 0...80 {
            let text = String(repeating: "y", count: length)
            let bytes = Data(text.utf8).base64EncodedString()
            func call(_ name: String, _ arguments: String) -> String {
                #"{"functionValue":{"name":"\#(name)","args":[\#(arguments)]}}"#
            }
            let joined = call("string_concat", #"{"fieldReferenceValue":"a"},{"stringValue":"\#(text)"}"#)
            let counted = call("byte_length", #"{"bytesValue":"\#(bytes)"}"#)
            let array = call("array", #"{"stringValue":"\#(text)"}"#)
            let element = call("array_get", #"\#(array),{"integerValue":"0"}"#)
            let reply = try send(
                "POST", "\(Self.root):executePipeline",
                #"{"structuredPipeline":{"pipeline":{"stages":[{"name":"collection","args":[{"referenceValue":"/c"}]},"#
                    + #"{"name":"select","args":[{"mapValue":{"fields":{"s":\#(joined),"b":\#(counted),"#
                    + #""e":\#(element)}}}]}]}}}"#)
            let row = ((reply as? [[String: Any]])?.first?["results"] as? [[String: Any]])?.first
            let expected: NSDictionary = [
                "s": ["stringValue": "x\(text)"], "b": ["integerValue": "\(length)"], "e": ["stringValue": text],
            ]
            expect(row?["fields"] as? NSDictionary == expected)
        }
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A long query is streamed in chunks`() throws {
        let text = String(repeating: "x", count: 2_000)
        for batch in 0..<4 {
            let writes = (0..<500).map {
                #"{"update":{"name":"\#(Self.names)/c/\#(batch)-\#($0)","fields":{"t":{"stringValue":"\#(text)"}}}}"#
            }
            _ = try send("POST", "\(Self.root):commit", #"{"writes":[\#(writes.joined(separator: ","))]}"#)
        }
        let reply = try #require(
            client.request(
                "POST", "\(Self.root):runQuery?prettyPrint=false",
                body: #"{"structuredQuery":{"from":[{"collectionId":"c"}]}}"#))
        expect(reply.status == 200 && reply.chunks.count >= 2_000)
        expectEqual((try JSONSerialization.jsonObject(with: Data(reply.body.utf8)) as? [Any])?.count, 2_000)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `The emulator's reset deletes one database, many documents and all`() throws {
        let other = "/v1/projects/p/databases/other/documents"
        _ = try send("POST", "\(other)/c?documentId=stays", "{}")
        for batch in 0..<3 {
            let writes = (0..<2_000).map {
                #"{"update":{"name":"\#(Self.names)/c/\#(batch)-\#($0)/below/x","fields":{}}}"#
            }
            _ = try send("POST", "\(Self.root):commit", #"{"writes":[\#(writes.joined(separator: ","))]}"#)
        }
        let count =
            #"{"structuredAggregationQuery":{"structuredQuery":"#
            + #"{"from":[{"collectionId":"below","allDescendants":true}]},"aggregations":[{"alias":"n","count":{}}]}}"#
        func remaining() throws -> NSDictionary? {
            let totals = try send("POST", "\(Self.root):runAggregationQuery", count) as? [[String: Any]]
            return (totals?[0]["result"] as? NSDictionary)?["aggregateFields"] as? NSDictionary
        }
        try expectEqual(remaining(), ["n": ["integerValue": "6000"]])
        try expect(send("DELETE", "/emulator/v1/projects/p/databases/(default)/documents") as? NSDictionary == [:])
        try expectEqual(remaining(), ["n": ["integerValue": "0"]])
        _ = try send("GET", "\(other)/c/stays")
        try expect(send("DELETE", "/emulator/v1/projects/p/databases/(default)/documents") as? NSDictionary == [:])
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A reset is refused where it is switched off`() throws {
        expectEqual(server.stop(), 0)
        let guarded = try ServerProcess(
            data: directory.path(of: "guarded"), arguments: ["--emulator-endpoints", "off"])
        let reply = HTTPTestClient(port: guarded.port).request(
            "DELETE", "/emulator/v1/projects/p/databases/d/documents")
        expect(reply?.status == 403 && reply?.body.contains("--emulator-endpoints") == true)
        expectEqual(guarded.stop(), 0)
    }

    @Test
    func `Pages of this machine may call, those of others may not`() throws {
        let local = try #require(client.request("GET", "\(Self.root)/c", headers: ["Origin: http://localhost:3000"]))
        expect(local.status == 200 && local.headers["access-control-allow-origin"] == "http://localhost:3000")
        let asked = try #require(
            client.request(
                "OPTIONS", "\(Self.root):commit",
                headers: [
                    "Origin: http://localhost:3000", "Access-Control-Request-Method: POST",
                    "Access-Control-Request-Headers: x-a, authorization",
                ]))
        expect(asked.status == 204 && asked.headers["access-control-allow-headers"] == "x-a, authorization")
        expectEqual(asked.headers["access-control-allow-methods"]?.contains("PATCH"), true)
        let foreign = try #require(
            client.request("POST", "\(Self.root):commit", body: "{}", headers: ["Origin: https://example.org"]))
        expectEqual(foreign.status, 403)
        // The page sees why, and its credentials do not count.
        expectEqual(foreign.headers["access-control-allow-origin"], "https://example.org")
        expectNil(foreign.headers["access-control-allow-credentials"])
        expectEqual(server.stop(), 0)
    }

    @Test
    func `A page's credentials are allowed, and refusals can be read too`() throws {
        let origin = "http://localhost:3000"
        let document = "\(Self.root)/c/missing"
        let asked = client.request(
            "OPTIONS", document, headers: ["Origin: \(origin)", "Access-Control-Request-Method: GET"])
        let missing = client.request("GET", document, headers: ["Origin: \(origin)"])
        let nowhere = client.request("GET", "/nowhere", headers: ["Origin: \(origin)"])
        let otherHost = HTTPTestClient(port: server.port)
        otherHost.send("GET / HTTP/1.1\r\nHost: evil.example\r\nOrigin: \(origin)\r\n\r\n")
        let tooLarge = HTTPTestClient(port: server.port)
        tooLarge.send(
            "POST \(document) HTTP/1.1\r\nHost: localhost\r\nOrigin: \(origin)\r\nContent-Length: 99999999\r\n\r\n")
        for (reply, status) in [
            (asked, 204), (missing, 404), (nowhere, 404), (otherHost.reply(), 403), (tooLarge.reply(), 413),
        ] {
            expectEqual(reply?.status, status)
            expect(reply?.headers["access-control-allow-origin"] == origin && reply?.headers["vary"] == "Origin")
            expectEqual(reply?.headers["access-control-allow-credentials"], "true")
        }
        expectNil(client.request("GET", "/")?.headers["access-control-allow-origin"])
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Streams can be asked for as events`() throws {
        for id in ["a", "b"] {
            _ = try send("POST", "\(Self.root)/c?documentId=\(id)", #"{"fields":{"t":{"stringValue":"x\ny"}}}"#)
        }
        let query = #"{"structuredQuery":{"from":[{"collectionId":"c"}]}}"#
        let reply = try #require(client.request("POST", "\(Self.root):runQuery?alt=sse", body: query))
        expect(reply.status == 200 && reply.headers["content-type"] == "text/event-stream")
        let events = reply.body.components(separatedBy: "\r\n\r\n")
        expect(events.last == "" && events.count == 3)
        let names = try events.dropLast().map { event in
            expect(event.hasPrefix("data: {") && !event.contains("\n"))
            let message = try JSONSerialization.jsonObject(with: Data(event.dropFirst(6).utf8)) as? [String: Any]
            return (message?["document"] as? [String: Any])?["name"] as? String
        }
        expectEqual(names, ["\(Self.names)/c/a", "\(Self.names)/c/b"])
        let one = try #require(client.request("GET", "\(Self.root)/c/a?alt=sse"))
        expect(one.headers["content-type"] == "text/event-stream" && one.body.hasPrefix("data: {\"name\":"))
        try expectEqual(
            error("POST", "\(Self.root):runQuery?alt=sse", #"{"structuredQuery":{"limit":-1}}"#, status: 400),
            "INVALID_ARGUMENT")
        try expectEqual(error("GET", "\(Self.root)/c/a?alt=proto", status: 400), "INVALID_ARGUMENT")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `An encoded colon before a verb and the older version's name are understood`() throws {
        let write = #"{"writes":[{"update":{"name":"\#(Self.names)/c/d","fields":{}}}]}"#
        _ = try send("POST", "\(Self.root)%3Acommit", write)
        _ = try send("GET", "\(Self.root.replacingOccurrences(of: "/v1/", with: "/v1beta1/"))/c/d")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Headers in the query count, and those that a page could not send are refused`() throws {
        _ = try send("POST", "\(Self.root)/c?documentId=d", "{}")
        let document = "\(Self.root)/c/d"
        _ = try send("GET", "\(document)?$httpHeaders=X-Goog-Api-Client:gl-js%2F%0D%0AContent-Type:text%2Fplain%0D%0A")
        _ = try send("GET", "\(document)?%24httpHeaders=")
        // The header has an effect: this deadline is not a number.
        try expectEqual(
            error("GET", "\(document)?$httpHeaders=X-Server-Timeout:soon%0D%0A", status: 400), "INVALID_ARGUMENT")
        // The request's own counts before it.
        let both = client.request(
            "GET", "\(document)?$httpHeaders=X-Server-Timeout:soon%0D%0A", headers: ["X-Server-Timeout: 5"])
        expectEqual(both?.status, 200)
        for lines in [
            "Host:evil", "Origin:http://localhost", "Cookie:a", "Sec-Fetch-Site:none", "Proxy-Authorization:a",
            "Content-Length:1",
            "nonsense", ":a", "a%20b:c", "a:b%00", "a:b%0Ac:d", String(repeating: "a:b%0D%0A", count: 101),
            "a:b%0D%0A%0D%0Ac:d",
        ] {
            try expectEqual(
                error("GET", "\(document)?$httpHeaders=\(lines)", status: 400), "INVALID_ARGUMENT", "\(lines)")
        }
        expectEqual(server.stop(), 0)
    }

    @Test
    func `The pages say that the server lives, is ready, and what it does`() throws {
        expectEqual(client.request("GET", "/")?.body, "Ok\n")
        expectEqual(client.request("GET", "/livez")?.status, 200)
        expectEqual(client.request("GET", "/readyz")?.body, "ready\n")
        expectEqual(client.request("HEAD", "/")?.headers["content-length"], "3")
        expectEqual(client.request("POST", "/livez", body: "")?.status, 405)
        try expectEqual(error("GET", "/nothing", status: 404), "NOT_FOUND")
        expectEqual(server.stop(), 0)
    }
}
