// Programs whose user changes: pending writes belong to a user.

import ClientTestSupport
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct UserTests {
    /// A JSON Web Token that nobody verifies.
    private static func token(_ user: String) -> String {
        let parts = [#"{"alg":"none"}"#, #"{"user_id":"\#(user)"}"#].map { text in
            Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
                .replacing("=", with: "")
        }
        return parts.joined(separator: ".") + ".x"
    }

    /// A program whose user changes; the first one is ada, or another one.
    private struct Program {
        private final class CurrentUser: Sendable { let name = Mutex("ada") }

        private let user = CurrentUser()
        let firestore: Firestore

        /// - Parameter cache: the directory of a persistent cache.
        init(_ server: FakeServer, _ name: String = "ada", cache: String? = nil) {
            firestore = TestFirestore.make(host: server.address, project: "users", cache: cache)
            user.name.withLock { $0 = name }
            let settings = firestore.settings
            settings.tokenProvider = { [user] _ in UserTests.token(user.name.withLock { $0 }) }
            firestore.settings = settings
        }

        func become(_ name: String) {
            user.name.withLock { $0 = name }
            firestore.userDidChange()
        }

        /// Whether the client knows that this is the user.
        func isKnown(_ name: String) async -> Bool {
            guard let engine = try? firestore.engine() else { return false }
            return await withCheckedContinuation { continuation in
                engine.queue.async {
                    continuation.resume(returning: engine.store.isUserKnown && engine.store.user == name)
                }
            }
        }
    }

    /// Ada has written 1 and bob 2 to one document. The program is ada's, and the server has not taken either write.
    private struct TwoWriters {
        let commits: HeldCommits
        let program: Program
        let reference: DocumentReference

        init() async throws {
            commits = try HeldCommits()
            program = Program(commits.server)
            let reference = program.firestore.document("c/d")
            self.reference = reference
            reference.setData(["n": 1], completion: nil)
            await commits.server.waitForCalls(1)
            await expectEqual(UserTests.number(reference), 1)
            program.become("bob")
            try await eventually("bob does not see what ada has written") { await UserTests.number(reference) == nil }
            reference.setData(["n": 2], completion: nil)
            await expectEqual(UserTests.number(reference), 2)
            program.become("ada")
            try await eventually("ada sees what ada has written") { await UserTests.number(reference) == 1 }
        }
    }

    private static func number(_ reference: DocumentReference) async -> Int? {
        (try? await reference.getDocument(source: .cache))?.get("n") as? Int
    }

    @Test
    func `Another user sees other pending writes, and none is sent with another user's token`() async throws {
        let writers = try await TwoWriters()
        let (program, firestore) = (writers.program, writers.program.firestore)
        let (server, database) = (writers.commits.server, writers.commits.database)
        // The writes differ in the last byte of `fields`, the number.
        writers.commits.release()
        // Bob's write may be sent before: a call that leaves before the pool has ada's token shows bob's.
        try await eventually("ada's write is sent") { database.writes.contains { $0.fields.last == 1 } }
        program.become("bob")
        try await eventually("bob's write is sent") { database.writes.contains { $0.fields.last == 2 } }
        try await firestore.waitForPendingWrites()
        expectEqual(database.writes.count, 2)
        for call in server.calls where call.method == .commit {
            let write = try #require(try ScriptedDatabase.writes(of: call.payload).first)
            expectEqual(call.authorization, "Bearer \(Self.token(write.fields.last == 1 ? "ada" : "bob"))")
        }
        try await firestore.terminate()
    }

    @Test
    func `A write names the one before it of its user, also if that one was sent after writes of another user`()
        async throws
    {
        let server = try FakeServer { call in call.method == .commit ? .hold : .respond([]) }
        let program = Program(server)
        let (firestore, reference) = (program.firestore, program.firestore.document("c/d"))
        _ = try firestore.engine()
        program.become("ada")
        try await eventually("ada is known") { await program.isKnown("ada") }
        try await firestore.disableNetwork()
        reference.setData(["n": 1], completion: nil)
        program.become("bob")
        try await eventually("bob is known") { await program.isKnown("bob") }
        reference.setData(["n": 2], completion: nil)
        try await firestore.enableNetwork()
        await server.waitForCalls(1)
        program.become("ada")
        await server.waitForCalls(2)
        try await eventually("ada is back") { await program.isKnown("ada") }
        reference.setData(["n": 3], completion: nil)
        await server.waitForCalls(3)
        let sent = server.calls.compactMap(\.requestID)
        expectEqual(sent.map(\.sequence), [2, 1, 3])
        expectEqual(sent.map(\.after?.sequence), [nil, nil, 1])
        try await firestore.terminate()
    }

    @Test
    func `waitForPendingWrites is about the writes of one user: a change ends it, and another user waits for none`()
        async throws
    {
        let server = try FakeServer { call in call.method == .commit ? .fail(.unavailable, "later") : .respond([]) }
        let program = Program(server)
        let firestore = program.firestore
        let reference = firestore.document("c/d")
        reference.setData(["n": 1], completion: nil)
        await server.waitForCalls(1)
        await expectEqual(Self.number(reference), 1)
        let ends = Mutex<[Int]>([])
        firestore.waitForPendingWrites { error in ends.withLock { $0.append((error as NSError?)?.code ?? 0) } }
        program.become("bob")
        try await eventually("the wait has ended") { !ends.withLock { $0.isEmpty } }
        expectEqual(ends.withLock { $0 }, [FirestoreErrorCode.cancelled.rawValue])
        await expectNil(Self.number(reference))
        firestore.waitForPendingWrites { error in ends.withLock { $0.append((error as NSError?)?.code ?? 0) } }
        try await eventually("bob has no writes") { ends.withLock { $0.last } == 0 }
        try await firestore.terminate()
    }

    @Test
    func `A total does not wait for the writes of another user, and waits for the user's own`() async throws {
        let server = try FakeServer { call in call.method == .commit ? .fail(.unavailable, "later") : .respond([]) }
        let program = Program(server)
        let firestore = program.firestore
        let reference = firestore.document("c/d")
        reference.setData(["n": 1], completion: nil)
        await server.waitForCalls(1)
        program.become("bob")
        try await eventually("bob does not see what ada has written") { await Self.number(reference) == nil }
        let ends = Mutex<[String]>([])
        func total(_ end: String, _ collection: String) {
            firestore.afterPendingWrites(in: ReadScope(collection: collection), nil) {
                ends.withLock { $0.append(end) }
            }
        }
        firestore.document("other/d").setData(["n": 2], completion: nil)
        total("bob's own writes", "other")
        total("ada's writes", "c")
        try await eventually("one wait has ended") { ends.withLock { !$0.isEmpty } }
        expectEqual(ends.withLock { $0.first }, "ada's writes", "a total does not wait for what is not sent")
        // The end of the client ends the other one.
        try await firestore.terminate()
        expectEqual(ends.withLock { $0 }, ["ada's writes", "bob's own writes"])
    }

    @Test
    func `A total that waits while the user changes waits for the writes of the new user`() async throws {
        let writers = try await TwoWriters()
        let (program, firestore, reference) = (writers.program, writers.program.firestore, writers.reference)
        let database = writers.commits.database
        // What the server has of both users when a wait ends.
        let ends = Mutex<[String: [UInt8?]]>([:])
        for (name, scope) in [
            ("a collection", ReadScope(collection: "c")), ("everything", .everything),
            ("another collection", ReadScope(collection: "other")),
        ] {
            _ = try firestore.engine().whenWritesAreSettled(in: scope) { error in
                expectNil(error)
                ends.withLock { $0[name] = database.writes.map { $0.fields.last } }
            }
        }
        program.become("bob")
        try await eventually("bob sees what bob has written") { await Self.number(reference) == 2 }
        expectEqual(ends.withLock { $0 }, ["another collection": []])
        writers.commits.release()
        try await eventually("both waits have ended") { ends.withLock { $0.count } == 3 }
        for (name, writes) in ends.withLock({ $0 }) where name != "another collection" {
            expect(writes.contains(2), "\(name)")
        }
        try await firestore.terminate()
    }

    @Test
    func
        `As the first call, waitForPendingWrites waits for the user of the program and not for that of the last one`()
        async throws
    {
        let refusals = Mutex(Int.max)
        let database = ScriptedDatabase()
        let server = try FakeServer { call in
            let isRefused = refusals.withLock { count in
                defer { count = max(0, count - 1) }
                return count > 0
            }
            return call.method == .commit && isRefused ? .fail(.unavailable, "later") : database.react(to: call)
        }
        let directory = TemporaryDirectory("users")
        let cache = directory.path(of: "cache")
        var program = Program(server, cache: cache)
        program.firestore.document("c/d").setData(["n": 1], completion: nil)
        await server.waitForCalls(1)
        program.become("bob")
        let firestore = program.firestore
        try await eventually("bob does not see what ada has written") {
            await Self.number(firestore.document("c/d")) == nil
        }
        try await firestore.terminate()
        refusals.withLock { $0 = 3 }
        program = Program(server, cache: cache)
        try await program.firestore.waitForPendingWrites()
        expectEqual(database.writes.count, 1)
        try await program.firestore.terminate()
    }

    @Test
    func `Writes of a program that ends before it has a token are sent with the token of its next start`() async throws
    {
        let database = ScriptedDatabase()
        let server = try FakeServer { database.react(to: $0) }
        let directory = TemporaryDirectory("users")
        let cache = directory.path(of: "cache")
        var program = Program(server, cache: cache)
        try await program.firestore.document("c/d").setData(["n": 1])
        try await program.firestore.terminate()
        // Offline, so nobody asks who the user is.
        program = Program(server, "bob", cache: cache)
        try await program.firestore.disableNetwork()
        program.firestore.document("c/d").setData(["n": 2], completion: nil)
        await expectEqual(Self.number(program.firestore.document("c/d")), 2)
        try await program.firestore.terminate()
        program = Program(server, "bob", cache: cache)
        try await program.firestore.waitForPendingWrites()
        expectEqual(database.writes.map { $0.fields.last }, [1, 2])
        expectEqual(server.calls.last { $0.method == .commit }?.authorization, "Bearer \(Self.token("bob"))")
        try await program.firestore.terminate()
    }

    @Test
    func `A write that is refused while the client ends is not sent again by the next start`() async throws {
        let isRefused = Atomic(false)
        let server = try FakeServer { call in
            guard call.method == .commit else { return .respond([]) }
            return isRefused.load(ordering: .acquiring) ? .fail(.permissionDenied, "no") : .fail(.unavailable, "later")
        }
        let directory = TemporaryDirectory("users")
        let cache = directory.path(of: "cache")
        var program = Program(server, cache: cache)
        let code = Atomic(0)
        program.firestore.document("c/d").setData(["n": 1]) { error in
            code.store((error as NSError?)?.code ?? -1, ordering: .releasing)
        }
        await server.waitForCalls(1)
        try await program.firestore.engine().prepareToClose()
        isRefused.store(true, ordering: .releasing)
        try await eventually("the write is refused") { code.load(ordering: .acquiring) != 0 }
        expectEqual(code.load(ordering: .acquiring), FirestoreErrorCode.permissionDenied.rawValue)
        try await program.firestore.terminate()
        let count = server.calls.count { $0.method == .commit }
        program = Program(server, cache: cache)
        await expectNil(Self.number(program.firestore.document("c/d")))
        try await program.firestore.waitForPendingWrites()
        expectEqual(server.calls.count { $0.method == .commit }, count)
        try await program.firestore.terminate()
    }
}
