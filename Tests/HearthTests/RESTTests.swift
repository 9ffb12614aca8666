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
        #expect(reply.status == status, "\(method) \(target): \(reply.body)")
        #expect(reply.headers["content-type"] == "application/json; charset=utf-8")
        return try JSONSerialization.jsonObject(with: Data(reply.body.utf8))
    }

    private func error(_ method: String, _ target: String, _ body: String? = nil, status: Int) throws -> String {
        let all = try send(method, target, body, status: status)
        let object = all as? [String: Any] ?? (all as? [[String: Any]])?.first
        let error = try #require(object?["error"] as? [String: Any])
        #expect(error["code"] as? Int == status)
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
        #expect(created["name"] as? String == "\(Self.names)/c/d")
        #expect(created["fields"] as? NSDictionary == fields)
        #expect(created["createTime"] as? String == created["updateTime"] as? String)
        let read = try #require(try send("GET", "\(Self.root)/c/d") as? NSDictionary)
        #expect(read == created as NSDictionary)
        #expect(try error("POST", "\(Self.root)/c?documentId=d", "{}", status: 409) == "ALREADY_EXISTS")

        let mask = "updateMask.fieldPaths=s&updateMask.fieldPaths=a&mask.fieldPaths=s"
        let changed = try #require(
            try send(
                "PATCH", "\(Self.root)/c/d?\(mask)&currentDocument.exists=true",
                #"{"fields":{"s":{"stringValue":"new"}}}"#) as? [String: Any])
        #expect(changed["fields"] as? NSDictionary == ["s": ["stringValue": "new"]])
        let rest = try #require((try send("GET", "\(Self.root)/c/d") as? [String: Any])?["fields"] as? [String: Any])
        #expect(rest["a"] == nil && rest.count == fields.count - 1)

        #expect(try send("DELETE", "\(Self.root)/c/d") as? NSDictionary == [:])
        #expect(try error("GET", "\(Self.root)/c/d", status: 404) == "NOT_FOUND")
        #expect(try error("PATCH", "\(Self.root)/c/d?currentDocument.exists=true", "{}", status: 404) == "NOT_FOUND")
        #expect(try error("GET", "\(Self.root)/c/d?pagesize=1", status: 400) == "INVALID_ARGUMENT")
        #expect(server.stop() == 0)
    }

    @Test
    func `The admin API has REST paths: databases, indexes, fields and operations`() throws {
        let databases = "/v1/projects/p/databases"
        let made = try #require(
            try send(
                "POST", "\(databases)?databaseId=staging",
                #"{"type":"FIRESTORE_NATIVE","locationId":"nam5","deleteProtectionState":"DELETE_PROTECTION_ENABLED"}"#)
                as? [String: Any])
        #expect(made["done"] as? Bool == true)
        let response = try #require(made["response"] as? [String: Any])
        #expect(response["@type"] as? String == "type.googleapis.com/google.firestore.admin.v1.Database")
        #expect(response["locationId"] as? String == "nam5" && response["versionRetentionPeriod"] as? String == "3600s")
        #expect(
            made["metadata"] as? NSDictionary
                == ["@type": "type.googleapis.com/google.firestore.admin.v1.CreateDatabaseMetadata"])
        let name = try #require(made["name"] as? String)
        #expect(try send("GET", "/v1/\(name)") as? NSDictionary == made as NSDictionary)
        #expect(try error("POST", "\(databases)?databaseId=staging", "{}", status: 409) == "ALREADY_EXISTS")
        #expect(try error("DELETE", "\(databases)/staging", status: 400) == "FAILED_PRECONDITION")
        // A client may send back all that it got.
        var whole = response
        whole["@type"] = nil
        whole["deleteProtectionState"] = "DELETE_PROTECTION_DISABLED"
        let body = String(decoding: try JSONSerialization.data(withJSONObject: whole), as: UTF8.self)
        _ = try send("PATCH", "\(databases)/staging?updateMask=deleteProtectionState", body)
        let listing = try #require(try send("GET", databases) as? [String: Any])
        let listed = try #require((listing["databases"] as? [[String: Any]])?.first)
        #expect(listed["deleteProtectionState"] as? String == "DELETE_PROTECTION_DISABLED")

        let group = "\(databases)/staging/collectionGroups/c"
        let index =
            #"{"queryScope":"COLLECTION","fields":[{"fieldPath":"a","order":"ASCENDING"},"#
            + #"{"fieldPath":"b","order":"DESCENDING"}]}"#
        let build = try #require(try send("POST", "\(group)/indexes", index) as? [String: Any])
        let operation = try #require(build["name"] as? String)
        let waited = try #require(try send("POST", "/v1/\(operation):wait", #"{"timeout":"15s"}"#) as? [String: Any])
        #expect(waited["done"] as? Bool == true)
        let indexes = try #require(try send("GET", "\(group)/indexes") as? [String: Any])
        let built = try #require((indexes["indexes"] as? [[String: Any]])?.first?["name"] as? String)
        #expect(try send("DELETE", "/v1/\(built)") as? NSDictionary == [:])
        _ = try send("PATCH", "\(group)/fields/x?updateMask=indexConfig", #"{"indexConfig":{}}"#)
        let fields = try #require(try send("GET", "\(group)/fields") as? [String: Any])
        #expect((fields["fields"] as? [Any])?.count == 1)

        var deletion = try #require(try send("DELETE", "\(databases)/staging") as? [String: Any])
        let deleting = try #require(deletion["name"] as? String)
        for _ in 0..<60 where deletion["done"] as? Bool != true {
            deletion = try #require(try send("POST", "/v1/\(deleting):wait", "{}") as? [String: Any])
        }
        #expect(deletion["done"] as? Bool == true)
        #expect(try error("GET", "\(databases)/staging", status: 404) == "NOT_FOUND")
        #expect(try error("GET", "\(databases)/staging/backupSchedules", status: 501) == "UNIMPLEMENTED")
        #expect(server.stop() == 0)
    }

    @Test
    func `Commits, queries, aggregations, batches, transactions and listings answer as their RPCs do`() throws {
        let writes = (0..<5).map { number in
            #"{"update":{"name":"\#(Self.names)/c/\#(number)","fields":{"n":{"integerValue":\#(number)}}}}"#
        }
        let committed = try #require(
            try send("POST", "\(Self.root):commit", #"{"writes":[\#(writes.joined(separator: ","))]}"#)
                as? [String: Any])
        #expect((committed["writeResults"] as? [Any])?.count == 5)

        let query =
            #"{"from":[{"collectionId":"c"}],"where":{"fieldFilter":"#
            + #"{"field":{"fieldPath":"n"},"op":"GREATER_THAN","value":{"integerValue":1}}},"#
            + #""orderBy":[{"field":{"fieldPath":"n"},"direction":"DESCENDING"}],"limit":2}"#
        let rows = try #require(
            try send("POST", "\(Self.root):runQuery", #"{"structuredQuery":\#(query)}"#) as? [[String: Any]])
        #expect(
            rows.compactMap { ($0["document"] as? [String: Any])?["name"] as? String } == [
                "\(Self.names)/c/4", "\(Self.names)/c/3",
            ])
        #expect(rows.allSatisfy { $0["readTime"] != nil })
        let nothing = try #require(
            try send("POST", "\(Self.root):runQuery", #"{"structuredQuery":{"from":[{"collectionId":"none"}]}}"#)
                as? [[String: Any]])
        #expect(nothing.count == 1 && nothing[0].keys.contains("readTime"))
        #expect(
            try error("POST", "\(Self.root):runQuery", #"{"structuredQuery":{"form":[]}}"#, status: 400)
                == "INVALID_ARGUMENT")

        let count =
            #"{"structuredAggregationQuery":{"structuredQuery":{"from":[{"collectionId":"c"}]},"#
            + #""aggregations":[{"alias":"n","count":{}}]}}"#
        let totals = try #require(try send("POST", "\(Self.root):runAggregationQuery", count) as? [[String: Any]])
        #expect(
            (totals[0]["result"] as? NSDictionary)?["aggregateFields"] as? NSDictionary == ["n": ["integerValue": "5"]])

        let pipeline =
            #"{"structuredPipeline":{"pipeline":{"stages":[{"name":"collection","args":[{"referenceValue":"/c"}]},"#
            + #"{"name":"aggregate","args":[{"mapValue":{"fields":{"n":{"functionValue":{"name":"count"}}}}},"#
            + #"{"mapValue":{}}]}]}}}"#
        let groups = try #require(try send("POST", "\(Self.root):executePipeline", pipeline) as? [[String: Any]])
        let group = (groups[0]["results"] as? [[String: Any]])?.first
        #expect(group?["fields"] as? NSDictionary == ["n": ["integerValue": "5"]])
        #expect(groups[0]["executionTime"] != nil)

        let got = try #require(
            try send(
                "POST", "\(Self.root):batchGet",
                #"{"documents":["\#(Self.names)/c/1","\#(Self.names)/c/x"],"mask":{"fieldPaths":[]}}"#)
                as? [[String: Any]])
        #expect(got.map { $0.keys.contains("found") } == [true, false])
        #expect(got[1]["missing"] as? String == "\(Self.names)/c/x")

        let transaction = try #require(
            (try send("POST", "\(Self.root):beginTransaction", "{}") as? [String: Any])?["transaction"] as? String)
        let parameter = try #require(transaction.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
        _ = try send("GET", "\(Self.root)/c/1?transaction=\(parameter)")
        #expect(
            try send("POST", "\(Self.root):rollback", #"{"transaction":"\#(transaction)"}"#) as? NSDictionary == [:])

        let batch = try #require(
            try send(
                "POST", "\(Self.root):batchWrite",
                #"{"writes":[{"delete":"\#(Self.names)/c/0"},"#
                    + #"{"delete":"\#(Self.names)/c/9","currentDocument":{"exists":true}}]}"#
            ) as? [String: Any])
        #expect((batch["status"] as? [[String: Any]])?.map { $0["code"] as? Int } == [nil, 5])

        let page = try #require(try send("GET", "\(Self.root)/c?pageSize=3") as? [String: Any])
        #expect((page["documents"] as? [Any])?.count == 3)
        let token =
            try #require(page["nextPageToken"] as? String).addingPercentEncoding(withAllowedCharacters: .alphanumerics)
            ?? ""
        let second = try #require(try send("GET", "\(Self.root)/c?pageSize=3&pageToken=\(token)") as? [String: Any])
        #expect((second["documents"] as? [Any])?.count == 1)
        let ids = try send("POST", "\(Self.root):listCollectionIds", "{}") as? NSDictionary
        #expect(ids == ["collectionIds": ["c"]])
        #expect(server.stop() == 0)
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
        #expect(reply.status == 200 && reply.chunks.count >= 2_000)
        #expect((try JSONSerialization.jsonObject(with: Data(reply.body.utf8)) as? [Any])?.count == 2_000)
        #expect(server.stop() == 0)
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
        #expect(try remaining() == ["n": ["integerValue": "6000"]])
        #expect(try send("DELETE", "/emulator/v1/projects/p/databases/(default)/documents") as? NSDictionary == [:])
        #expect(try remaining() == ["n": ["integerValue": "0"]])
        _ = try send("GET", "\(other)/c/stays")
        #expect(try send("DELETE", "/emulator/v1/projects/p/databases/(default)/documents") as? NSDictionary == [:])
        #expect(server.stop() == 0)
    }

    @Test
    func `A reset is refused where it is switched off`() throws {
        #expect(server.stop() == 0)
        let guarded = try ServerProcess(
            data: directory.path(of: "guarded"), arguments: ["--emulator-endpoints", "off"])
        let reply = HTTPTestClient(port: guarded.port).request(
            "DELETE", "/emulator/v1/projects/p/databases/d/documents")
        #expect(reply?.status == 403 && reply?.body.contains("--emulator-endpoints") == true)
        #expect(guarded.stop() == 0)
    }

    @Test
    func `Pages of this machine may call, those of others may not`() throws {
        let local = try #require(client.request("GET", "\(Self.root)/c", headers: ["Origin: http://localhost:3000"]))
        #expect(local.status == 200 && local.headers["access-control-allow-origin"] == "http://localhost:3000")
        let asked = try #require(
            client.request(
                "OPTIONS", "\(Self.root):commit",
                headers: [
                    "Origin: http://localhost:3000", "Access-Control-Request-Method: POST",
                    "Access-Control-Request-Headers: x-a, authorization",
                ]))
        #expect(asked.status == 204 && asked.headers["access-control-allow-headers"] == "x-a, authorization")
        #expect(asked.headers["access-control-allow-methods"]?.contains("PATCH") == true)
        let foreign = try #require(
            client.request("POST", "\(Self.root):commit", body: "{}", headers: ["Origin: https://example.org"]))
        #expect(foreign.status == 403)
        // The page sees why, and its credentials do not count.
        #expect(foreign.headers["access-control-allow-origin"] == "https://example.org")
        #expect(foreign.headers["access-control-allow-credentials"] == nil)
        #expect(server.stop() == 0)
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
            #expect(reply?.status == status)
            #expect(reply?.headers["access-control-allow-origin"] == origin && reply?.headers["vary"] == "Origin")
            #expect(reply?.headers["access-control-allow-credentials"] == "true")
        }
        #expect(client.request("GET", "/")?.headers["access-control-allow-origin"] == nil)
        #expect(server.stop() == 0)
    }

    @Test
    func `Streams can be asked for as events`() throws {
        for id in ["a", "b"] {
            _ = try send("POST", "\(Self.root)/c?documentId=\(id)", #"{"fields":{"t":{"stringValue":"x\ny"}}}"#)
        }
        let query = #"{"structuredQuery":{"from":[{"collectionId":"c"}]}}"#
        let reply = try #require(client.request("POST", "\(Self.root):runQuery?alt=sse", body: query))
        #expect(reply.status == 200 && reply.headers["content-type"] == "text/event-stream")
        let events = reply.body.components(separatedBy: "\r\n\r\n")
        #expect(events.last == "" && events.count == 3)
        let names = try events.dropLast().map { event in
            #expect(event.hasPrefix("data: {") && !event.contains("\n"))
            let message = try JSONSerialization.jsonObject(with: Data(event.dropFirst(6).utf8)) as? [String: Any]
            return (message?["document"] as? [String: Any])?["name"] as? String
        }
        #expect(names == ["\(Self.names)/c/a", "\(Self.names)/c/b"])
        let one = try #require(client.request("GET", "\(Self.root)/c/a?alt=sse"))
        #expect(one.headers["content-type"] == "text/event-stream" && one.body.hasPrefix("data: {\"name\":"))
        #expect(
            try error("POST", "\(Self.root):runQuery?alt=sse", #"{"structuredQuery":{"limit":-1}}"#, status: 400)
                == "INVALID_ARGUMENT")
        #expect(try error("GET", "\(Self.root)/c/a?alt=proto", status: 400) == "INVALID_ARGUMENT")
        #expect(server.stop() == 0)
    }

    @Test
    func `An encoded colon before a verb and the older version's name are understood`() throws {
        let write = #"{"writes":[{"update":{"name":"\#(Self.names)/c/d","fields":{}}}]}"#
        _ = try send("POST", "\(Self.root)%3Acommit", write)
        _ = try send("GET", "\(Self.root.replacingOccurrences(of: "/v1/", with: "/v1beta1/"))/c/d")
        #expect(server.stop() == 0)
    }

    @Test
    func `Headers in the query count, and those that a page could not send are refused`() throws {
        _ = try send("POST", "\(Self.root)/c?documentId=d", "{}")
        let document = "\(Self.root)/c/d"
        _ = try send("GET", "\(document)?$httpHeaders=X-Goog-Api-Client:gl-js%2F%0D%0AContent-Type:text%2Fplain%0D%0A")
        _ = try send("GET", "\(document)?%24httpHeaders=")
        // The header has an effect: this deadline is not a number.
        #expect(
            try error("GET", "\(document)?$httpHeaders=X-Server-Timeout:soon%0D%0A", status: 400) == "INVALID_ARGUMENT")
        // The request's own counts before it.
        let both = client.request(
            "GET", "\(document)?$httpHeaders=X-Server-Timeout:soon%0D%0A", headers: ["X-Server-Timeout: 5"])
        #expect(both?.status == 200)
        for lines in [
            "Host:evil", "Origin:http://localhost", "Cookie:a", "Sec-Fetch-Site:none", "Proxy-Authorization:a",
            "Content-Length:1",
            "nonsense", ":a", "a%20b:c", "a:b%00", "a:b%0Ac:d", String(repeating: "a:b%0D%0A", count: 101),
            "a:b%0D%0A%0D%0Ac:d",
        ] {
            #expect(
                try error("GET", "\(document)?$httpHeaders=\(lines)", status: 400) == "INVALID_ARGUMENT", "\(lines)")
        }
        #expect(server.stop() == 0)
    }

    @Test
    func `The pages say that the server lives, is ready, and what it does`() throws {
        #expect(client.request("GET", "/")?.body == "Ok\n")
        #expect(client.request("GET", "/livez")?.status == 200)
        #expect(client.request("GET", "/readyz")?.body == "ready\n")
        #expect(client.request("HEAD", "/")?.headers["content-length"] == "3")
        #expect(client.request("POST", "/livez", body: "")?.status == 405)
        #expect(try error("GET", "/nothing", status: 404) == "NOT_FOUND")
        #expect(server.stop() == 0)
    }
}
