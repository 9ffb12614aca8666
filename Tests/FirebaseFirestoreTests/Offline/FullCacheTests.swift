// A cache whose disk is full.

import Basics
import ClientCache
import ClientTestSupport
import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct FullCacheTests {
    private final class Flag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set(_ isSet: Bool) { value.store(isSet, ordering: .releasing) }
    }

    /// An engine whose cache has a disk that can be full.
    private struct Scene {
        private let directory = TemporaryDirectory("full-cache")
        private let configuration: LocalStore.Configuration
        let isFull = Flag()
        let isHeld = Flag()
        let database = ScriptedDatabase()
        let engine: SyncEngine
        private let server: FakeServer

        init() throws {
            let name = try DatabaseName(project: "p")
            var configuration = LocalStore.Configuration(database: name, directory: directory.path(of: "cache"))
            configuration.fault = { [isFull] operation in
                [.allocateSegment, .allocateRun, .writeRun].contains(operation) && isFull.isSet ? ENOSPC : 0
            }
            self.configuration = configuration
            let server = try FakeServer { [isHeld, database] call in
                isHeld.isSet ? .fail(.unavailable, "later") : database.react(to: call)
            }
            self.server = server
            isHeld.set(true)
            engine = try SyncEngine(
                configuration,
                makeClient: { (_) throws(RequestError) in try HearthClient(.init(address: server.address)) },
                pendingWrites: PendingWrites()
            ) { $0() }
        }

        /// - Returns: whether the cache has taken the write.
        func write(
            _ id: String, _ text: String, _ completion: @escaping SyncEngine.WriteCompletion = { _ in }
        ) throws -> Bool {
            var writes = CommitWrites(database: configuration.database)
            let name = "\(configuration.database.documentsRoot)/c/\(id)"
            writes.set(name, fields: try Firestore.Encoder().documentBytes(["text": text]))
            let isRefused = Flag()
            engine.write(writes.request(), cancellation: nil) { error in
                if error?.code == .resourceExhausted { isRefused.set(true) } else { completion(error) }
            }
            // Waits for the engine.
            #expect(engine.hasPendingWrites)
            return !isRefused.isSet
        }

        /// Writes documents until the cache has no room for another one.
        ///
        /// - Returns: how many it has taken.
        func fill(_ completion: @escaping SyncEngine.WriteCompletion) throws -> Int {
            let text = String(repeating: "x", count: 100_000)
            for count in 0..<100 {
                isFull.set(count > 3)
                if try !write("d\(count)", text, completion) { return count }
            }
            Issue.record("the disk is never full")
            return 0
        }

        /// Ends the engine.
        ///
        /// - Returns: its store.
        func reopened() async throws -> LocalStore {
            await engine.prepareToClose()
            await engine.client.close()
            await engine.close()
            return try LocalStore(configuration) { _ in }
        }
    }

    @Test
    func `Replies that the cache has no room for are taken when there is room again`() async throws {
        let scene = try Scene()
        let acknowledged = Mutex(0)
        let accepted = try scene.fill { error in if error == nil { acknowledged.withLock { $0 += 1 } } }
        let isSettled = Flag()
        _ = scene.engine.whenWritesAreSettled { error in if error == nil { isSettled.set(true) } }
        scene.isHeld.set(false)
        try await eventually("the server has taken all writes") { acknowledged.withLock { $0 } == accepted }
        #expect(scene.engine.hasPendingWrites && !isSettled.isSet, "the cache cannot say that they are acknowledged")
        scene.isFull.set(false)
        try await eventually("the cache has the replies") { isSettled.isSet }
        #expect(!scene.engine.hasPendingWrites && scene.database.writes.count == accepted)
        let store = try await scene.reopened()
        #expect(store.allBatches.isEmpty)
        store.close()
    }

    @Test
    func `A user whose writes the cache has no room for becomes known when there is room, and writes fail until then`()
        async throws
    {
        let scene = try Scene()
        let accepted = try scene.fill { _ in }
        scene.engine.userChanged("ada")
        #expect(try !scene.write("small", "x"), "there is room for it, but whose is it?")
        scene.isFull.set(false)
        try await eventually("a write is taken") { try scene.write("small", "x") }
        let store = try await scene.reopened()
        #expect(store.allBatches.map(\.user) == [String](repeating: "ada", count: accepted + 1))
        store.close()
    }
}
