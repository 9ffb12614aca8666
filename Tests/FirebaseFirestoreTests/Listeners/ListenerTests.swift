// Listeners of the SDK against a server process, and against stores in this process.

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore

/// What a listener's callbacks have been called with.
private final class Calls<Entry: Sendable>: Sendable {
    private let entries = Mutex<[Entry]>([])

    func append(_ entry: Entry) { entries.withLock { $0.append(entry) } }
    var all: [Entry] { entries.withLock { $0 } }
    var last: Entry? { all.last }
}

@Suite(.timeLimit(.minutes(20)))
struct ListenerTests {
    private let directory = TemporaryDirectory("listeners")

    private func start(port: Int? = nil) throws -> HearthProcess {
        let port = try port ?? LoopbackSocket.reservePort()
        let process = HearthProcess(["serve", "--data", directory.path, "--port", "\(port)"])
        try process.start()
        return process
    }

    private func port(of process: HearthProcess) throws -> Int {
        let line = try #require(process.waitForLine(prefix: "hearth ready on "), "\(process.errors)")
        return try #require(Int(line.split(separator: ":").last ?? ""))
    }

    private func stop(_ process: HearthProcess, _ signal: Int32 = SIGTERM) {
        process.signal(signal)
        process.waitForEnd()
        if signal == SIGTERM { expectEqual(process.status, 0) }
    }

    private func firestore(_ port: Int) -> Firestore {
        TestFirestore.make(host: "127.0.0.1:\(port)", project: "listeners")
    }

    @Test(arguments: TestBackend.allCases)
    func `A document: missing, created, changed, deleted; nothing after remove()`(backend: TestBackend) async throws {
        let database = try backend.start()
        let firestore = TestFirestore.make(host: database.host, project: "listeners")
        let reference = firestore.document("c/d")
        let calls = Calls<Int?>()
        let registration = reference.addSnapshotListener { snapshot, error in
            expectNil(error)
            calls.append(snapshot?.get("n") as? Int)
        }
        try await eventually("the first snapshot") { calls.all == [nil] }
        try await reference.setData(["n": 1])
        try await eventually("the new document") { calls.all == [nil, 1] }
        try await reference.updateData(["n": 2])
        try await eventually("the change") { calls.all == [nil, 1, 2] }
        try await reference.delete()
        try await eventually("the deletion") { calls.all == [nil, 1, 2, nil] }
        registration.remove()
        registration.remove()
        try await reference.setData(["n": 3])
        let other = Calls<Int?>()
        reference.addSnapshotListener { snapshot, _ in other.append(snapshot?.get("n") as? Int) }
        try await eventually("another listener") { other.all == [3] }
        expectEqual(calls.all.count, 4)
        try await firestore.terminate()
        expect(database.stop())
    }

    @Test(arguments: TestBackend.allCases)
    func `Callbacks add and remove listeners, their own and others, and write`(backend: TestBackend) async throws {
        let database = try backend.start()
        let firestore = TestFirestore.make(host: database.host, project: "listeners")
        let collection = firestore.collection("c")
        let log = Calls<String>()
        let registrations = Mutex<[String: any ListenerRegistration]>([:])
        @Sendable func keep(_ name: String, _ registration: any ListenerRegistration) {
            registrations.withLock { $0[name] = registration }
        }
        @Sendable func remove(_ name: String) { registrations.withLock { $0[name] }?.remove() }
        let isKept = DispatchSemaphore(value: 0)
        keep(
            "victim",
            collection.addSnapshotListener { snapshot, _ in log.append("victim \(snapshot?.count ?? -1)") })
        try await eventually("the first snapshot") { log.last == "victim 0" }
        keep(
            "first",
            collection.addSnapshotListener { snapshot, _ in
                isKept.wait()
                log.append("first \(snapshot?.count ?? -1)")
                remove("victim")
                keep(
                    "second",
                    collection.order(by: "n").addSnapshotListener { snapshot, _ in
                        log.append("second \(snapshot?.count ?? -1)")
                        guard snapshot?.isEmpty == false else { return }
                        remove("second")
                        keep(
                            "sync",
                            firestore.addSnapshotsInSyncListener {
                                log.append("sync")
                                remove("sync")
                                collection.document("y").setData(["n": 2], completion: nil)
                                collection.document("y").addSnapshotListener { snapshot, _ in
                                    log.append("third \(snapshot?.get("n") as? Int ?? -1)")
                                }
                            })
                    })
                collection.document("x").setData(["n": 1]) { error in log.append("written \(error == nil)") }
                remove("first")
            })
        isKept.signal()
        try await eventually("the last listener") { log.all.contains("third 2") }
        try await firestore.waitForPendingWrites()
        try await firestore.terminate()
        // Its last calls of the program.
        firestore.settings.dispatchQueue.sync {}
        let all = log.all
        expectEqual(all.count { $0.hasPrefix("victim") }, 1)
        expectEqual(all.count { $0.hasPrefix("first") }, 1)
        expectEqual(all.count { $0 == "written true" }, 1)
        expectEqual(all.count { $0 == "second 1" }, 1)
        expect(!all.contains("second 2"))
        expectEqual(all.count { $0 == "sync" }, 1)
        expect(database.stop())
    }

    @Test
    func `Calls of the lifecycle may come at once`() async throws {
        let database = try TestBackend.server.start()
        let cache = directory.path(of: "cache")
        for round in 0..<5 {
            let firestore = TestFirestore.make(host: database.host, project: "lifecycle", cache: cache)
            firestore.collection("c").addSnapshotListener { _, _ in }
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<40 {
                    group.addTask {
                        switch number % 5 {
                        case 0: try? await firestore.disableNetwork()
                        case 1: try? await firestore.enableNetwork()
                        case 2: firestore.document("c/\(round)-\(number)").setData(["n": number], completion: nil)
                        case 3: firestore.waitForPendingWrites { _ in }
                        default:
                            do {
                                try await firestore.clearPersistence()
                                Issue.record("cleared while it is in use")
                            } catch FirestoreErrorCode.failedPrecondition {
                            } catch { Issue.record(error) }
                        }
                    }
                }
            }
            try await firestore.enableNetwork()
            try await firestore.waitForPendingWrites()
            try await expectEqual(firestore.collection("c").getDocuments(source: .server).count, 8 * (round + 1))
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<10 {
                    group.addTask {
                        do {
                            try await firestore.terminate()
                            if number % 2 == 1 { try await firestore.clearPersistence() }
                        } catch { Issue.record(error) }
                    }
                }
            }
            expect(!FileManager.default.fileExists(atPath: cache))
        }
        expect(database.stop())
    }

    @Test
    func `A query with a limit: changes with their indexes, over kill -9 of the server`() async throws {
        let server = try start()
        let port = try port(of: server)
        let firestore = firestore(port)
        let collection = firestore.collection("c")
        for id in ["a", "b", "c"] { try await collection.document(id).setData(["n": id]) }
        let ids = Calls<[String]>()
        let changes = Calls<[String]>()
        collection.order(by: "n").limit(to: 2).addSnapshotListener { snapshot, error in
            expectNil(error)
            guard let snapshot else { return }
            // Before the documents, which the test waits for.
            changes.append(
                snapshot.documentChanges.map { "\($0.type) \($0.document.documentID)" })
            ids.append(snapshot.documents.map(\.documentID))
        }
        try await eventually("the first snapshot") { ids.last == ["a", "b"] }
        try await collection.document("b").delete()
        try await eventually("the next one takes the place") { ids.last == ["a", "c"] }
        expectEqual(changes.last, ["removed b", "added c"])
        stop(server, SIGKILL)
        let restarted = try start(port: port)
        _ = try self.port(of: restarted)
        try await collection.document("0").setData(["n": "0"])
        try await eventually("the listener continues") { ids.last == ["0", "a"] }
        expectEqual(ids.all, [["a", "b"], ["a", "c"], ["0", "a"]], "nothing is lost, nothing comes twice")
        try await firestore.terminate()
        stop(restarted)
    }

    @Test(arguments: TestBackend.allCases)
    func `Last documents, sequences, listeners in agreement, errors`(backend: TestBackend) async throws {
        let database = try backend.start()
        let firestore = TestFirestore.make(host: database.host, project: "listeners")
        let collection = firestore.collection("c")
        for n in 1...4 { try await collection.document("d\(n)").setData(["n": n]) }
        let last = Calls<[String]>()
        collection.order(by: "n").limit(toLast: 2).addSnapshotListener { snapshot, _ in
            last.append(snapshot?.documents.map(\.documentID) ?? [])
        }
        try await eventually("the last two") { last.all == [["d3", "d4"]] }
        let agreements = Calls<Int>()
        let sync = firestore.addSnapshotsInSyncListener { agreements.append(last.all.count) }
        try await eventually("the first agreement") { !agreements.all.isEmpty }
        // A listener stays when its registration is discarded.
        let discarded = Calls<Int>()
        firestore.addSnapshotsInSyncListener { discarded.append(last.all.count) }
        try await eventually("the first agreement of the other") { !discarded.all.isEmpty }
        try await collection.document("d5").setData(["n": 5])
        try await eventually("the listener, then the agreement") { agreements.last == 2 }
        expectEqual(last.last, ["d4", "d5"])
        try await eventually("the agreement of the other") { discarded.last == 2 }
        sync.remove()

        var seen: [Int] = []
        for try await snapshot in collection.whereField("n", isGreaterThan: 3).snapshots {
            seen.append(snapshot.count)
            if seen.count == 1 { try await collection.document("d6").setData(["n": 6]) }
            if seen.count == 2 { break }
        }
        expectEqual(seen, [2, 3])

        let fromCache = Calls<Bool>()
        collection.addSnapshotListener(options: SnapshotListenOptions().withSource(.cache)) { snapshot, _ in
            fromCache.append(snapshot?.metadata.isFromCache ?? false)
        }
        try await eventually("an empty snapshot of the cache") { fromCache.all == [true] }
        try await firestore.terminate()
        expect(database.stop())
    }
}
