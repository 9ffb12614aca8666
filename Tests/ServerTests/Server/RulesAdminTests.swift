// Rules that operators apply to a running server.

import Authorization
import AuthorizationTestSupport
import Basics
import DocumentStore
import FirestoreMessages
import FirestoreService
import Server
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RulesAdminTests {
    private static let document = "/v1/projects/p/databases/d/documents/c/x"

    private static func text(_ permission: String) -> String {
        "service cloud.firestore { match /databases/{d}/documents { match /c/{x} { \(permission) } } }"
    }

    /// A server that was open when it started.
    private func start() throws -> LiveDatabaseServer {
        let authorization = try TestAuthorization.make(nil, mode: .open)
        return try LiveDatabaseServer {
            $0.authorization = authorization
            let history = RulesHistory(dataDirectory: $0.store.directory)
            $0.rules = (RulesKeeper(history, authorization: authorization), nil)
        }
    }

    private func ask<Reply: FirestoreMessage>(
        _ live: LiveDatabaseServer, _ method: FirestoreMessages.Method, _ request: some FirestoreMessage,
        as type: Reply.Type = Reply.self
    ) throws -> Reply {
        try AdminClient.call(method, request, live.directory.path(of: "data"), as: type)
    }

    @Test
    func `Rules are applied, listed, read and taken back over the socket while serving`() throws {
        let live = try start()
        let http = HTTPTestClient(port: Int(live.gateway.port))
        expectEqual(http.request("GET", Self.document)?.status, 404)
        let (first, second) = (Self.text("allow create;"), Self.text("allow get;"))
        let answer: ApplyRulesResponse = try ask(live, .adminApplyRules, ApplyRulesRequest(text: first))
        expect(answer.changed && answer.closed && answer.security == "closed" && answer.rules.number == 1)
        expectEqual(http.request("GET", Self.document)?.status, 403)
        let next: ApplyRulesResponse = try ask(live, .adminApplyRules, ApplyRulesRequest(text: second))
        expect(next.changed && !next.closed && next.rules.number == 2)
        expectEqual(http.request("GET", Self.document)?.status, 404)
        let back: ApplyRulesResponse = try ask(live, .adminRollbackRules, EmptyMessage())
        expect(back.changed && back.rules.number == 3 && back.rules.byteCount == Int64(first.utf8.count))
        expectEqual(http.request("GET", Self.document)?.status, 403)
        let list: ListRulesResponse = try ask(live, .adminListRules, EmptyMessage())
        expect(list.rules.map(\.number) == [1, 2, 3] && list.rules.last == back.rules && list.file.isEmpty)
        let newest: GetRulesResponse = try ask(live, .adminGetRules, GetRulesRequest(number: 0))
        expect(newest.text == first && newest.rules == back.rules)
        let middle: GetRulesResponse = try ask(live, .adminGetRules, GetRulesRequest(number: 2))
        expectEqual(middle.text, second)
        // What the methods of rules count has places in the metrics.
        let metrics = http.request("GET", "/metrics")?.body ?? ""
        expect(metrics.contains("method=\"Admin/GetRules\",code=\"OK\"} 2"), "\(metrics)")
    }

    @Test
    func `The TCP port serves the methods to those who may administer the server`() throws {
        let live = try start()
        let request = ApplyRulesRequest(text: Self.text("allow get;")).encodedBytes()
        let applied = live.call(.adminApplyRules, request)
        expectEqual(applied.outcome.code, .ok)
        for method in [FirestoreMessages.Method.adminApplyRules, .adminRollbackRules, .adminListRules, .adminGetRules] {
            expectEqual(live.call(method, request).outcome.code, .unauthenticated, "\(method.name)")
        }
    }

    private static func removesTarget(_ message: [UInt8]) -> Bool {
        guard case .targetChange(let change) = try? ListenResponse(wire: message.span.bytes) else { return false }
        return change.kind == .remove && change.cause?.code == .permissionDenied
    }

    @Test
    func `A listener of a server that was open is judged by the rules that are applied`() throws {
        let live = try start()
        let listener = MessageListener()
        let target = ListenTarget(.documents([Harness.name("c/x")]), id: 1)
        let request = ListenRequest(database: Harness.database, .add(target)).encodedBytes()
        live.connection.stream(
            FirestoreMessages.Method.listen.rpc, request, isComplete: false, handler: listener)
        try listener.came.wait(until: "the target is listened to")
        let _: ApplyRulesResponse = try ask(
            live, .adminApplyRules, ApplyRulesRequest(text: Self.text("allow create;")))
        try waitUntil("the target is removed") {
            listener.state.withLock { $0.messages.contains(where: Self.removesTarget) }
        }
        live.connection.close()
    }

    @Test
    func `Rules with an error, and a server that keeps none, are refused`() throws {
        let live = try start()
        let wrong = ApplyRulesRequest(text: "service {").encodedBytes()
        expectEqual(live.call(.adminApplyRules, wrong).outcome.code, .invalidArgument)
        expectEqual(live.call(.adminRollbackRules, []).outcome.code, .failedPrecondition)
        expectEqual(live.call(.adminGetRules, []).outcome.code, .notFound)
        let plain = try LiveDatabaseServer()
        for method in [FirestoreMessages.Method.adminApplyRules, .adminRollbackRules, .adminListRules, .adminGetRules] {
            expectEqual(plain.call(method, []).outcome.code, .failedPrecondition, "\(method.name)")
        }
    }

    @Test
    func `A server does not start with older rules than its directory has`() throws {
        let directory = TemporaryDirectory("rules")
        let history = RulesHistory(dataDirectory: directory.path)
        _ = try history.append(Self.text("allow get;"))
        var configuration = DatabaseServerConfiguration(
            store: StoreConfiguration(directory: directory.path), log: Log(level: .error) { _ in })
        configuration.transport.port = 0
        configuration.rules = (RulesKeeper(history), nil)
        #expect(throws: RequestError.self) { try DatabaseServer.start(configuration).stop() }
        configuration.rules = (RulesKeeper(history), 1)
        try DatabaseServer.start(configuration).stop()
    }
}
