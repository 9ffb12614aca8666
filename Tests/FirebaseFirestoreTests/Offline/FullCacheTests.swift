// A cache whose disk is full.

import Basics
import ClientCache
import ClientTestSupport
import DocumentModel
import FirebaseCore
import FirestoreMessages
import Foundation
import HearthClient
import QueryEngine
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

@Suite(.timeLimit(.minutes(20))) struct FullCacheTests {
    private final class Counter: Sendable {
        private let value = Atomic(0)
        var count: Int { value.load(ordering: .acquiring) }
        func add() { value.add(1, ordering: .acquiringAndReleasing) }
    }

    /// An engine whose cache has a disk that can be full.
    private struct Scene {
        private let directory = TemporaryDirectory("full-cache")
        private let configuration: LocalStore.Configuration
        let isFull = Flag()
        /// How often the disk had no room.
        let refusals = Counter()
        let commits: HeldCommits
        let engine: SyncEngine
        var database: ScriptedDatabase { commits.database }

        init() throws {
            let name = try DatabaseName(project: "p")
            var configuration = LocalStore.Configuration(database: name, directory: directory.path(of: "cache"))
            // Some replies become one commit.
            configuration.commitBytesMax = 250_000
            configuration.fault = { [isFull, refusals] operation in
                guard [.allocateSegment, .allocateRun, .writeRun].contains(operation), isFull.isSet else { return 0 }
                refusals.add()
                return ENOSPC
            }
            self.configuration = configuration
            let commits = try HeldCommits()
            self.commits = commits
            engine = try SyncEngine(
                configuration,
                makeClient: { (_) throws(RequestError) in try HearthClient(.init(address: commits.server.address)) },
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
            // Waits for the engine. Its user may have no writes.
            _ = engine.hasPendingWrites
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

        /// Writes small documents until the cache has no room for another one, after ``fill(_:)``.
        func fillCompletely() throws {
            var count = 0
            while try write("s\(count)", "x") { count += 1 }
        }

        /// The name of a document of the collection `c`.
        func name(_ id: String) -> String { "\(configuration.database.documentsRoot)/c/\(id)" }

        /// Gives the server a document.
        func put(_ id: String, _ text: String) throws {
            database.put(name(id), try Firestore.Encoder().documentBytes(["text": text]))
        }

        /// Reads the collection `c`.
        ///
        /// - Returns: the results; more than one if the completion is called again.
        func readAll(_ source: FirestoreSource = .server) async throws -> [Result<[String], RequestError>] {
            let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
            let root = configuration.database.documentsRoot
            let read = SyncEngine.QueryRead(
                request: RunQueryRequest(parent: root, query: query),
                plan: try QueryPlan(query, parent: Array(root.utf8).byteSpan), isReversed: false)
            let results = Mutex<[Result<[String], RequestError>]>([])
            engine.run(read, source: source, cancellation: nil) { result in
                results.withLock { $0.append(result.map { $0.rows.map { String($0.name.dropFirst(root.count + 3)) } }) }
            }
            try await eventually("the query has a result") { results.withLock { !$0.isEmpty } }
            // Waits for the engine, which calls the completion.
            _ = engine.hasPendingWrites
            return results.withLock { $0 }
        }

        /// Reads a document from the server.
        func read(_ id: String) async -> Result<Bool, RequestError> {
            await withCheckedContinuation { continuation in
                engine.read(name(id), source: .server, cancellation: nil) { result in
                    continuation.resume(returning: result.map { $0.rows.first?.document.hasPendingWrites ?? false })
                }
            }
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
        scene.commits.release()
        try await eventually("the server has taken all writes") { acknowledged.withLock { $0 } == accepted }
        expect(scene.engine.hasPendingWrites && !isSettled.isSet, "the cache cannot say that they are acknowledged")
        scene.isFull.set(false)
        try await eventually("the cache has the replies") { isSettled.isSet }
        expect(!scene.engine.hasPendingWrites && scene.database.writes.count == accepted)
        let store = try await scene.reopened()
        expect(store.allBatches.isEmpty)
        store.close()
    }

    @Test
    func `A user whose writes the cache has no room for becomes known when there is room, and writes fail until then`()
        async throws
    {
        let scene = try Scene()
        scene.engine.userChanged("ada")
        let accepted = try scene.fill { _ in }
        // Nothing of the writes is seen, which needs little room; then they are to be seen again.
        scene.engine.userChanged("bob")
        scene.engine.userChanged("ada")
        try expect(!scene.write("small", "x"), "there is room for it, but whose is it?")
        scene.isFull.set(false)
        try await eventually("a write is taken") { try scene.write("small", "x") }
        let store = try await scene.reopened()
        expectEqual(store.allBatches.map(\.user), [String](repeating: "ada", count: accepted + 1))
        store.close()
    }

    @Test
    func `A disk that stays full is logged once, and once more when there is room again`() async throws {
        let scene = try Scene()
        let written = Mutex<[String]>([])
        FirebaseLog.setSink { _, message in
            if message.contains("cache") { written.withLock { $0.append(message) } }
        }
        defer { FirebaseLog.setSink(nil) }
        let acknowledged = Mutex(0)
        let accepted = try scene.fill { error in if error == nil { acknowledged.withLock { $0 += 1 } } }
        scene.commits.release()
        try await eventually("the server has taken all writes") { acknowledged.withLock { $0 } == accepted }
        try scene.fillCompletely()
        // The user's token comes again and again.
        for _ in 0..<5 { scene.engine.userChanged(String(repeating: "ada", count: 200)) }
        expect(scene.engine.hasPendingWrites)
        let before = scene.refusals.count
        try await eventually("the cache has tried again and again") { scene.refusals.count > before + 4 }
        let full = "The disk of the cache is full."
        expectEqual(
            written.withLock { $0.sorted() },
            [
                "The local cache cannot change the user, and tries again: \(full)",
                "The local cache cannot take replies of the server, and tries again: \(full)",
            ])
        written.withLock { $0 = [] }
        scene.isFull.set(false)
        try await eventually("the cache has done what it could not do") { !scene.engine.hasPendingWrites }
        try await eventually("both are in the log") { written.withLock { $0.count } >= 2 }
        let store = try await scene.reopened()
        store.close()
        expectEqual(
            written.withLock { $0.sorted() },
            [
                "The local cache can change the user again.", "The local cache can take replies of the server again.",
            ])
    }

    @Test
    func `A read that the cache has no room for has the server's documents with the pending writes`() async throws {
        let scene = try Scene()
        let text = String(repeating: "y", count: 200_000)
        let accepted = try scene.fill { _ in }
        try scene.put("large", text)
        try scene.put("d0", text)
        await expectEqual(scene.read("large"), .success(false))
        await expectEqual(scene.read("d0"), .success(true), "with the pending write")
        let ids = (0..<accepted).map { "d\($0)" } + ["large"]
        try await expectEqual(scene.readAll(), [.success(ids)])
        scene.isFull.set(false)
        scene.commits.release()
        try await eventually("the writes are acknowledged") { !scene.engine.hasPendingWrites }
        try await expectEqual(scene.readAll(), [.success(ids)])
        let store = try await scene.reopened()
        try expect(store.state(of: scene.name("large")).document != nil)
        store.close()
    }

    @Test
    func `A query has one result although the cache cannot forget what the server does not have any more`() async throws
    {
        let scene = try Scene()
        for number in 0..<50 { try scene.put("old\(number)", "x") }
        try await expectEqual(scene.readAll().map { try $0.get().count }, [50])
        for number in 0..<50 { scene.database.remove(scene.name("old\(number)")) }
        let accepted = try scene.fill { _ in }
        try scene.fillCompletely()
        let results = try await scene.readAll()
        expectEqual(results.count, 1)
        try expectEqual(results[0].get().filter { $0.hasPrefix("d") }.count, accepted)
        try expect(results[0].get().allSatisfy { !$0.hasPrefix("old") })
        scene.isFull.set(false)
        let store = try await scene.reopened()
        store.close()
    }

    @Test
    func `An index that the cache has no room for is built when there is room, and is in the log twice`() async throws {
        let scene = try Scene()
        let written = Mutex<[String]>([])
        FirebaseLog.setSink { _, message in
            if message.contains("index") { written.withLock { $0.append(message) } }
        }
        defer { FirebaseLog.setSink(nil) }
        // The entries of the first step are larger than a segment of the log.
        let names = (0..<10).map { "f\($0)" }
        let text = String(repeating: "y", count: 600)
        let fields = try Firestore.Encoder().documentBytes(Dictionary(uniqueKeysWithValues: names.map { ($0, text) }))
        for number in 0..<300 { scene.database.put(scene.name("t\(number)"), fields) }
        try await expectEqual(scene.readAll().map { try $0.get().count }, [300])
        let definitions = try names.map { name in
            LocalIndexDefinition(collectionID: "c", field: try DocumentModel.FieldPath(name), isOfElements: false)
        }
        scene.engine.setIndexes(definitions) { error in
            expectNil(error)
            scene.isFull.set(true)
        }
        try await eventually("there is no room for the entries") { !written.withLock { $0.isEmpty } }
        // Each query would begin the next step.
        for _ in 0..<5 { try await expectEqual(scene.readAll(.cache).map { try $0.get().count }, [300]) }
        let before = scene.refusals.count
        try await eventually("the cache has tried again and again") { scene.refusals.count > before + 2 }
        scene.isFull.set(false)
        try await eventually("the index is built") { written.withLock { $0.count } >= 2 }
        expectEqual(
            written.withLock { $0 },
            [
                "The local cache cannot build indexes, and tries again: The disk of the cache is full.",
                "The local cache can build indexes again.",
            ])
        let store = try await scene.reopened()
        expectEqual(store.completeIndexes, names.map { "c (\($0))" })
        store.close()
    }
}
