// Live targets under security rules.

import Authorization
import AuthorizationTestSupport
import Basics
import DocumentModel
import FirestoreMessages
import FirestoreService
import Foundation
import Identity
import ServiceTestSupport
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct GuardedListenTests {
    private static let rules = """
        match /rooms/{id} { allow read: if get(/databases/$(database)/documents/members/$(request.auth.uid)).data.ok; }
        match /notes/{id} { allow get: if resource.data.owner == request.auth.uid; }
        """

    /// A stream of a user.
    private struct Listener {
        let store: GuardedStore
        let call: TestCall
        private let received = Received()

        /// What has come, each message decoded once: thousands of listeners are looked at again and again.
        private final class Received {
            var messages: [ListenResponse] = []
            /// The targets that are removed, with the codes of their causes.
            var removals: [Int32: StatusCode?] = [:]

            func add(_ message: ListenResponse) {
                messages.append(message)
                guard case .targetChange(let change) = message, change.kind == .remove else { return }
                for target in change.targets { removals[target] = .some(change.cause?.code) }
            }
        }

        init(_ store: GuardedStore, as uid: String = "alice") {
            self.store = store
            call = TestCall(
                loop: store.harness.loop, method: .listen, authorization: TestAuthorization.user(uid))
        }

        func begin(_ target: ListenTarget) {
            store.harness.service.begin(call, request(target))
        }

        func add(_ target: ListenTarget) { call.send(request(target)) }

        private func request(_ target: ListenTarget) -> [UInt8] {
            ListenRequest(database: Harness.database, .add(target)).encodedBytes()
        }

        var messages: [ListenResponse] {
            get throws {
                for bytes in call.answer.messages.dropFirst(received.messages.count) {
                    received.add(try ListenResponse(wire: bytes.span.bytes))
                }
                return received.messages
            }
        }

        /// Waits until a target is current.
        func waitUntilCurrent(_ id: Int32) {
            expect(store.harness.loop.run { has(.current, id) != nil })
        }

        /// Waits until a target is removed, and returns why.
        func waitForRemoval(_ id: Int32) -> StatusCode? {
            expect(store.harness.loop.run { has(.remove, id) != nil })
            return has(.remove, id)?.cause?.code
        }

        private func has(
            _ kind: ListenResponse.TargetChange.Kind, _ id: Int32
        ) -> ListenResponse.TargetChange? {
            for message in ((try? messages) ?? []).reversed() {
                if case .targetChange(let change) = message, change.kind == kind, change.targets == [id] {
                    return change
                }
            }
            return nil
        }

        /// The targets that are removed, with the codes of their causes.
        var removals: [Int32: StatusCode?] {
            get throws {
                _ = try messages
                return received.removals
            }
        }

        /// The number of documents that the stream has got.
        var documents: Int {
            get throws {
                try messages.count { message in
                    if case .documentChange = message { true } else { false }
                }
            }
        }
    }

    private static func rooms(_ id: Int32) -> ListenTarget {
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "rooms")])
        return ListenTarget(.query(parent: Harness.root, query), id: id)
    }

    private static func note(_ name: String, _ id: Int32) -> ListenTarget {
        ListenTarget(.documents([Harness.name("notes/\(name)")]), id: id)
    }

    @Test
    func `A target that is denied is removed with its cause, and the others stay`() throws {
        let store = try GuardedStore(Self.rules)
        try store.set("notes/a", ["owner": .string("alice")])
        try store.set("notes/b", ["owner": .string("bob")])
        let listener = Listener(store)
        listener.begin(Self.note("b", 1))
        listener.add(Self.note("a", 2))
        expectEqual(listener.waitForRemoval(1), .permissionDenied)
        listener.waitUntilCurrent(2)
        try expectEqual(listener.documents, 1)
        expectNil(listener.call.answer.status)
    }

    @Test
    func `A query ends when a document that its rule rests on says otherwise, and nothing is sent after that`() throws {
        let store = try GuardedStore(Self.rules)
        try store.set("members/alice", ["ok": .boolean(true)])
        try store.set("rooms/a", ["n": .integer(1)])
        let listener = Listener(store)
        listener.begin(Self.rooms(1))
        listener.waitUntilCurrent(1)
        try store.set("rooms/b", ["n": .integer(1)])
        expect(store.harness.loop.run { (try? listener.documents) == 2 })
        try expectEqual(
            store.commit(as: nil) {
                try $0.set("members/alice", Harness.fields(["ok": .boolean(false)]))
                try $0.set("rooms/c", Harness.fields(["n": .integer(1)]))
            }, .ok)
        expectEqual(listener.waitForRemoval(1), .permissionDenied)
        try store.set("rooms/d", ["n": .integer(1)])
        try expectEqual(listener.documents, 2)
    }

    @Test
    func `Many listeners whose rule reads one document end with it, and nothing is sent between`() throws {
        let store = try GuardedStore(
            """
            match /rooms/{id} {
                allow read: if get(/databases/$(database)/documents/config/doors).data.open;
            }
            """)
        let isSoak = ProcessInfo.processInfo.environment["HEARTH_SOAK"] != nil
        let (streams, targets) = isSoak ? (20, 500) : (8, 100)
        try store.set("config/doors", ["open": .boolean(true)])
        try store.set("rooms/a", ["n": .integer(1)])
        let listeners = (0..<streams).map { Listener(store, as: "user\($0)") }
        for listener in listeners {
            listener.begin(Self.rooms(1))
            for id in 2...targets { listener.add(Self.rooms(Int32(id))) }
        }
        for listener in listeners { listener.waitUntilCurrent(Int32(targets)) }
        let before = try listeners.map { try $0.documents }
        // Another change in the same commit, one before the loop can have judged, and one after.
        try expectEqual(
            store.commit(as: nil) {
                try $0.set("config/doors", Harness.fields(["open": .boolean(false)]))
                try $0.set("rooms/b", Harness.fields(["n": .integer(2)]))
            }, .ok)
        let change = ContinuousClock.now
        try store.set("rooms/c", ["n": .integer(3)])
        for listener in listeners {
            expect(store.harness.loop.run { (try? listener.removals.count) == targets })
        }
        if isSoak { print("\(streams * targets) listeners are judged after \(ContinuousClock.now - change)") }
        try store.set("rooms/d", ["n": .integer(4)])
        try expectEqual(listeners.map { try $0.documents }, before)
        for listener in listeners { try expect(listener.removals.values.allSatisfy { $0 == .permissionDenied }) }
    }

    @Test
    func `A document ends when it is given to another owner`() throws {
        let store = try GuardedStore(Self.rules)
        try store.set("notes/a", ["owner": .string("alice")])
        let listener = Listener(store)
        listener.begin(Self.note("a", 1))
        listener.waitUntilCurrent(1)
        try store.set("notes/a", ["owner": .string("bob"), "secret": .integer(1)])
        expectEqual(listener.waitForRemoval(1), .permissionDenied)
        try expectEqual(listener.documents, 1)
    }

    @Test
    func `Other rules judge open targets again`() throws {
        let store = try GuardedStore(Self.rules)
        try store.set("notes/a", ["owner": .string("alice")])
        let listener = Listener(store)
        listener.begin(Self.note("a", 1))
        listener.waitUntilCurrent(1)
        store.authorization.replace(
            store.authorization.state.authenticator,
            try TestAuthorization.ruleset("match /notes/{id} { allow write; }"))
        store.harness.service.longLivedStreams.checkAccess()
        expectEqual(listener.waitForRemoval(1), .permissionDenied)
    }

    @Test
    func `A credential that is revoked ends its streams`() throws {
        var list = PrincipalList()
        let grant = PrincipalList.Grant(role: .reader, scope: Scope(projects: nil), bypassesRules: true)
        let key = try list.addAPIKey(to: "batch", grant, now: 1)
        let authorization = try TestAuthorization.make(nil, mode: .closed, records: list.records)
        let harness = try Harness(accessControl: authorization)
        let call = TestCall(loop: harness.loop, method: .listen, authorization: "Bearer \(key)")
        let request = ListenRequest(database: Harness.database, .add(Self.rooms(1))).encodedBytes()
        harness.service.begin(call, request)
        harness.service.longLivedStreams.checkAccess()
        expectNil(call.answer.status)
        authorization.replace(try TestAuthorization.authenticator(mode: .closed), nil)
        harness.service.longLivedStreams.checkAccess()
        expect(harness.loop.run { call.answer.status != nil })
        expectEqual(call.answer.status, .unauthenticated)
    }

    @Test
    func `A stream of writes is judged write by write`() throws {
        let store = try GuardedStore("match /made/{id} { allow create; }")
        let call = TestCall(loop: store.harness.loop, method: .write, authorization: TestAuthorization.user("alice"))
        store.harness.service.begin(call, Self.bytes(WriteRequestMessage(database: Harness.database)))
        func send(_ path: String) throws {
            var writes = WriteList(database: try DatabaseName(Harness.database))
            try writes.set(path, Harness.fields(["n": .integer(1)]))
            call.send(Self.bytes(WriteRequestMessage(writes: writes)))
        }
        try send("made/a")
        expect(store.harness.loop.run { call.answer.messages.count == 2 })
        try send("made/a")
        expect(store.harness.loop.run { call.answer.status != nil })
        expectEqual(call.answer.status, .permissionDenied)
        expectEqual(store.get("made/a", as: nil), .ok)
    }

    private static func bytes(_ message: WriteRequestMessage) -> [UInt8] {
        var writer = ByteBuffer()
        message.encode(into: &writer)
        return writer.copyBytes()
    }
}
