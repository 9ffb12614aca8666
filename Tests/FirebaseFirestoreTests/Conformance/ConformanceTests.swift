// The conformance cases: what the client sends, what it refuses, and the snapshots that it makes of a Listen stream.

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
struct ConformanceTests {
    /// Cases for which the API has no call, with the reason that the calls give.
    private static let notExpressible = [
        "delete-exists-precond": "the API has no preconditions; transactions send update times",
        "delete-time-precond": "the API has no preconditions; transactions send update times",
        "query-invalid-operator": "operators are methods",
        "query-invalid-path-select": "the API has no projections",
        "query-offset-limit-last-wins": "the API has no offsets",
        "query-select-last-wins": "the API has no projections",
        "update-exists-false-precond": "the API has no preconditions; transactions send update times",
        "update-paths-exists-false-precond": "the API has no preconditions; transactions send update times",
        "update-paths-fp-dup": "a dictionary has each path once",
        "update-paths-uptime": "the API has no preconditions; transactions send update times",
    ]

    /// Calls that must fail in other libraries and that the Apple SDK, and so this client, accepts.
    private static let accepted: Set<String> = [
        // The server compares with null.
        "query-bad-null",
        // A cursor without values is not a bound.
        "query-cursor-endbefore-empty", "query-cursor-startat-empty",
        // The server compares the names.
        "query-wrong-collection",
        // A deletion outside the mask has no effect.
        "set-del-nomerge",
        // An update of nothing requires that the document exists.
        "update-no-paths", "update-paths-no-paths",
    ]

    private static let cases = ConformanceCase.all
    private static let expressible = cases.filter { notExpressible[$0.name] == nil }
    private static let refused = expressible.filter { $0.isError && !accepted.contains($0.name) && $0.listen == nil }
    private static let sent = expressible.filter { !$0.isError || accepted.contains($0.name) }

    /// A client of a scripted server, with the names of the cases.
    private struct Client {
        let database = ScriptedDatabase()
        let server: FakeServer
        let firestore: Firestore

        init(listening responses: [[UInt8]] = []) throws {
            let database = database
            let isFirst = Mutex(true)
            server = try FakeServer { call in
                guard call.method == .listen else { return database.react(to: call) }
                let messages = isFirst.withLock { isFirst in
                    defer { isFirst = false }
                    return isFirst ? responses : []
                }
                return messages.isEmpty ? .hold : .stream(messages)
            }
            firestore = TestFirestore.make(host: server.address, project: ConformanceCalls.project)
        }

        var calls: ConformanceCalls { ConformanceCalls(firestore: firestore) }

        /// The snapshot of a document that the server has.
        func snapshot(_ document: DocumentReference, _ data: [String: Any]) async throws -> DocumentSnapshot {
            try await document.setData(data)
            return try await document.getDocument()
        }
    }

    @Test
    func `All cases are there, and those without a call in the API are the listed ones`() async throws {
        expectEqual(Self.cases.count, 114)
        let names = Set(Self.cases.map(\.name))
        expect(Self.accepted.isSubset(of: names))
        var reasons: [String: String] = [:]
        let client = try Client()
        for test in Self.cases where Self.notExpressible[test.name] != nil {
            do {
                try client.calls.make(test)
                if let query = test.query { _ = try await client.calls.query(query, snapshot: client.snapshot) }
            } catch let error as NotExpressible {
                reasons[test.name] = error.reason
            }
        }
        expectEqual(reasons, Self.notExpressible)
        try await client.firestore.terminate()
    }

    @Test(arguments: sent.filter { $0.write != nil })
    func `A write sends the request of its case`(test: ConformanceCase) async throws {
        let client = try Client()
        try client.calls.make(test)
        try await client.firestore.waitForPendingWrites()
        let writes = client.database.writes
        expectEqual(writes.count, 1)
        if let request = test.write?.request {
            var expected = try ConformanceMessage.writes(request).map(CanonicalWrite.init)
            // The API has no call that creates a document.
            if test.create != nil { expected[0].precondition = nil }
            try expectEqual(writes.map(CanonicalWrite.init), expected)
        }
        try await client.firestore.terminate()
    }

    @Test(arguments: sent.filter { $0.query != nil })
    func `A query is the query of its case`(test: ConformanceCase) async throws {
        let client = try Client()
        let query = try await client.calls.query(try #require(test.query), snapshot: client.snapshot)
        _ = try await query.getDocuments()
        let sent = try #require(client.database.queries.last)
        if let expected = test.query?.query {
            let wanted = try #require(try ConformanceMessage.query(expected)).withEffectiveOrders
            expectEqual(sent.withEffectiveOrders, wanted)
        }
        try await client.firestore.terminate()
    }

    @Test(arguments: refused.map(\.name))
    func `A call that breaks a rule traps with the rule`(name: String) async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            [name = name as String] in
            let test = try ConformanceCase.named(name)
            let client = try Client()
            try client.calls.make(test)
            if let query = test.query { _ = try await client.calls.query(query, snapshot: client.snapshot) }
            exit(0)
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        expect(text.contains("Firestore: "), "\(text)")
    }

    // MARK: Listening

    /// A snapshot in words: documents in their order, then the changes with their indexes.
    private static func describe(_ names: [String], _ changes: [String]) -> [String] {
        ["documents \(names)"] + changes
    }

    private static func describe(_ snapshot: QuerySnapshot) -> [String] {
        func index(_ index: UInt) -> Int { index == UInt(NSNotFound) ? -1 : Int(index) }
        func text(_ document: DocumentSnapshot) -> String {
            "\(document.reference.path) \(document.get("a") ?? "nothing")"
        }
        return describe(
            snapshot.documents.map(text),
            snapshot.documentChanges.map {
                "\($0.type) \(text($0.document)) \(index($0.oldIndex)) \(index($0.newIndex))"
            })
    }

    private static func describe(_ snapshot: ConformanceCase.ExpectedSnapshot) throws -> [String] {
        func text(_ document: JSONValue) throws -> String {
            let wire = try ConformanceMessage.bytes(document, "Document")
            let message = try DocumentMessage(wire: wire.byteSpan)
            let path = message.name.split(separator: "/").dropFirst(5).joined(separator: "/")
            let field = try DocumentModel.FieldPath(segments: ["a"])
            let value = try #require(FieldBytes.value(at: field, in: message.fields))
            guard case .integer(let number) = try Value(wire: value.byteSpan) else {
                throw CocoaError(.coderInvalidValue)
            }
            return "\(path) \(number)"
        }
        return describe(
            try (snapshot.docs ?? []).map(text),
            try (snapshot.changes ?? []).map {
                "\($0.kind.lowercased()) \(try text($0.doc)) \($0.oldIndex ?? 0) \($0.newIndex ?? 0)"
            })
    }

    @Test(arguments: cases.filter { $0.listen != nil })
    func `A Listen stream gives the snapshots of its case`(test: ConformanceCase) async throws {
        let listen = try #require(test.listen)
        let expected = try (listen.snapshots ?? []).map(Self.describe)
        let client = try Client(
            listening: listen.responses.map { try ConformanceMessage.bytes($0, "ListenResponse") })
        let seen = Mutex<(snapshots: [[String]], errors: Int)>(([], 0))
        let registration = client.firestore.collection("C").order(by: "a").addSnapshotListener { snapshot, error in
            seen.withLock { seen in
                if let snapshot { seen.snapshots.append(Self.describe(snapshot)) }
                if error != nil { seen.errors += 1 }
            }
        }
        try await eventually("the snapshots") {
            seen.withLock { $0.snapshots.count >= expected.count && $0.errors == (listen.isError == true ? 1 : 0) }
        }
        // The client has taken every message when it opens the stream again after its end.
        if listen.isError != true { await client.server.waitForCalls(2) }
        expectEqual(seen.withLock { $0.snapshots }, expected)
        registration.remove()
        try await client.firestore.terminate()
    }
}
