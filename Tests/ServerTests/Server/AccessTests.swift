// Who may do what over each protocol of a server.

import Authorization
import AuthorizationTestSupport
import Basics
import Dispatch
import DocumentModel
import DocumentStore
import FirestoreMessages
import FirestoreService
import Identity
import Server
import ServiceTestSupport
import Synchronization
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct AccessTests {
    private static let document = "/v1/projects/p/databases/d/documents/c/x"
    private static let reset = "/emulator/v1/projects/p/databases/d/documents"
    private static let rules = "/emulator/v1/projects/p:securityRules"

    /// A principal and the header that shows its key.
    private static func principal(
        _ role: Role, collections: [String]? = nil, bypassesRules: Bool = true
    ) throws -> (records: [PrincipalRecord], header: String) {
        var list = PrincipalList()
        let grant = PrincipalList.Grant(
            role: role, scope: Scope(projects: ["p"], collections: collections), bypassesRules: bypassesRules)
        let key = try list.addAPIKey(to: "batch", grant, now: 1)
        return (list.records, "Authorization: Bearer \(key)")
    }

    @Test
    func `A closed server answers nobody without a credential, over any protocol`() throws {
        let (records, key) = try Self.principal(.reader)
        let authorization = try TestAuthorization.make(nil, mode: .closed, records: records)
        let live = try LiveDatabaseServer {
            $0.authorization = authorization
            $0.http.emulatorEndpoints = true
        }
        let native = live.call(.getDocument, GetDocumentRequest(name: Harness.name("c/x")).encodedBytes())
        expectEqual(native.outcome.code, .unauthenticated)
        let http = HTTPTestClient(port: Int(live.gateway.port))
        expectEqual(http.request("GET", Self.document)?.status, 401)
        expectEqual(http.request("GET", Self.document, headers: [key])?.status, 404)
        for wrong in [
            key + "x", "Authorization: Bearer owner", "Authorization: Basic eA==", "Authorization: Bearer a.b.c",
        ] {
            expectEqual(http.request("GET", Self.document, headers: [wrong])?.status, 401, "\(wrong)")
        }
        // A reader does not write, and does not administer.
        expectEqual(http.request("DELETE", Self.document, headers: [key])?.status, 403)
        expectEqual(http.request("DELETE", Self.reset, headers: [key])?.status, 403)
        expectEqual(http.request("PUT", Self.rules, body: "{}", headers: [key])?.status, 403)
        for page in ["/livez", "/readyz", "/"] { expectEqual(http.request("GET", page)?.status, 200, "\(page)") }
    }

    /// To read its JSON takes most of a second for a body at its limit.
    @Test
    func `A caller who may not call is refused before a large body is read`() throws {
        let (records, key) = try Self.principal(.reader)
        let live = try LiveDatabaseServer {
            $0.authorization = try? TestAuthorization.make(nil, mode: .closed, records: records)
        }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let broken = String(repeating: "[", count: 20_000)
        func status(_ method: String, _ target: String, _ headers: [String] = [key]) -> Int? {
            http.request(method, target, body: broken, headers: headers)?.status
        }
        let root = "/v1/projects/p/databases/d/documents"
        expectEqual(status("POST", root + ":commit", []), 401)
        expectEqual(status("POST", root + ":commit", [key + "x"]), 401)
        expectEqual(status("POST", root + ":commit"), 403)
        expectEqual(status("PATCH", root + "/c/x"), 403)
        expectEqual(status("POST", "/v1/projects/p/databases?databaseId=new"), 403)
        expectEqual(status("POST", "/console/rpc/hearth.admin.v1.Admin/GetServer"), 403)
        expectEqual(status("POST", "/console/rpc/google.firestore.v1.Firestore/RunQuery", []), 401)
        // This one may call, and gets the error of its body.
        expectEqual(status("POST", root + ":runQuery"), 400)
    }

    @Test
    func `A principal's role and collections bound what it does`() throws {
        let (records, key) = try Self.principal(.writer, collections: ["c"])
        let live = try LiveDatabaseServer {
            $0.authorization = try? TestAuthorization.make(nil, mode: .closed, records: records)
        }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        func status(_ method: String, _ target: String, _ body: String? = nil) -> Int? {
            let path = "/v1/projects/p/databases/d/documents" + target
            return http.request(method, path, body: body, headers: [key])?.status
        }
        expectEqual(status("PATCH", "/c/x", "{\"fields\":{}}"), 200)
        expectEqual(status("PATCH", "/c/x/d/y", "{\"fields\":{}}"), 200)
        expectEqual(status("PATCH", "/d/x", "{\"fields\":{}}"), 403)
        expectEqual(status("GET", "/c/x"), 200)
        expectEqual(status("GET", "/d/x"), 403)
        expectEqual(status("GET", "/c"), 200)
        expectEqual(status("GET", "/d"), 403)
        expectEqual(status("POST", ":runQuery", Self.query("c", isGroup: false)), 200)
        expectEqual(status("POST", ":runQuery", Self.query("c", isGroup: true)), 403)
        expectEqual(status("POST", ":runQuery", Self.query("d", isGroup: false)), 403)
        expectEqual(status("POST", ":executePipeline", Self.pipeline("c")), 200)
        expectEqual(status("POST", ":executePipeline", Self.pipeline("d")), 403)
        expectEqual(status("POST", ":listCollectionIds", "{}"), 403)
        let elsewhere = "/v1/projects/q/databases/d/documents/c/x"
        expectEqual(http.request("GET", elsewhere, headers: [key])?.status, 403)
    }

    @Test
    func `A principal that does not bypass rules needs some`() throws {
        let (records, key) = try Self.principal(.writer, bypassesRules: false)
        for (rules, status) in [(nil, 403), ("match /c/{x} { allow get; }", 404), ("match /d/{x} { allow get; }", 403)]
        {
            let live = try LiveDatabaseServer {
                $0.authorization = try? TestAuthorization.make(rules, mode: .closed, records: records)
            }
            let http = HTTPTestClient(port: Int(live.gateway.port))
            expectEqual(http.request("GET", Self.document, headers: [key])?.status, status)
        }
    }

    private static func pipeline(_ collection: String) -> String {
        "{\"structuredPipeline\":{\"pipeline\":{\"stages\":[{\"name\":\"collection\","
            + "\"args\":[{\"referenceValue\":\"/\(collection)\"}]}]}}}"
    }

    private static func query(_ collection: String, isGroup: Bool) -> String {
        "{\"structuredQuery\":{\"from\":[{\"collectionId\":\"\(collection)\",\"allDescendants\":\(isGroup)}]}}"
    }

    @Test
    func `An open server refuses what comes through a proxy`() throws {
        let live = try LiveDatabaseServer {
            $0.authorization = try? TestAuthorization.make(nil, mode: .open)
            $0.http.emulatorEndpoints = true
        }
        for header in ["Forwarded: for=10.0.0.1", "X-Forwarded-For: 10.0.0.1", "Via: 1.1 proxy"] {
            let http = HTTPTestClient(port: Int(live.gateway.port))
            expectEqual(http.request("GET", Self.document)?.status, 404)
            let refused = try #require(http.request("GET", Self.document, headers: [header]))
            expect(refused.status == 403 && refused.body.contains("--rules"), "\(header)")
            expectEqual(http.request("GET", "/metrics", headers: [header])?.status, 403)
            expectEqual(http.request("DELETE", Self.reset, headers: [header])?.status, 403)
            expectEqual(http.request("GET", "/livez", headers: [header])?.status, 200)
        }
    }

    /// A closed store whose documents are all in runs.
    private static func prepare(_ configuration: StoreConfiguration, documents: Int) throws {
        let store = try DocumentStore.open(configuration)
        defer { store.close() }
        for start in stride(from: 0, to: documents, by: 100) {
            var writes = WriteList(database: try DatabaseName(Harness.database))
            for number in start..<start + 100 {
                let fields = Harness.fields(["p": .string(String(repeating: "x", count: 1_000))])
                try Harness.name("c/d\(1_000 + number)").withUTF8Span { (name) throws(RequestError) in
                    try writes.update(name, fields: fields.byteSpan)
                }
            }
            let done = DispatchSemaphore(value: 0)
            store.commit(CommitRequest(writes: writes)) { _ in done.signal() }
            done.wait()
        }
    }

    @Test
    func `The emulator's reset of documents that are not in memory waits for them beside the loop`() throws {
        let reads = Atomic<Int>(0)
        let live = try LiveDatabaseServer {
            $0.store.engine.meetsPagesCold = true
            $0.store.engine.idleCheckpointMicroseconds = 0
            do { try Self.prepare($0.store, documents: 400) } catch { Issue.record(error) }
            $0.store.engine.fault = { operation in
                if operation == .readPages { reads.add(1, ordering: .relaxed) }
                return 0
            }
            $0.http.emulatorEndpoints = true
        }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let path = "/emulator/v1/\(Harness.database)/documents"
        expectEqual(http.request("DELETE", path)?.status, 200)
        expect(reads.load(ordering: .relaxed) > 0)
        expectEqual(http.request("GET", "/v1/\(Harness.database)/documents/c")?.body.contains("name"), false)
    }

    @Test
    func `Rules that come over the emulator's route decide from then on`() throws {
        let live = try LiveDatabaseServer {
            $0.authorization = try? TestAuthorization.make(nil, mode: .open)
            $0.http.emulatorEndpoints = true
        }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        expectEqual(http.request("GET", Self.rules)?.status, 404)
        let block = "match /c/{x} { allow read: if 'a' == 'a' && request.auth != null; }"
        let text = "service cloud.firestore { match /databases/{d}/documents { \(block) } }"
        let body = "{\"rules\":{\"files\":[{\"name\":\"security.rules\",\"content\":\"\(text)\"}]}}"
        expectEqual(http.request("PUT", Self.rules, body: body)?.status, 200)
        expectEqual(http.request("GET", Self.rules)?.body.contains("request.auth != null"), true)
        expectEqual(http.request("GET", Self.document)?.status, 403)
        let user = "Authorization: \(TestAuthorization.user("alice"))"
        expectEqual(http.request("GET", Self.document, headers: [user])?.status, 404)
        expectEqual(http.request("DELETE", Self.document, headers: [user])?.status, 403)
        expectEqual(http.request("DELETE", Self.document, headers: ["Authorization: Bearer owner"])?.status, 200)
        let other = Self.document.replacing("/p/", with: "/q/")
        expectEqual(http.request("GET", other)?.status, 404)
        let wrong = try #require(http.request("PUT", Self.rules, body: body.replacing("!= null", with: "!=")))
        expect(wrong.status == 400 && wrong.body.contains("Error compiling rules:\\nL1:"))
        expectEqual(http.request("GET", Self.document)?.status, 403)
        let coverage = "/emulator/v1/projects/p:ruleCoverage"
        expectEqual(http.request("GET", coverage)?.body.contains("\"count\":"), true)
        expectEqual(http.request("GET", coverage + ".html")?.body.contains("<html>"), true)
        for damaged in ["", "{}", "{\"rules\":{}}", "{\"rules\":{\"files\":[]}}", "{\"rules\":{\"files\":[{}]}}"] {
            expectEqual(http.request("PUT", Self.rules, body: damaged)?.status, 400, "\(damaged)")
        }
    }

    @Test
    func `A closed server takes no rules over the emulator's route`() throws {
        var list = PrincipalList()
        let key = try list.addAPIKey(
            to: "root", PrincipalList.Grant(role: .admin, scope: Scope(projects: nil)), now: 1)
        let authorization = try TestAuthorization.make(
            "match /none { allow get; }", mode: .closed, records: list.records)
        let live = try LiveDatabaseServer {
            $0.authorization = authorization
            $0.http.emulatorEndpoints = true
        }
        let http = HTTPTestClient(port: Int(live.gateway.port))
        let text = "service cloud.firestore { match /x { allow read; } }"
        let body = "{\"rules\":{\"files\":[{\"content\":\"\(text)\"}]}}"
        let refused = try #require(
            http.request("PUT", Self.rules, body: body, headers: ["Authorization: Bearer \(key)"]))
        expect(refused.status == 403 && refused.body.contains("hearth rules apply"))
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
            expectEqual(status(host), 200, "\(host)")
        }
        for host in [
            "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "[::2]", "10.0.0.1", "hearth.example",
            "localhost:x",
        ] {
            expectEqual(status(host), 403, "\(host)")
        }
        let old = HTTPTestClient(port: Int(live.gateway.port))
        old.send("GET /livez HTTP/1.0\r\n\r\n")
        expectEqual(old.reply()?.status, 200)
    }

    @Test
    func `Names are any, local, or a list without ports`() {
        expect(AllowedHosts("any") == .any && AllowedHosts("any")?.contains("evil.example") == true)
        expectEqual(AllowedHosts("local"), .local(and: []))
        expectEqual(AllowedHosts("Hearth,db.example.org"), .local(and: ["hearth", "db.example.org"]))
        for text in ["", "a,", "a:80", "http://a", "a b"] { expectNil(AllowedHosts(text), "\(text)") }
    }
}
