// The routes of the console: its files, who gets its data, and what the data say. What the page does is tested in a
// browser: Tests/Interop/console.

import Authorization
import AuthorizationTestSupport
import Basics
import DocumentStore
import FirestoreMessages
import Foundation
import Identity
import Server
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ConsoleTests {
    private static let database = "projects/p/databases/d"

    private static func admin() throws -> (records: [PrincipalRecord], header: String) {
        var list = PrincipalList()
        let grant = PrincipalList.Grant(role: .admin, scope: Scope(projects: nil), bypassesRules: true)
        let key = try list.addAPIKey(to: "operator", grant, now: 1)
        return (list.records, "Authorization: Bearer \(key)")
    }

    /// The files of the folder that the C target embeds.
    private static func folder() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: Repository.url("Sources/CConsole/web").path)
    }

    // MARK: Files

    @Test
    func `Every file of the folder is served with its type and the policy`() throws {
        let live = try LiveDatabaseServer()
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let names = try Self.folder()
        expect(names.contains("app.js") && names.contains("index.html"))
        for name in names {
            let path = name == "index.html" ? "/console" : "/console/\(name)"
            let reply = try #require(http.request("GET", path), "\(name)")
            expectEqual(reply.status, 200, "\(name)")
            let type = name.hasSuffix(".js") ? "text/javascript" : name.hasSuffix(".css") ? "text/css" : "text/html"
            expectEqual(reply.headers["content-type"], "\(type); charset=utf-8", "\(name)")
            expectEqual(reply.headers["x-content-type-options"], "nosniff")
            expectEqual(reply.headers["referrer-policy"], "no-referrer")
            let policy = try #require(reply.headers["content-security-policy"])
            expect(policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"))
            expect(policy.hasSuffix("form-action 'none'; require-trusted-types-for 'script'"))
            expect(!policy.contains("unsafe"))
        }
        // The page names all modules, so that a browser need not find one after the other.
        let page = try #require(http.request("GET", "/console")?.body)
        for name in names where name.hasSuffix(".js") && name != "worker.js" {
            expect(page.contains("\"/console/\(name)\""), "\(name)")
        }
        expectEqual(http.request("GET", "/console/")?.status, 200)
        expectEqual(http.request("GET", "/console/absent.js")?.status, 404)
        expectEqual(http.request("GET", "/console/../console/app.js")?.status, 404)
        expectEqual(http.request("POST", "/console/app.js", body: "")?.status, 405)
    }

    @Test
    func `A browser that has a file gets no copy of it`() throws {
        let live = try LiveDatabaseServer()
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let first = try #require(http.request("GET", "/console/app.js"))
        let tag = try #require(first.headers["etag"])
        http.send("GET /console/app.js HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: W/\"x\", \(tag)\r\n\r\n")
        let again = try #require(http.head())
        expectEqual(again.status, 304)
        expectEqual(again.headers["etag"], tag)
        expectEqual(http.request("GET", "/console/app.js", headers: ["If-None-Match: \"other\""])?.status, 200)
        let head = try #require(http.request("HEAD", "/console/app.js"))
        expectEqual(head.status, 200)
        expectEqual(head.headers["etag"], tag)
        expect(head.body.isEmpty)
    }

    @Test
    func `A server without the console has nothing at its paths`() throws {
        let live = try LiveDatabaseServer { $0.http.servesConsole = false }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        for path in ["/console", "/console/app.js", "/console/data/state"] {
            expectEqual(http.request("GET", path)?.status, 404, "\(path)")
        }
    }

    // MARK: Access

    private static let dataPaths = ["state", "history", "changes", "listeners"].map { "/console/data/\($0)" }

    @Test
    func `Nobody but an admin gets data from a closed server`() throws {
        let (records, key) = try Self.admin()
        var list = PrincipalList()
        let grant = PrincipalList.Grant(role: .writer, scope: Scope(projects: nil), bypassesRules: true)
        let writer = "Authorization: Bearer \(try list.addAPIKey(to: "batch", grant, now: 1))"
        let authorization = try TestAuthorization.make(nil, mode: .closed, records: records + list.records)
        let live = try LiveDatabaseServer { $0.authorization = authorization }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let call = "/console/rpc/hearth.admin.v1.Admin/GetServer"
        for path in Self.dataPaths {
            expectEqual(http.request("GET", path)?.status, 401, "\(path)")
            expectEqual(http.request("GET", path, headers: [writer])?.status, 403, "\(path)")
            expectEqual(http.request("GET", path, headers: [key])?.status, 200, "\(path)")
        }
        for path in ["/console/session", "/console/data/rules", call] {
            expectEqual(http.request("POST", path, body: "{}")?.status, 401, "\(path)")
            expectEqual(http.request("POST", path, body: "{}", headers: [writer])?.status, 403, "\(path)")
            expectEqual(http.request("POST", path, body: "{}", headers: [key])?.status, 200, "\(path)")
        }
        // The page itself is the same for everyone.
        expectEqual(http.request("GET", "/console")?.status, 200)
    }

    @Test
    func `A credential is exchanged for a token of an hour that works like it, and not for a second hour`() throws {
        let (records, key) = try Self.admin()
        let authorization = try TestAuthorization.make(nil, mode: .closed, records: records)
        let live = try LiveDatabaseServer { $0.authorization = authorization }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let reply = try #require(http.request("POST", "/console/session", body: "", headers: [key]))
        expectEqual(reply.headers["cache-control"], "no-store")
        expectNil(reply.headers["set-cookie"])
        let token = try #require(reply.body.split(separator: "\"").first { $0.hasPrefix("hearthat_") })
        expect(reply.body.contains("\"expiresIn\":3600"))
        let bearer = "Authorization: Bearer \(token)"
        expectEqual(http.request("GET", "/console/data/state", headers: [bearer])?.status, 200)
        expectEqual(http.request("GET", "/v1/\(Self.database)/documents/c/x", headers: [bearer])?.status, 404)
        expectEqual(http.request("GET", "/console/data/state", headers: [bearer + "x"])?.status, 401)
        let second = try #require(http.request("POST", "/console/session", body: "", headers: [bearer]))
        expect(second.body.contains("\"token\":\"\(token)\""))
        // Without its principal the token is void.
        authorization.replace(try TestAuthorization.authenticator(mode: .closed))
        expectEqual(http.request("GET", "/console/data/state", headers: [bearer])?.status, 401)
    }

    @Test
    func `The console's own page may call, and a page of another site may not`() throws {
        let live = try LiveDatabaseServer { $0.http.allowedOrigins = .none }
        let port = live.gateway.port
        let http = HTTPTestClient(port: Int(port))
        func status(_ origin: String, host: String) -> Int? {
            http.send("GET /console/data/state HTTP/1.1\r\nHost: \(host)\r\nOrigin: \(origin)\r\n\r\n")
            return http.reply()?.status
        }
        expectEqual(status("http://127.0.0.1:\(port)", host: "127.0.0.1:\(port)"), 200)
        expectEqual(status("https://192.0.2.7", host: "192.0.2.7"), 200)
        expectEqual(status("http://127.0.0.1:1", host: "127.0.0.1:\(port)"), 403)
        expectEqual(status("http://evil.example", host: "127.0.0.1:\(port)"), 403)
        // Another site's name may resolve to this server.
        expectEqual(status("http://evil.example", host: "evil.example"), 403)
    }

    // MARK: Data

    @Test
    func `The state has the databases, and the changes have documents before and after`() throws {
        let live = try LiveDatabaseServer()
        let http = HTTPTestClient(port: Int(live.gateway.port))
        // From the first look on.
        expectEqual(http.request("GET", "/console/data/changes")?.status, 200)
        let path = "/v1/\(Self.database)/documents/c/x"
        for number in [1, 2] {
            let body = "{\"fields\": {\"n\": {\"integerValue\": \"\(number)\"}}}"
            expectEqual(http.request("PATCH", path, body: body)?.status, 200)
        }
        let state = try #require(http.request("GET", "/console/data/state")?.body)
        expect(state.contains("\"databases\":[\"\(Self.database)\"]"))
        expect(state.contains("\"mode\":\"open\""))
        expect(state.contains("\"rest\":"))
        let changes = try #require(http.request("GET", "/console/data/changes")?.body)
        expect(changes.contains("\"before\":{\"n\":{\"integerValue\":\"1\"}}"))
        expect(changes.contains("\"after\":{\"n\":{\"integerValue\":\"2\"}}"))
        expect(changes.contains("\"path\":\"c/x\""))
        expectEqual(http.request("GET", "/console/data/changes?path=other")?.body.contains("\"changes\":[]"), true)
        expectEqual(http.request("GET", "/console/data/absent")?.status, 404)
    }

    @Test
    func `A listener is shown with its query and its client`() throws {
        let live = try LiveDatabaseServer()
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let target = """
            {"database": "\(Self.database)", "addTarget": {"targetId": 2, "query": {
             "parent": "\(Self.database)/documents", "structuredQuery": {"from": [{"collectionId": "rooms"}]}}}}
            """
        let encoded = target.utf8.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        let form = "count=1&ofs=0&req0___data__=\(encoded)"
        let channel = "/google.firestore.v1.Firestore/Listen/channel?VER=8&RID=1"
        expectEqual(http.request("POST", channel, body: form)?.status, 200)
        let shown = try #require(http.request("GET", "/console/data/listeners")?.body)
        expect(shown.contains("rooms"), "\(shown)")
        expect(shown.contains("\"client\":\"127.0.0.1:"), "\(shown)")
        expect(shown.contains("\"documentsLastHour\":0"), "\(shown)")
    }

    @Test
    func `Administrative methods are called with JSON, and those that write directories are not there`() throws {
        let live = try LiveDatabaseServer()
        let http = HTTPTestClient(port: Int(live.gateway.port))
        func call(_ method: String, _ body: String) -> (status: Int, body: String)? {
            http.request("POST", "/console/rpc/\(method)", body: body).map { ($0.status, $0.body) }
        }
        let server = try #require(call("hearth.admin.v1.Admin/GetServer", "{}"))
        expectEqual(server.status, 200)
        expect(server.body.contains("127.0.0.1:\(live.gateway.port)"))
        let index = """
            {"parent": "\(Self.database)/collectionGroups/c", "index": {"queryScope": "COLLECTION", "fields": [
             {"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "DESCENDING"}]}}
            """
        expectEqual(call("google.firestore.admin.v1.FirestoreAdmin/CreateIndex", index)?.status, 200)
        let listed = call("hearth.admin.v1.Admin/ListIndexes", "{\"database\": \"\(Self.database)\"}")
        expectEqual(listed?.body.contains("fieldPath"), true)
        expectEqual(call("hearth.admin.v1.Admin/GetServer", "{\"unknown\": 1}")?.status, 400)
        for method in ["hearth.admin.v1.Admin/Backup", "hearth.admin.v1.Admin/Fork", "x.Y/Z"] {
            expectEqual(call(method, "{\"directory\": \"/nowhere\"}")?.status, 404, "\(method)")
        }
        expectEqual(http.request("GET", "/console/rpc/hearth.admin.v1.Admin/GetServer")?.status, 405)
    }

    @Test
    func `A backup is removed by its name, and nothing else is`() throws {
        let scratch = TemporaryDirectory(on: .disk)
        let directory = "\(scratch.path)/backups"
        for path in ["backups/backup-1", "backups/other", "backup-2"] {
            let target = "\(scratch.path)/\(path)"
            try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
            try Data("x".utf8).write(to: URL(filePath: "\(target)/FORMAT"))
        }
        let live = try LiveDatabaseServer { $0.http.backupDirectory = directory }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        func remove(_ name: String) -> Int? {
            let body = "{\"action\": \"remove\", \"name\": \"\(name)\"}"
            return http.request("POST", "/console/data/backups", body: body)?.status
        }
        for name in ["", ".", "..", "other", "../backup-2", "backup-1/../backup-1", "backup-1/", "backup-3"] {
            expectEqual(remove(name), 404, "\(name)")
        }
        expectEqual(remove("backup-1"), 200)
        try waitUntil("the backup is removed") {
            http.request("GET", "/console/data/backups")?.body.contains("\"removed\":null") == true
        }
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory), ["other"])
        expect(FileManager.default.fileExists(atPath: "\(scratch.path)/backup-2/FORMAT"))
    }

    @Test
    func `A backup goes into a new directory of the one that was named, and nowhere without it`() throws {
        let without = try LiveDatabaseServer()
        let refused = HTTPTestClient(port: Int(without.gateway.port))
            .request("POST", "/console/data/backups", body: "{\"action\": \"start\"}")
        expect(refused?.status == 400 && refused?.body.contains("--backup-directory") == true)

        let scratch = TemporaryDirectory(on: .disk)
        let live = try LiveDatabaseServer { $0.http.backupDirectory = scratch.path }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let document = "{\"fields\": {\"a\": {\"integerValue\": \"1\"}}}"
        expectEqual(http.request("PATCH", "/v1/\(Self.database)/documents/c/x", body: document)?.status, 200)
        for body in ["{}", "[]", "{\"action\": \"forget\"}", "{\"action\": \"start\", \"directory\": 1"] {
            expectEqual(http.request("POST", "/console/data/backups", body: body)?.status, 400, "\(body)")
        }
        expectEqual(http.request("POST", "/console/data/backups", body: "{\"action\": \"cancel\"}")?.status, 200)
        expectEqual(http.request("POST", "/console/data/backups", body: "{\"action\": \"start\"}")?.status, 200)
        var state = ""
        try waitUntil("the backup is complete") {
            state = http.request("GET", "/console/data/backups")?.body ?? ""
            return state.contains("\"name\":\"backup-") && !state.contains("\"running\"")
        }
        expect(state.contains("\"failure\":null"), "\(state)")
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path)
        expectEqual(names.count, 1)
        let copy = try DocumentStore.open(StoreConfiguration(directory: "\(scratch.path)/\(names.first ?? "")"))
        expectEqual(copy.databaseNames.map { "\($0)" }, [Self.database])
        copy.close()
    }

    @Test
    func `An explained query has the tree and the advice, and no documents`() throws {
        let live = try LiveDatabaseServer()
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let document = "{\"fields\": {\"a\": {\"integerValue\": \"1\"}, \"b\": {\"integerValue\": \"1\"}}}"
        expectEqual(http.request("PATCH", "/v1/\(Self.database)/documents/c/x", body: document)?.status, 200)
        let query = """
            {"parent": "\(Self.database)/documents", "explainOptions": {"analyze": true}, "structuredQuery": {
             "from": [{"collectionId": "c"}], "orderBy": [{"field": {"fieldPath": "b"}, "direction": "DESCENDING"}],
             "where": {"fieldFilter": {"field": {"fieldPath": "a"}, "op": "EQUAL", "value": {"integerValue": "1"}}}}}
            """
        let path = "/console/rpc/google.firestore.v1.Firestore/RunQuery"
        let reply = try #require(http.request("POST", path, body: query))
        expectEqual(reply.status, 200)
        expect(reply.body.contains("\"resultsReturned\":1"), "\(reply.body)")
        expect(reply.body.contains("\"tree\":\""), "\(reply.body)")
        expect(reply.body.contains("\"ownNanoseconds\":"), "\(reply.body)")
        let queries = try #require(http.request("GET", "/console/data/queries")?.body)
        expect(queries.contains("c --where 'a == ?' --order-by b:desc"), "\(queries)")
        expect(queries.contains("\"documents\":1,"), "\(queries)")
        expect(!reply.body.contains("\"fields\":{\"a\""), "\(reply.body)")
        expect(http.request("POST", path, body: query.replacing("\"c\"", with: "\"\""))?.status != 500)
    }

    @Test
    func `The text of a pipeline becomes a message, which is explained with figures of its operators`() throws {
        let live = try LiveDatabaseServer()
        let http = HTTPTestClient(port: Int(live.gateway.port))
        for name in ["x", "y"] {
            let document = "{\"fields\": {\"a\": {\"integerValue\": \"1\"}}}"
            expectEqual(http.request("PATCH", "/v1/\(Self.database)/documents/c/\(name)", body: document)?.status, 200)
        }
        func read(_ text: String) -> String? {
            http.request("POST", "/console/data/pipeline", body: "{\"text\": \(JSONText.quoted(text))}")?.body
        }
        let message = try #require(read("collection(c) | where(a + 1 == 2) | aggregate(n: count())"))
        expect(message.contains("\"structuredPipeline\":{\"pipeline\":{\"stages\":[{"), "\(message)")
        expectEqual(read("collection(c")?.contains("\"problem\":\"\\\")\\\" is missing"), true)
        expectEqual(http.request("POST", "/console/data/pipeline", body: "[]")?.status, 400)
        expectEqual(http.request("GET", "/console/data/pipeline")?.status, 405)
        let long = "collection(c) | where(a == \"\(String(repeating: "x", count: 300_000))\")"
        expectEqual(read(long)?.contains("INVALID_ARGUMENT"), true)

        func explain(_ mode: String) -> String? {
            let options = """
                "options": {"explain_options": {"mapValue": {"fields": {"mode": {"stringValue": "\(mode)"}}}}}
                """
            // Into the object of the message.
            let pipeline = message.trimmingCharacters(in: .whitespacesAndNewlines).dropFirst().dropLast(2)
            let body = "{\"database\": \"\(Self.database)\", \(pipeline), \(options)}}"
            return http.request("POST", "/console/rpc/google.firestore.v1.Firestore/ExecutePipeline", body: body)?.body
        }
        let plan = try #require(explain("explain"))
        expect(plan.contains("Aggregate n\\n└─ Where\\n   └─ CollectionScan c"), "\(plan)")
        expect(!plan.contains("operators"), "\(plan)")
        let analysis = try #require(explain("analyze"))
        expect(analysis.contains("\"documentsScanned\":2"), "\(analysis)")
        expectEqual(analysis.components(separatedBy: "\"ownNanoseconds\":").count, 4, "\(analysis)")

        // The index that a pipeline lacks is noted as that of a query is.
        let sorted = try #require(read("collection(c) | where(a == 1 and exists(b)) | sort(b desc)"))
        expectEqual(http.request("POST", "/v1/\(Self.database)/documents:executePipeline", body: sorted)?.status, 200)
        let method = "/console/rpc/hearth.admin.v1.Admin/ListIndexes"
        let indexes = try #require(http.request("POST", method, body: "{\"database\": \"\(Self.database)\"}")?.body)
        expect(indexes.contains("\"state\":\"WANTED\"") && indexes.contains("DESCENDING"), "\(indexes)")
    }

    @Test
    func `Rules get messages at their places, and cases the lines that decide`() throws {
        let live = try LiveDatabaseServer()
        let http = HTTPTestClient(port: Int(live.gateway.port))
        func check(_ rules: String, _ cases: String) -> String? {
            let body = "{\"text\": \(JSONText.quoted(rules)), \"cases\": \(JSONText.quoted(cases))}"
            return http.request("POST", "/console/data/rules", body: body)?.body
        }
        let rules = """
            rules_version = '2';
            service cloud.firestore { match /databases/{d}/documents {
              match /a/{b} { allow get: if request.auth != null; }
            } }
            """
        let good = try #require(check(rules, "user ada {}\nallow get a/b\ndeny delete a/b\n"))
        expect(good.contains("\"diagnostics\":[]"))
        expect(good.contains("\"allowed\":true"))
        expect(good.contains("\"line\":3,\"outcome\":\"allowed\""))
        let bad = try #require(check(rules.replacing("{b}", with: "{b"), ""))
        expect(bad.contains("\"severity\":\"ERROR\""))
        expect(bad.contains("\"line\":3"))
        try expect(#require(check(rules, "allow what a/b")).contains("\"casesError\":\"line 1"))
        expectEqual(http.request("POST", "/console/data/rules", body: "[]")?.status, 400)
    }
}
