// Documents of the cache that match a query and that the server has not sent: what the client asks, and what it keeps.
// And targets that the server lists again: because of another number of documents, or of an earlier state.

import Basics
import ClientTestSupport
import DocumentModel
import FirestoreMessages
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20)))
struct LimboTests {
    /// The messages of a Listen stream on which no target has documents.
    private static let nothing = ListenScript.messages(
        { ListenResponseWriter.append(.current, targets: [], at: 2_000_000_000, to: &$0) },
        { ListenResponseWriter.append(.noChange, targets: [], at: 2_000_000_000, to: &$0) })

    @Test
    func `A document that stays in limbo although it exists is asked for once for each state of the server`()
        async throws
    {
        let database = ScriptedDatabase()
        let server = try FakeServer { call in
            call.method == .listen ? .stream(Self.nothing) : database.react(to: call)
        }
        let firestore = TestFirestore.make(host: server.address)
        try await firestore.document("c/a").setData([:])
        firestore.collection("c").addSnapshotListener { _, _ in }
        // Each stream ends after one state.
        try await eventually("some states") { server.calls.count { $0.method == .listen } >= 5 }
        let calls = server.calls
        let asked = calls.count { $0.method == .batchGetDocuments }
        expect(asked > 0)
        expect(asked <= calls.count { $0.method == .listen })
        try await firestore.terminate()
    }

    @Test
    func `An acknowledged document that another client deletes before the server looks does not stay`() async throws {
        let database = ScriptedDatabase()
        let server = try FakeServer { call in
            // The state of the target stays the same, so nothing is sent.
            if call.method == .listen { return .openStream(ListenScript.listing(at: 1_000_000)) }
            let reaction = database.react(to: call)
            if call.method == .commit { database.remove("projects/p/databases/(default)/documents/c/a") }
            return reaction
        }
        let firestore = TestFirestore.make(host: server.address, project: "p")
        let shown = Mutex<[String]>([])
        firestore.collection("c").addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            guard let snapshot else { return }
            let ids = snapshot.documents.map { "\($0.documentID)\($0.metadata.hasPendingWrites ? " pending" : "")" }
            shown.withLock { $0.append("\(ids) \(snapshot.metadata.isFromCache)") }
        }
        try await eventually("the server's state") { shown.withLock { $0.last } == "[] false" }
        try await firestore.document("c/a").setData([:])
        let last = ["[\"a pending\"] false", "[] false"]
        try await eventually("the document is gone") { shown.withLock { $0.suffix(2) == last[...] } }
        try await firestore.terminate()
    }

    @Test
    func `Of several documents the one that may not be read leaves, and comes back when the server sends it`()
        async throws
    {
        let database = ScriptedDatabase()
        let isRefused = Mutex(true)
        let server = try FakeServer { call in
            if call.method == .listen { return .stream(Self.nothing) }
            let names = (try? BatchGetDocumentsRequest(wire: call.payload.byteSpan).documents) ?? []
            let asksForSecret = call.method == .batchGetDocuments && names.contains { $0.hasSuffix("/secret") }
            if asksForSecret, isRefused.withLock({ $0 }) { return .fail(.permissionDenied, "no") }
            return database.react(to: call)
        }
        let firestore = TestFirestore.make(host: server.address)
        let secret = firestore.document("c/secret")
        for reference in [firestore.document("c/open"), secret] { try await reference.setData([:]) }
        try await expectEqual(firestore.collection("c").getDocuments().count, 2)
        let shown = Mutex<[String]>([])
        firestore.collection("c").addSnapshotListener { snapshot, _ in
            shown.withLock { $0 = snapshot?.documents.map(\.documentID) ?? [] }
        }
        try await eventually("what may not be read leaves") { shown.withLock { $0 } == ["open"] }
        do {
            _ = try await secret.getDocument(source: .cache)
            Issue.record("the document is in the cache")
        } catch FirestoreErrorCode.unavailable {
        }
        isRefused.withLock { $0 = false }
        try await expect(secret.getDocument(source: .server).exists)
        try await expect(secret.getDocument(source: .cache).exists)
        try await firestore.terminate()
    }

    /// The messages of a Listen stream on which the target 1 has the document `c/a`.
    ///
    /// - Parameter isMiscounted: whether the server then counts no document.
    private static func listing(isMiscounted: Bool) -> [[UInt8]] {
        let listing = ListenScript.listing(updatedAt: 1_000_000_000, at: 2_000_000_000)
        if !isMiscounted { return listing }
        return listing
            + ListenScript.messages(
                { ListenResponseWriter.appendFilter(target: 1, count: 0, unchanged: nil, to: &$0) },
                { ListenResponseWriter.append(.noChange, targets: [], at: 3_000_000_000, to: &$0) })
    }

    @Test
    func `A document that a listener has stays when a read finds a later state without it`() async throws {
        let later = RunQueryResponse(readTime: TimestampValue(seconds: 3000, nanoseconds: 0)).encodedBytes()
        let streams = Atomic(0)
        let server = try FakeServer { call in
            if call.method == .runQuery { return .stream([later]) }
            let isFirst = streams.add(1, ordering: .relaxed).oldValue == 0
            // What the listener is sent next takes its time.
            return isFirst ? .stream(Self.listing(isMiscounted: false)) : .hold
        }
        let firestore = TestFirestore.make(host: server.address, project: "p")
        let shown = Mutex<[[String]]>([])
        firestore.collection("c").addSnapshotListener { snapshot, _ in
            shown.withLock { $0.append(snapshot?.documents.map(\.documentID) ?? []) }
        }
        try await eventually("the document is shown") { shown.withLock { $0.last } == ["a"] }
        try await expect(firestore.collection("c").getDocuments(source: .server).isEmpty)
        try await expect(firestore.document("c/a").getDocument(source: .cache).exists)
        try await firestore.terminate()
        expectEqual(shown.withLock { $0.last }, ["a"])
    }

    @Test
    func `A document that may not be read stays when the server sends it to a listener before it refuses the read`()
        async throws
    {
        let database = ScriptedDatabase()
        let streams = Atomic(0)
        let server = try FakeServer { call in
            if call.method == .batchGetDocuments { return .fail(.permissionDenied, "no") }
            guard call.method == .listen else { return database.react(to: call) }
            let isFirst = streams.add(1, ordering: .relaxed).oldValue == 0
            return isFirst ? .stream(Self.nothing + Self.listing(isMiscounted: false)) : .hold
        }
        let firestore = TestFirestore.make(host: server.address, project: "p")
        let reference = firestore.document("c/a")
        try await reference.setData([:])
        let shown = Mutex<[String]>([])
        firestore.collection("c").addSnapshotListener { snapshot, _ in
            shown.withLock { $0 = snapshot?.documents.map(\.documentID) ?? [] }
        }
        try await eventually("the document is asked for") { server.calls.contains { $0.method == .batchGetDocuments } }
        // The answer to this read comes after the refusal.
        _ = try await firestore.document("other/a").getDocument(source: .server)
        try await expect(reference.getDocument(source: .cache).exists)
        try await firestore.terminate()
        expectEqual(shown.withLock { $0 }, ["a"])
    }

    @Test
    func `A document that left the cache because it may not be read comes back with a listener that may list it`()
        async throws
    {
        let server = try FakeServer { call in
            guard call.method == .listen, let request = try? ListenRequest(wire: call.payload.byteSpan),
                case .add(let target) = request.change, case .query(_, let query) = target.kind
            else { return .fail(.permissionDenied, "no") }
            // A listener that continues has the document. It is none of the first results.
            let isSent = target.resume == nil && query?.limit == nil
            return .stream(
                ListenScript.listing(of: target.id, updatedAt: isSent ? 1_000_000_000 : nil, at: 2_000_000_000))
        }
        let firestore = TestFirestore.make(host: server.address, project: "p")
        let documents = firestore.collection("c")
        for (query, wanted) in [(documents, ["a"]), (documents.limit(to: 1), []), (documents, ["a"])] {
            let shown = Mutex<[String]?>(nil)
            let registration = query.addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
                guard let snapshot, !snapshot.metadata.isFromCache else { return }
                shown.withLock { $0 = snapshot.documents.map(\.documentID) }
            }
            try await eventually("\(wanted) are shown") { shown.withLock { $0 } == wanted }
            registration.remove()
        }
        try await firestore.terminate()
    }

    @Test
    func `A document in limbo is asked for again when there was no answer and nothing comes from the server`()
        async throws
    {
        let database = ScriptedDatabase()
        let refusals = Atomic(0)
        let server = try FakeServer { call in
            if call.method == .listen { return .openStream(Self.nothing) }
            // More often than one question is repeated.
            let isRefused = call.method == .batchGetDocuments && refusals.add(1, ordering: .relaxed).oldValue < 6
            return isRefused ? .fail(.unavailable, "later") : database.react(to: call)
        }
        let firestore = TestFirestore.make(host: server.address, project: "p")
        try await firestore.document("c/a").setData([:])
        database.remove("projects/p/databases/(default)/documents/c/a")
        let shown = Mutex<[String]?>(nil)
        firestore.collection("c").addSnapshotListener { snapshot, _ in
            shown.withLock { $0 = snapshot?.documents.map(\.documentID) }
        }
        try await eventually("the document leaves") { shown.withLock { $0 } == [] }
        try await firestore.terminate()
    }

    @Test
    func `A write whose reply comes after a state of the server that contains it is not shown as pending any more`()
        async throws
    {
        let database = ScriptedDatabase()
        let server = try FakeServer { call in
            // The write is applied at 1001 s, and undone before the state of 2000 s.
            if call.method == .listen { return .openStream(Self.nothing) }
            let reaction = database.react(to: call)
            if call.method == .commit { database.remove("projects/p/databases/(default)/documents/c/a") }
            return reaction
        }
        let firestore = TestFirestore.make(host: server.address, project: "p")
        let shown = Mutex<[[String]]>([])
        firestore.collection("c").addSnapshotListener { snapshot, _ in
            shown.withLock { $0.append(snapshot?.documents.map(\.documentID) ?? []) }
        }
        try await eventually("the state of the server") { shown.withLock { $0 } == [[]] }
        try await firestore.document("c/a").setData([:])
        try await eventually("the document leaves") { shown.withLock { $0 } == [[], ["a"], []] }
        try await firestore.terminate()
    }

    @Test
    func `A document whose acknowledged write the server has lost is shown as before, though it is listed as before`()
        async throws
    {
        let database = ScriptedDatabase()
        let isRestored = Atomic(false)
        let server = try FakeServer { call in
            guard call.method == .listen else { return database.react(to: call) }
            // The write is applied at 1001 s.
            if !isRestored.load(ordering: .acquiring) {
                return .stream(ListenScript.listing(updatedAt: 999_000_000, at: 1_000_000_000))
            }
            let reset = ListenScript.messages { ListenResponseWriter.append(.reset, targets: [1], to: &$0) }
            return .stream(reset + ListenScript.listing(updatedAt: 999_000_000, at: 2_000_000_000))
        }
        let firestore = TestFirestore.make(host: server.address, project: "p")
        let shown = Mutex<[Int?]>([])
        firestore.collection("c").addSnapshotListener { snapshot, _ in
            shown.withLock { $0 = snapshot?.documents.map { $0.get("n") as? Int } ?? [] }
        }
        try await eventually("the document is shown") { shown.withLock { $0 } == [nil] }
        try await firestore.document("c/a").setData(["n": 1])
        try await eventually("the write is shown") { shown.withLock { $0 } == [1] }
        isRestored.store(true, ordering: .releasing)
        try await eventually("the document is shown as before") { shown.withLock { $0 } == [nil] }
        try await firestore.terminate()
    }

    @Test
    func `After a wrong count the snapshots are from the cache until the server has listed the target again`()
        async throws
    {
        let database = ScriptedDatabase()
        let streams = Atomic(0)
        let server = try FakeServer { call in
            if call.method != .listen { return database.react(to: call) }
            let isFirst = streams.add(1, ordering: .relaxed).oldValue == 0
            return .stream(Self.listing(isMiscounted: isFirst))
        }
        let firestore = TestFirestore.make(host: server.address, project: "p")
        let seen = Mutex<[Bool]>([])
        firestore.collection("c").addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            seen.withLock { $0.append(snapshot?.metadata.isFromCache ?? true) }
        }
        // The first stream ends without the list; the next one has it.
        try await eventually("a second list") { seen.withLock { $0.count } >= 3 }
        expectEqual(seen.withLock { Array($0.prefix(3)) }, [false, true, false])
        try await firestore.terminate()
    }
}
