// Reads that the server computes, totals and pipelines, after the pending writes that they have to see.

import ClientTestSupport
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct PendingWriteOrderTests {
    /// A server that refuses the first attempts of a commit for a time, and notes what it has done in its order.
    private final class Scene: Sendable {
        private struct State {
            var refusals = 0
            var done: [String] = []
        }

        private final class Notes: Sendable {
            let state = Mutex(State())

            func react(to call: ScriptedCall, _ database: ScriptedDatabase) -> Reaction {
                state.withLock { state in
                    if call.method != .commit {
                        state.done.append("read")
                        return .stream([])
                    }
                    if state.refusals > 0 {
                        state.refusals -= 1
                        return .fail(.unavailable, "later")
                    }
                    state.done.append("commit")
                    return database.react(to: call)
                }
            }
        }

        private let notes = Notes()
        let server: FakeServer

        init() throws {
            let database = ScriptedDatabase()
            server = try FakeServer { [notes] call in notes.react(to: call, database) }
        }

        func refuse(_ count: Int) { notes.state.withLock { $0.refusals = count } }

        /// What the server has done since the last call.
        func take() -> [String] {
            notes.state.withLock { state in
                defer { state.done = [] }
                return state.done
            }
        }
    }

    /// Pipelines that read the document `c/d`, or may.
    private static func pipelines(_ db: Firestore) -> [(name: String, Pipeline)] {
        let (other, inner) = (db.pipeline().collection("other"), db.pipeline().collection("c"))
        let (scalar, array) = (inner.limit(1).toScalarExpression(), inner.toArrayExpression().as("x"))
        let named = scalar.as("x")
        return [
            ("a collection", inner), ("a group", db.pipeline().collectionGroup("c")),
            ("a document", db.pipeline().documents(["c/d"])),
            ("a query", db.pipeline().create(from: db.collection("c").limit(to: 1))),
            ("the database", db.pipeline().database()), ("a union", other.union(with: inner)),
            ("a union in a union", other.union(with: other.union(with: inner))),
            ("a selection", other.select([array])), ("a condition", other.where(scalar.equal(1))),
            ("a condition of a condition", other.where(!(scalar.equal(1) && Field("a").equal(2)))),
            ("a field", other.addFields([named])), ("an order", other.sort([scalar.ascending()])),
            ("a key of groups", other.aggregate([CountAll().as("n")], groups: [named])),
            ("a total", other.aggregate([scalar.sum().as("n")])), ("a variable", other.define([named])),
            ("an element", other.unnest(array)), ("a new document", other.replace(with: scalar)),
            ("an element of an array", other.select([ArrayExpression([1, scalar]).as("x")])),
            ("a value of a map", other.select([MapExpression(["k": ["l": scalar]]).as("x")])),
            ("an option of a search", other.search(query: "w", addFields: [named])),
            ("an argument by name", other.rawStage(name: "where", params: [scalar.equal(1)])),
            ("an option by name", other.rawStage(name: "search", params: [], options: ["query": scalar])),
            (
                "an option of a function",
                other.select([FunctionExpression(functionName: "f", args: [], options: ["o": scalar]).as("x")])
            ), ("a subcollection", other.select([Subcollection("c").toArrayExpression().as("x")])),
            (
                "a subcollection of a subquery",
                other.select([
                    other.select([Subcollection("b/x/c").toArrayExpression().as("y")]).toArrayExpression().as("x")
                ])
            ),
        ]
    }

    @Test
    func `A pipeline is run after the pending writes to all that it reads, in subqueries too`() async throws {
        let scene = try Scene()
        let firestore = TestFirestore.make(host: scene.server.address)
        for (name, pipeline) in Self.pipelines(firestore) {
            scene.refuse(3)
            firestore.document("c/d").setData(["n": 1], completion: nil)
            _ = try await pipeline.execute()
            expectEqual(scene.take(), ["commit", "read"], "\(name)")
            try await firestore.waitForPendingWrites()
            _ = scene.take()
        }
        try await firestore.terminate()
    }

    @Test
    func `Totals and pipelines are run after a write that another task awaits`() async throws {
        let scene = try Scene()
        let firestore = TestFirestore.make(host: scene.server.address)
        for isTotal in [true, false] {
            scene.refuse(7)
            let document = firestore.document("c/d")
            let write = Task { try await document.setData(["n": 1]) }
            try await eventually("the write is pending") {
                try await firestore.collection("c").getDocuments(source: .cache).metadata.hasPendingWrites
            }
            if isTotal {
                _ = try await firestore.collection("c").count.getAggregation(source: .server)
            } else {
                _ = try await firestore.pipeline().collection("c").execute()
            }
            expectEqual(scene.take(), ["commit", "read"], "\(isTotal)")
            try await write.value
        }
        try await firestore.terminate()
    }

    @Test
    func `As the first call after a restart, totals and pipelines are run after the writes of the process before`()
        async throws
    {
        let scene = try Scene()
        let directory = TemporaryDirectory("order")
        for isTotal in [true, false] {
            func open() -> Firestore {
                TestFirestore.make(host: scene.server.address, project: "order", cache: directory.path(of: "cache"))
            }
            var firestore = open()
            try await firestore.disableNetwork()
            firestore.document("c/d").setData(["n": 1], completion: nil)
            try await firestore.terminate()
            scene.refuse(3)
            firestore = open()
            if isTotal {
                _ = try await firestore.collection("c").count.getAggregation(source: .server)
            } else {
                _ = try await firestore.pipeline().collection("c").execute()
            }
            expectEqual(scene.take(), ["commit", "read"], "\(isTotal)")
            try await firestore.terminate()
        }
    }
}
