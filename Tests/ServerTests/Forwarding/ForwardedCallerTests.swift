// Whose word about a caller is taken.

import Authorization
import AuthorizationTestSupport
import Basics
import DocumentModel
import FirestoreMessages
import FirestoreService
import Foundation
import Identity
import NativeProtocol
import Server
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ForwardedCallerTests {
    private static let document = "/v1/projects/p/databases/d/documents/c/x"
    private static let rules = """
        match /c/{x} {
            allow read: if true;
            allow write: if request.auth.uid == 'alice' && request.auth.token.kind == 'k';
        }
        """

    /// A principal of the whole server, with its key.
    private static func principal(_ role: Role) throws -> (records: [PrincipalRecord], key: String) {
        var list = PrincipalList()
        let grant = PrincipalList.Grant(role: role, scope: Scope(projects: nil), bypassesRules: true)
        let key = try list.addAPIKey(to: "node", grant, now: 1)
        return (list.records, "\(key)")
    }

    private static func write(_ server: LiveDatabaseServer, _ authorization: String?) -> Int? {
        HTTPTestClient(port: Int(server.gateway.port)).request(
            "PATCH", document, body: "{\"fields\":{}}", headers: authorization.map { ["Authorization: \($0)"] } ?? []
        )?.status
    }

    @Test
    func `The source judges a forwarded write by the follower's user`() throws {
        let pair = try ServerPair {
            $0.authorization = try? TestAuthorization.make(Self.rules)
        } follower: {
            $0.authorization = try? TestAuthorization.make("match /c/{x} { allow read: if true; }")
        }
        let claims = "\"kind\":\"k\""
        expectEqual(Self.write(pair.follower, TestAuthorization.user("alice", claims: claims)), 200)
        expectEqual(Self.write(pair.follower, TestAuthorization.user("alice")), 403)
        expectEqual(Self.write(pair.follower, TestAuthorization.user("bob", claims: claims)), 403)
        expectEqual(Self.write(pair.follower, nil), 403)
        expectEqual(Self.write(pair.follower, "Bearer owner"), 200)
    }

    @Test
    func `A closed source takes no unverified caller from a follower that verifies nobody`() throws {
        let (records, key) = try Self.principal(.admin)
        let modes: [(SecurityMode, String?)] = [
            (.open, nil), (.emulator, "Bearer owner"),
            (.emulator, TestAuthorization.user("alice", claims: "\"kind\":\"k\"")),
        ]
        for (mode, credential) in modes {
            let pair = try ServerPair(token: key) {
                $0.authorization = try? TestAuthorization.make(Self.rules, mode: .closed, records: records)
            } follower: {
                $0.authorization = try? TestAuthorization.make(Self.rules, mode: mode)
            }
            expectEqual(Self.write(pair.follower, credential), 403, "\(mode)")
        }
        // Principals of a closed follower keep their roles.
        let (writers, writer) = try Self.principal(.writer)
        let (readers, reader) = try Self.principal(.reader)
        for (others, credential, status) in [(writers, writer, 200), (readers, reader, 403)] {
            let pair = try ServerPair(token: key) {
                $0.authorization = try? TestAuthorization.make(nil, mode: .closed, records: records)
            } follower: {
                $0.authorization = try? TestAuthorization.make(nil, mode: .closed, records: others)
            }
            expectEqual(Self.write(pair.follower, "Bearer \(credential)"), status)
            expectEqual(Self.write(pair.follower, "Bearer \(credential)x"), 401)
            expectEqual(Self.write(pair.follower, nil), 401)
        }
    }

    @Test
    func `A write stream ends when its principal has other rights at the follower`() throws {
        let (records, key) = try Self.principal(.admin)
        let directory = TemporaryDirectory("principals")
        let path = directory.path(of: "principals.json")
        let writer = try PrincipalFile.edit(path) { (list) throws(PrincipalFault) in
            let grant = PrincipalList.Grant(role: .writer, scope: Scope(projects: nil), bypassesRules: true)
            return try list.addAPIKey(to: "batch", grant, now: 1)
        }
        let authorization = try TestAuthorization.make(
            nil, mode: .closed, records: try PrincipalFile.read(path))
        let pair = try ServerPair(token: key) {
            $0.authorization = try? TestAuthorization.make(nil, mode: .closed, records: records)
        } follower: {
            $0.authorization = authorization
        }
        let connection = pair.follower.connect()
        defer { connection.close() }
        connection.show(try #require(Credential(writer)))
        let stream = MessageListener()
        var first = ByteBuffer()
        WriteRequestMessage(database: Harness.database).encode(into: &first)
        connection.stream(
            FirestoreMessages.Method.write.rpc, first.copyBytes(), isComplete: false, handler: stream)
        try stream.came.wait(until: "the stream is open")
        // The same key, of a principal that may only read from now on.
        let text = try String(contentsOfFile: path, encoding: .utf8).replacing("\"writer\"", with: "\"reader\"")
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: Data(text.utf8))
        try file.close()
        authorization.replace(
            try TestAuthorization.authenticator(mode: .closed, records: try PrincipalFile.read(path)))
        try stream.ended.wait(until: "the stream has ended")
        expectEqual(stream.state.withLock { $0.outcome.code }, .unavailable)
    }

    @Test
    func `The source looks at the user whom a follower vouches for`() throws {
        let (records, key) = try Self.principal(.admin)
        let revocations = Revocations()
        let authorization = try TestAuthorization.make(Self.rules, mode: .closed, records: records)
        authorization.replace(
            try TestAuthorization.authenticator(mode: .closed, records: records, revocations: revocations))
        let source = try LiveDatabaseServer { $0.authorization = authorization }
        let connection = source.connect()
        defer { connection.close() }
        connection.show(try #require(Credential(key)))
        let now = Int64(SystemClock.microseconds() / 1_000_000)
        func write(_ uid: String, signedInAt: Int64, expiresAt: Int64) throws -> StatusCode {
            let user = """
                {"verified":true,"kind":"user","uid":"\(uid)","claims":{"kind":"k"},
                "signed_in_at":\(signedInAt),"expires_at":\(expiresAt)}
                """
            let head = ForwardedHead(method: .commit, caller: Array(user.utf8))
            let message = try LiveDatabaseServer.commitRequest("c/x", [])
            return source.stream(.adminForward, head.request(message.byteSpan), on: connection).outcome.code
        }
        try expectEqual(write("alice", signedInAt: now - 100, expiresAt: now + 1_000), .ok)
        try expectEqual(write("alice", signedInAt: now - 200, expiresAt: now - 100), .unauthenticated)
        try revocations.revoke(uid: "alice", before: now - 50)
        // Other bytes than those of the caller before.
        try expectEqual(write("alice", signedInAt: now - 101, expiresAt: now + 1_001), .unauthenticated)
        try expectEqual(write("alice", signedInAt: now - 40, expiresAt: now + 1_000), .ok)
    }

    @Test(arguments: [nil, Role.reader, .writer])
    func `Nobody else is believed about a caller`(role: Role?) throws {
        let (records, key) = try Self.principal(role ?? .reader)
        let live = try LiveDatabaseServer {
            $0.authorization = try? TestAuthorization.make(Self.rules, mode: .closed, records: records)
        }
        let admin = VouchedCaller(.admin, isVerified: true).bytes
        let message = try LiveDatabaseServer.commitRequest("c/x", [])
        let head = ForwardedHead(method: .commit, caller: admin)
        let connection = live.connect()
        defer { connection.close() }
        if role != nil { connection.show(try #require(Credential(key))) }
        let outcome = live.stream(.adminForward, head.request(message.byteSpan), on: connection).outcome
        expectEqual(outcome.code, role == nil ? .unauthenticated : .permissionDenied)
        let newest = live.call(.adminNewestVersion, [], on: connection).outcome
        expectEqual(newest.code, outcome.code)
    }

    @Test
    func `A caller survives the way, and other bytes are nobody`() throws {
        let text = """
            {"verified":true,"kind":"service","name":"n","role":"writer","bypasses_rules":false,
            "projects":["p"],"collections":["a","b"],"expires_at":7}
            """
        let principal = try #require(VouchedCaller(bytes: Array(text.utf8)))
        let again = try #require(VouchedCaller(bytes: principal.bytes))
        expect(again.isVerified && again.authentication.expiresAt == 7)
        guard case .service(let found) = again.authentication.caller else {
            Issue.record("the principal is another caller")
            return
        }
        expectEqual(found.scope, Scope(projects: ["p"], collections: ["a", "b"]))
        expect(found.role == .writer && !found.bypassesRules && found.name == "n")
        for text in ["", "{}", "{\"verified\":true}", "{\"verified\":true,\"kind\":\"user\",\"uid\":\"x\"}", "[]"] {
            expectNil(VouchedCaller(bytes: Array(text.utf8)), "\(text)")
        }
    }

    @Test
    func `Forms that are remembered are those of their callers`() throws {
        var forms = VouchedForms()
        var callers: [VouchedCaller] = []
        for verified in [true, false] {
            callers += [Authentication.anonymous, .admin].map { VouchedCaller($0, isVerified: verified) }
        }
        // More than are remembered, and released in between.
        for number in 0..<3_000 {
            let user = "\"kind\":\"user\",\"uid\":\"u\(number)\",\"claims\":{},\"signed_in_at\":1"
            let text = "{\"verified\":\(number % 2 == 0),\(user),\"expires_at\":\(number)}"
            let caller = try #require(VouchedCaller(bytes: Array(text.utf8)))
            let bytes = (0..<2).map { _ in forms.bytes(of: caller) }
            expectEqual(bytes, [caller.bytes, caller.bytes])
            if number < 100 { callers.append(caller) }
        }
        for caller in callers + callers {
            let bytes = forms.bytes(of: caller)
            expectEqual(bytes, caller.bytes)
        }
    }
}
