// Calls with tokens, against a scripted server.

import Basics
import ClientTestSupport
import DocumentModel
import FirestoreMessages
import Synchronization
import TestSupport
import Testing

@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct ClientTokenTests {
    private struct Locked: Error, CustomStringConvertible {
        let description = "the keychain is locked"
    }

    private func client(
        _ server: FakeServer, _ provider: TestProvider, _ change: (inout HearthClient.Configuration) -> Void = { _ in }
    ) throws -> HearthClient {
        var configuration = try HearthClient.Configuration(address: server.address)
        configuration.tokenProvider = { try await provider.token($0) }
        change(&configuration)
        return try HearthClient(configuration)
    }

    private func call(
        _ client: HearthClient, kind: CallKind = .repeatable, options: HearthClient.CallOptions = .standard
    ) async throws -> String {
        String(decoding: try await client.call(.getDocument, [], kind: kind, options: options), as: UTF8.self)
    }

    /// Replies with what the client has shown.
    private static func echo(_ call: ScriptedCall) -> Reaction {
        .respond(Array((call.authorization ?? "nothing").utf8))
    }

    /// Replies so to one token and refuses all others.
    private static func accept(_ token: String) -> FakeServer.Script {
        { call in
            call.authorization == "Bearer \(token)" ? echo(call) : .fail(.unauthenticated, "the token has expired")
        }
    }

    @Test
    func `Every call shows the token, also the first ones`() async throws {
        let server = try FakeServer(script: Self.echo)
        let provider = TestProvider { _, _ in "abc" }
        let client = try client(server, provider)
        for _ in 0..<3 { try await expectEqual(call(client), "Bearer abc") }
        // A connection that cannot be opened at once asks again.
        expect(provider.questions.first == false && !provider.questions.contains(true))
        await client.close()
    }

    @Test(arguments: [nil, ""])
    func `Without a user calls show nothing`(token: String?) async throws {
        let server = try FakeServer(script: Self.echo)
        let client = try client(server, TestProvider { _, _ in token })
        try await expectEqual(call(client), "nothing")
        await client.close()
    }

    @Test(arguments: [CallKind.repeatable, .once, .commit, .queuedWrite])
    func `A call whose token is refused is made again with a new one`(kind: CallKind) async throws {
        let server = try FakeServer(script: Self.accept("new"))
        let provider = TestProvider { _, force in force ? "new" : "old" }
        let client = try client(server, provider)
        try await expectEqual(call(client, kind: kind), "Bearer new")
        try await expectEqual(call(client, kind: kind), "Bearer new")
        expectEqual(provider.questions.count(where: \.self), 1)
        expectEqual(server.calls.map(\.authorization), ["Bearer old", "Bearer new", "Bearer new"])
        await client.close()
    }

    @Test(arguments: [1, 3])
    func `Many calls with a refused token ask for a new one once`(eventLoops: Int) async throws {
        let server = try FakeServer(loops: 2, script: Self.accept("new"))
        let provider = TestProvider { _, force in
            try await Task.sleep(for: .milliseconds(20))
            return force ? "new" : "old"
        }
        let client = try client(server, provider) {
            $0.eventLoops = eventLoops
            $0.callsPerConnection = 4
        }
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 { group.addTask { try await call(client) } }
            for try await shown in group { expectEqual(shown, "Bearer new") }
        }
        expectEqual(provider.questions.count(where: \.self), 1)
        expectEqual(provider.questionsAtOnceMax, 1)
        await client.close()
    }

    @Test
    func `A call whose new token is refused too ends with the server's error`() async throws {
        let server = try FakeServer(script: Self.accept("other"))
        let client = try client(server, TestProvider { _, force in force ? "token2" : "token1" })
        let error = await #expect(throws: RequestError.self) { try await call(client) }
        expectEqual(error, RequestError(.unauthenticated, "the token has expired"))
        expectEqual(server.calls.map(\.authorization), ["Bearer token1", "Bearer token2"])
        await client.close()
    }

    @Test(arguments: [HearthClient.CallOptions.standard, .failFast])
    func `A provider that fails ends calls with its text`(options: HearthClient.CallOptions) async throws {
        let server = try FakeServer(script: Self.echo)
        let client = try client(server, TestProvider { _, _ in throw Locked() })
        for _ in 0..<3 {
            let error = await #expect(throws: RequestError.self) { try await call(client, options: options) }
            expectEqual(error?.code, .unauthenticated)
            expectEqual(error?.message.contains("the keychain is locked"), true)
        }
        expect(server.calls.isEmpty)
        await client.close()
    }

    @Test
    func `A provider that fails when a token was refused ends the call with its text`() async throws {
        let server = try FakeServer(script: Self.accept("new"))
        let client = try client(server, TestProvider { _, force in if force { throw Locked() } else { "old" } })
        let error = await #expect(throws: RequestError.self) { try await call(client) }
        expectEqual(error, RequestError(.unauthenticated, "the token provider failed: the keychain is locked"))
        await client.close()
    }

    @Test
    func `A provider that never answers ends calls`() async throws {
        let server = try FakeServer(script: Self.echo)
        let never = TestProvider { _, _ in
            // Until the client cancels the question.
            try await Task.sleep(for: .seconds(100_000))
            return "late"
        }
        let client = try client(server, never) { $0.tokenTimeout = .milliseconds(50) }
        for _ in 0..<2 {
            let error = await #expect(throws: RequestError.self) { try await call(client) }
            expectEqual(error?.code, .unauthenticated)
            expectEqual(error?.message.contains("has not answered within 50 ms"), true)
        }
        expectEqual(never.questionsAtOnceMax, 1)
        await client.close()
    }

    @Test
    func `Closing ends calls that wait for a token`() async throws {
        let server = try FakeServer(script: Self.echo)
        let never = TestProvider { _, _ in
            // Until the client cancels the question.
            try await Task.sleep(for: .seconds(100_000))
            return "late"
        }
        let client = try client(server, never)
        let waiting = Task { try await call(client) }
        try await eventually("the provider is asked") { !never.questions.isEmpty }
        await client.close()
        let error = await #expect(throws: RequestError.self) { try await waiting.value }
        expectEqual(error?.code, .cancelled)
    }

    @Test
    func `A write of the SDK waits for the provider and for a token that the server takes`() async throws {
        let server = try FakeServer(script: Self.accept("good"))
        let provider = TestProvider { question, _ in
            if question < 3 { throw Locked() }
            return question < 5 ? "bad" : "good"
        }
        let client = try client(server, provider)
        let shown =
            await waiting { _, completion in
                client.call(.getDocument, [], kind: .queuedWrite, options: .standard, completion: completion)
            } as Result<[UInt8], RequestError>
        try expectEqual(shown.get(), Array("Bearer good".utf8))
        await client.close()
    }

    @Test
    func `A token is replaced before it expires, and open calls continue`() async throws {
        let server = try FakeServer { call in call.method == .commit ? .hold : Self.echo(call) }
        let provider = TestProvider { question, _ in
            let now = SystemClock.microseconds() / 1_000_000
            return TestToken.make(#"{"sub":"\#(question)","iat":\#(now),"exp":\#(now + 2)}"#)
        }
        let client = try client(server, provider) { $0.connectionsPerLoop = 1 }
        client.call(.commit, [], kind: .once, options: .standard) { _ in }
        await server.waitForCalls(1)
        let first = try await call(client)
        try await eventually("another token is shown") { try await call(client) != first }
        expectEqual(provider.questions.prefix(2), [false, false])
        expectEqual(server.cancelledCount, 0)
        await client.close()
    }

    @Test
    func `A listener whose token is refused continues with a new one from its last snapshot`() async throws {
        let snapshot = ListenScript.listing(at: 5_000_000)
        let count = Atomic<Int>(0)
        let server = try FakeServer { call in
            // A stream that the server ends, then one whose token has expired, then one that lasts.
            switch count.add(1, ordering: .relaxed).newValue {
            case 1: .stream(snapshot)
            case 2: .fail(.unauthenticated, "the token has expired")
            default: .hold
            }
        }
        let client = try client(server, TestProvider { _, force in force ? "new" : "old" })
        let stream = client.makeWatchStream(in: try DatabaseName(project: "p")) { _ in }
        stream.add(1, .documents(["projects/p/databases/(default)/documents/c/d"]))
        await server.waitForCalls(3)
        expectEqual(server.calls.map(\.authorization), ["Bearer old", "Bearer old", "Bearer new"])
        for call in server.calls.dropFirst() {
            guard case .add(let target) = try ListenRequest(wire: call.payload.span.bytes).change else {
                Issue.record("a listener adds its target")
                continue
            }
            guard case .token = target.resume else {
                Issue.record("a listener continues from its last snapshot")
                continue
            }
        }
        await client.close()
    }

    @Test
    func `A listener that starts again after a change of the user shows the new user's token`() async throws {
        let server = try FakeServer { _ in .hold }
        let user = Mutex("ada")
        let users = Mutex<[String?]>([])
        let provider = TestProvider { _, _ in TestToken.make(#"{"sub":"\#(user.withLock { $0 })"}"#) }
        let client = try client(server, provider) {
            $0.userChanged = { user in users.withLock { $0.append(user) } }
        }
        let stream = client.makeWatchStream(in: try DatabaseName(project: "p")) { _ in }
        stream.add(1, .documents(["projects/p/databases/(default)/documents/c/d"]))
        await server.waitForCalls(1)
        user.withLock { $0 = "bob" }
        client.tokenMayHaveChanged()
        try await eventually("the client has the other user's token") { users.withLock { $0 } == ["ada", "bob"] }
        stream.restart()
        await server.waitForCalls(2)
        await server.waitForCancellations(1)
        let shown = ["ada", "bob"].map { "Bearer \(TestToken.make(#"{"sub":"\#($0)"}"#))" }
        expectEqual(server.calls.map(\.authorization), shown)
        await client.close()
    }

    @Test
    func `Another user's token is shown once the program has said that it may have changed`() async throws {
        let server = try FakeServer(script: Self.echo)
        let user = Mutex<String?>("ada")
        let users = Mutex<[String?]>([])
        let provider = TestProvider { _, _ in user.withLock { $0 }.map { TestToken.make(#"{"user_id":"\#($0)"}"#) } }
        let client = try client(server, provider) {
            $0.userChanged = { user in users.withLock { $0.append(user) } }
        }
        let ada = try await call(client)
        for next in ["bob", nil, "bob"] {
            user.withLock { $0 = next }
            let before = try await call(client)
            client.tokenMayHaveChanged()
            try await eventually("the next token is shown") { try await call(client) != before }
        }
        try await expect(call(client) != ada)
        expectEqual(users.withLock { $0 }, ["ada", "bob", nil, "bob"])
        await client.close()
    }

    @Test
    func `A write of the SDK is sent with a token of its user alone`() async throws {
        let server = try FakeServer(script: Self.echo)
        let user = Mutex("ada")
        let provider = TestProvider { _, _ in TestToken.make(#"{"sub":"\#(user.withLock { $0 })"}"#) }
        let client = try client(server, provider)
        let ada = try await call(client)
        let numbers = WriteNumbers()
        let shown = Mutex<[String: String]>([:])
        @Sendable func write(_ name: String, of user: String?) -> HearthClient.OrderedCommit {
            HearthClient.OrderedCommit(
                request: Array(name.utf8), ticket: numbers.begin(), user: user, cancellation: nil
            ) { result in
                let text = (try? result.get()).map { String(decoding: $0, as: UTF8.self) }
                shown.withLock { $0[name] = text ?? "an error" }
            }
        }
        client.commitInOrder([write("b", of: "bob"), write("a", of: "ada"), write("first", of: nil)], of: numbers)
        try await eventually("the writes of the present user are sent") { shown.withLock { $0.count } == 2 }
        expectEqual(shown.withLock { $0 }, ["a": ada, "first": ada])
        user.withLock { $0 = "bob" }
        client.tokenMayHaveChanged()
        try await eventually("the write of the other user is sent") { shown.withLock { $0.count } == 3 }
        let bob = try await call(client)
        expect(bob != ada)
        expect(shown.withLock { $0["b"] } == bob)
        client.commitInOrder([write("a2", of: "ada"), write("first2", of: nil)], of: numbers)
        _ = try await call(client)
        await client.close()
        expect(shown.withLock { $0["a2"] } == "an error" && shown.withLock { $0["first2"] } == "an error")
    }

    @Test
    func `Tokens reach no log and no error`() async throws {
        let canary = "canary0123456789"
        let lines = Mutex<[String]>([])
        let server = try FakeServer { call in
            call.method == .commit ? .fail(.unauthenticated, "no") : .fail(.internal, "no")
        }
        let provider = TestProvider { question, _ in question == 3 ? "\(canary) not a token" : canary }
        let client = try client(server, provider) {
            $0.log = { _, message in lines.withLock { $0.append(message()) } }
        }
        for method in [FirestoreMessages.Method.commit, .getDocument, .commit] {
            do {
                _ = try await client.call(method, [], kind: .once, options: .standard)
                Issue.record("the server refuses all calls")
            } catch {
                lines.withLock { $0.append("\(error)") }
            }
            client.tokenMayHaveChanged()
        }
        try await eventually("the provider has returned what is not a token") { provider.questions.count > 2 }
        await client.close()
        var dumped = ""
        dump(client.configuration, to: &dumped)
        let all = lines.withLock { $0 } + [dumped]
        expect(all.count > 6)
        expect(all.allSatisfy { !$0.contains("canary") })
    }

    @Test
    func `A fixed token is checked, and plain text to another machine is noticed`() throws {
        for (address, isExposed) in [
            ("db.example.org:1", true), ("10.0.0.1", true), ("127.0.0.1:8080", false), ("localhost", false),
            ("[::1]:8080", false), ("127.evil.example.org", true), ("db.localhost", false), ("file::memory:", false),
        ] {
            var configuration = try HearthClient.Configuration(address: address)
            expect(!configuration.exposesToken)
            try configuration.useToken("abc")
            expectEqual(configuration.exposesToken, isExposed, "\(address)")
        }
        var configuration = try HearthClient.Configuration(address: "127.0.0.1")
        let error = #expect(throws: RequestError.self) { try configuration.useToken("canary token") }
        expect(error?.code == .invalidArgument && error?.message.contains("canary") == false)
        expectNil(configuration.tokenProvider)
    }
}
