// Listeners with a cache whose disk is full.

import Basics
import ClientCache
import DocumentModel
import FirebaseCore
import FirestoreMessages
import Foundation
import HearthClient
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct FullCacheListenTests {
    /// What a listener was called with: the versions of the documents with `cache`, or an error.
    private final class Events: Sendable {
        private let entries = Mutex<[String]>([])
        var all: [String] { entries.withLock { $0 } }
        func append(_ entry: String) { entries.withLock { $0.append(entry) } }
    }

    /// A server, and an engine whose cache has a disk that can be full.
    private struct Scene {
        private let directory = TemporaryDirectory("full-cache-listeners")
        let isFull = Flag()
        let engine: SyncEngine
        let server: Firestore
        private let subject: SyncEngine.Subject

        init() throws {
            let host = "file::memory:\(UUID().uuidString)"
            server = TestFirestore.make(host: host, project: "p")
            var configuration = LocalStore.Configuration(
                database: try DatabaseName(project: "p"), directory: directory.path(of: "cache"))
            configuration.fault = { [isFull] operation in
                [.allocateSegment, .allocateRun, .writeRun].contains(operation) && isFull.isSet ? ENOSPC : 0
            }
            let settings = FirestoreSettings()
            settings.host = host
            let client = try HearthClient.Configuration(settings)
            engine = try SyncEngine(
                configuration, makeClient: { (_) throws(RequestError) in try HearthClient(client) },
                pendingWrites: PendingWrites()
            ) { $0() }
            subject = SyncEngine.Subject(server.collection("c"))
        }

        /// Has the server store three documents that the log of the cache has no room for.
        func write(version: Int) async throws {
            let batch = server.batch()
            let text = String(repeating: "x", count: 900_000)
            for id in ["a", "b", "c"] {
                batch.setData(["n": version, "text": text], forDocument: server.document("c/\(id)"))
            }
            try await batch.commit()
        }

        func listen(withMetadata: Bool = true) -> Events {
            let events = Events()
            let n = try! DocumentModel.FieldPath("n")
            _ = engine.listen(
                subject, isOfCache: false, includesMetadataChanges: withMetadata,
                deliver: { snapshot in
                    let numbers = snapshot.rows.map { row in
                        row.document.encodedValue(at: n).flatMap { try? Value(wire: $0.span) }.map { "\($0)" } ?? "?"
                    }
                    events.append(numbers.joined(separator: " ") + (snapshot.isFromCache ? " cache" : ""))
                },
                fail: { events.append("\($0.code)") })
            return events
        }

        func end() async throws {
            await engine.prepareToClose()
            await engine.client.close()
            await engine.close()
            try await server.terminate()
        }
    }

    @Test
    func `A listener whose snapshot finds no room shows the cache, and the server's state when there is room`()
        async throws
    {
        let scene = try Scene()
        let written = Mutex<[String]>([])
        FirebaseLog.setSink { _, message in
            if message.contains("listeners") { written.withLock { $0.append(message) } }
        }
        defer { FirebaseLog.setSink(nil) }
        try await scene.write(version: 1)
        scene.isFull.set(true)
        let events = scene.listen()
        try await eventually("the listener is called") { !events.all.isEmpty }
        expectEqual(events.all, [" cache"], "as while the server cannot be reached")
        let later = scene.listen()
        try await eventually("another listener is called") { !later.all.isEmpty }
        scene.isFull.set(false)
        let first = "integer(1) integer(1) integer(1)"
        try await eventually("there is room for the documents") { events.all.last == first && later.all.last == first }
        scene.isFull.set(true)
        try await scene.write(version: 2)
        try await eventually("there is no room for their next versions") { events.all.last == "\(first) cache" }
        scene.isFull.set(false)
        let second = "integer(2) integer(2) integer(2)"
        try await eventually("there is room for them") { events.all.last == second && later.all.last == second }
        for events in [events, later] {
            expectEqual(Set(events.all), [" cache", first, "\(first) cache", second], "\(events.all)")
        }
        let full = "The disk of the cache is full."
        let pair = [
            "The local cache cannot keep what listeners get, and tries again: \(full)",
            "The local cache can keep what listeners get again.",
        ]
        try await eventually("the log has the end") { written.withLock { $0.count } >= 4 }
        expectEqual(written.withLock { $0 }, pair + pair)
        try await scene.end()
    }

    @Test
    func `A listener that finds no room for its query is called with the cache, and listens when there is room`()
        async throws
    {
        let scene = try Scene()
        try await scene.write(version: 1)
        scene.isFull.set(true)
        scene.engine.queue.sync {
            // A target has no room if no other has.
            while (try? scene.engine.store.use(target: (0..<64).map { _ in .random(in: 0...255) })) != nil {}
        }
        let events = scene.listen(withMetadata: false)
        try await eventually("the listener is called") { !events.all.isEmpty }
        expectEqual(events.all, [" cache"])
        scene.isFull.set(false)
        try await eventually("there is room") { events.all.last == "integer(1) integer(1) integer(1)" }
        expectEqual(events.all.count, 2)
        try await scene.end()
    }
}
