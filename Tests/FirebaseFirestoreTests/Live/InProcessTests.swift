// Stores that the test's process opens itself: sharing, locks, ends, the network switch, large results.

import Basics
import DocumentModel
import FirestoreMessages
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FirebaseFirestore
@testable import HearthClient

@Suite(.timeLimit(.minutes(20))) struct InProcessTests {
    private let directory = TemporaryDirectory("in-process")

    /// The configuration of a client with a separate store in memory.
    private static func inMemory() throws(RequestError) -> HearthClient.Configuration {
        let settings = FirestoreSettings()
        settings.host = "file::memory:\(UUID().uuidString)"
        return try HearthClient.Configuration(settings)
    }

    private var host: String { "file://\(directory.path(of: "data"))" }

    private func code(_ body: () async throws -> Void) async -> FirestoreErrorCode.Code? {
        do {
            try await body()
            return nil
        } catch {
            return FirestoreErrorCode.Code(rawValue: (error as NSError).code)
        }
    }

    @Test
    func `Instances on one directory share its store, which stays open until the last one ends`() async throws {
        let first = TestFirestore.make(host: host, project: "p")
        let second = TestFirestore.make(host: "file:\(directory.path)/x/../data", project: "p")
        let other = TestFirestore.make(host: host, project: "q")
        try await first.document("c/d").setData(["n": 1])
        try await expect(second.document("c/d").getDocument().get("n") as? Int == 1)
        try await expect(!other.document("c/d").getDocument().exists)
        try await first.terminate()
        try await second.document("c/d").updateData(["n": 2])
        try await second.terminate()
        try await other.terminate()
        let later = TestFirestore.make(host: host, project: "p")
        try await expect(later.document("c/d").getDocument().get("n") as? Int == 2)
        try await later.terminate()
        let outcome = try HearthBinary.run(["check", "--data", directory.path(of: "data")])
        expectEqual(outcome.status, 0, "\(outcome.output)\(outcome.errors)")
        expect(outcome.output.contains("no problems; 1 documents"))
    }

    @Test
    func `Instances on forks of a directory have its data and change nothing in it`() async throws {
        let original = TestFirestore.make(host: host, project: "p")
        try await original.document("c/d").setData(["n": 1])
        try await original.terminate()
        let forks = (0..<3).map { _ in TestFirestore.make(host: "fork:\(host)", project: "p") }
        for (number, fork) in forks.enumerated() {
            try await expect(fork.document("c/d").getDocument().get("n") as? Int == 1)
            try await fork.document("c/d").setData(["n": 10 + number])
        }
        for (number, fork) in forks.enumerated() {
            try await expect(fork.document("c/d").getDocument().get("n") as? Int == 10 + number)
            try await fork.terminate()
        }
        let later = TestFirestore.make(host: host, project: "p")
        try await expect(later.document("c/d").getDocument().get("n") as? Int == 1)
        try await later.terminate()
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["data"])
        let nothing = TestFirestore.make(host: "fork:file://\(directory.path)/none", project: "p")
        await expectEqual(code { try await nothing.document("c/d").setData([:]) }, .failedPrecondition)
        try expectEqual(FileManager.default.contentsOfDirectory(atPath: directory.path), ["data"])
    }

    @Test
    func `A listener of one instance sees the writes of another`() async throws {
        let writer = TestFirestore.make(host: host, project: "p")
        let reader = TestFirestore.make(host: host, project: "p")
        let counts = Mutex<[Int]>([])
        let registration = reader.collection("c").addSnapshotListener { snapshot, _ in
            counts.withLock { $0.append(snapshot?.count ?? -1) }
        }
        try await eventually("the first snapshot") { counts.withLock { $0 } == [0] }
        for n in 1...3 {
            try await writer.document("c/d\(n)").setData(["n": n])
            try await eventually("snapshot \(n)") { counts.withLock { $0.last } == n }
        }
        expectEqual(counts.withLock { $0 }, [0, 1, 2, 3])
        registration.remove()
        try await writer.terminate()
        try await reader.terminate()
    }

    @Test
    func `A directory that a server has open gives a clear error, until the server ends; and the other way round`()
        async throws
    {
        let server = try ServerProcess(data: directory.path(of: "data"))
        let firestore = TestFirestore.make(host: host, project: "p")
        do {
            try await firestore.document("c/d").setData(["n": 1])
            Issue.record("no error")
        } catch FirestoreErrorCode.failedPrecondition {
        }
        let error = await #expect(throws: NSError.self) { _ = try await firestore.collection("c").getDocuments() }
        expectEqual(error?.code, FirestoreErrorCode.failedPrecondition.rawValue)
        let text = try #require(error?.localizedDescription)
        expect(text.contains(directory.path(of: "data")) && text.contains("one process at a time"), "\(text)")
        expectEqual(server.stop(), 0)
        try await firestore.document("c/d").setData(["n": 1])
        let refused = #expect(throws: ServerProcess.StartError.self) {
            _ = try ServerProcess(data: directory.path(of: "data"))
        }
        expectEqual(refused?.description.contains("another process uses"), true)
        try await firestore.terminate()
        let after = try ServerProcess(data: directory.path(of: "data"))
        let client = TestFirestore.make(host: "127.0.0.1:\(after.port)", project: "p")
        try await expect(client.document("c/d").getDocument().exists)
        try await client.terminate()
        expectEqual(after.stop(), 0)
    }

    @Test
    func `A location that names no directory, and a directory that cannot be one, fail every call`() async throws {
        let nowhere = TestFirestore.make(host: "file://elsewhere/data")
        await expectEqual(code { _ = try await nowhere.document("c/d").getDocument() }, .invalidArgument)
        try await nowhere.terminate()
        let path = directory.path(of: "file")
        try Data("text".utf8).write(to: URL(fileURLWithPath: path))
        let blocked = TestFirestore.make(host: "file://\(path)/data")
        await expectEqual(code { try await blocked.document("c/d").setData(["n": 1]) }, .unavailable)
        try await blocked.terminate()
    }

    @Test
    func `Memory is shared by its name, and gone with its last instance`() async throws {
        let host = "file::memory:\(UUID().uuidString)"
        let first = TestFirestore.make(host: host, project: "p")
        let second = TestFirestore.make(host: host, project: "p")
        let other = TestFirestore.make(host: host + "-other", project: "p")
        try await first.document("c/d").setData(["n": 1])
        try await expect(second.document("c/d").getDocument().exists)
        try await expect(!other.document("c/d").getDocument().exists)
        try await first.terminate()
        try await expect(second.document("c/d").getDocument().exists)
        try await second.terminate()
        let again = TestFirestore.make(host: host, project: "p")
        try await expect(!again.document("c/d").getDocument().exists)
        try await again.terminate()
        try await other.terminate()
    }

    @Test
    func `Without the network reads fail and writes wait; with it listeners continue`() async throws {
        let firestore = TestFirestore.make(host: host, project: "p")
        let seen = Mutex<[Int?]>([])
        let registration = firestore.document("c/d").addSnapshotListener { snapshot, _ in
            seen.withLock { $0.append(snapshot?.get("n") as? Int) }
        }
        try await eventually("the first snapshot") { seen.withLock { $0 } == [nil] }
        try await firestore.disableNetwork()
        await expectEqual(code { _ = try await firestore.document("c/d").getDocument(source: .server) }, .unavailable)
        firestore.document("c/d").setData(["n": 1], completion: nil)
        try await firestore.enableNetwork()
        try await firestore.waitForPendingWrites()
        try await expect(firestore.document("c/d").getDocument().get("n") as? Int == 1)
        try await eventually("the listener continues") { seen.withLock { $0.last } == 1 }
        registration.remove()
        try await firestore.terminate()
    }

    @Test
    func `A request above the limit is refused at once`() async throws {
        let client = try HearthClient(Self.inMemory())
        let request = [UInt8](repeating: 0, count: 11 << 20)
        var failure: RequestError?
        do throws(RequestError) {
            _ = try await client.call(.batchWrite, request, kind: .queuedWrite, options: .standard)
        } catch {
            failure = error
        }
        expectEqual(failure?.code, .invalidArgument)
        expectEqual(failure?.message, "a message exceeds the limit of 10485760 bytes")
        await client.close()
    }

    @Test(arguments: [true, false])
    func `A stream is produced as fast as it is read, and ends when it is released`(isReadToEnd: Bool) async throws {
        let client = try HearthClient(Self.inMemory())
        let database = try DatabaseName(project: "p")
        let root = database.documentsRoot
        let fields = try Firestore.Encoder().documentBytes(["b": Data(repeating: 7, count: 20_000)])
        for start in stride(from: 0, to: 1_000, by: 250) {
            var writes = CommitWrites(database: database)
            for number in start..<start + 250 {
                writes.set("\(root)/c/d\(1_000 + number)", fields: fields)
            }
            try await expectEqual(client.commit(writes).writeResults.count, 250)
        }
        let query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        var names: [String] = []
        do {
            let stream = client.queryStream(RunQueryRequest(parent: root, query: query))
            for try await document in stream {
                names.append(document.name)
                if !isReadToEnd, names.count == 10 { break }
            }
        }
        expectEqual(names, (0..<(isReadToEnd ? 1_000 : 10)).map { "\(root)/c/d\(1_000 + $0)" })
        await client.close()
    }

    @Test
    func `Nothing acknowledged is lost by kill -9, and increments count once`() async throws {
        var acknowledged = 0
        for _ in 0..<3 {
            let process = HearthProcess(
                ["counts", host, "1000000"], environment: ["HEARTH_PROJECT": "p"],
                executable: "\(HearthBinary.buildDirectory)/client-programs")
            try process.start()
            try waitUntil("some writes are acknowledged") { process.output.split(separator: "\n").count > 20 }
            process.signal(SIGKILL)
            process.waitForEnd()
            // The last line may be incomplete.
            acknowledged += process.output.split(separator: "\n", omittingEmptySubsequences: false).count - 1
            let firestore = TestFirestore.make(host: host, project: "p")
            let count = try await firestore.document("programs/counter").getDocument().get("n") as? Int ?? 0
            // One write may have been applied without its line.
            expect(count >= acknowledged && count <= acknowledged + 3, "\(count), \(acknowledged)")
            try await firestore.terminate()
        }
    }

    @Test(arguments: ["writes", "writesAndExits"])
    func `Programs that end close their directory with every write in it`(program: String) async throws {
        let process = HearthProcess(
            [program, host, "300"], environment: ["HEARTH_PROJECT": "p"],
            executable: "\(HearthBinary.buildDirectory)/client-programs")
        try process.start()
        process.waitForEnd()
        expectEqual(process.status, 0)
        expectEqual(process.errors, "")
        let firestore = TestFirestore.make(host: host, project: "p")
        try await expectEqual(firestore.collection("programs").count.getAggregation(source: .server).count, 300)
        try await firestore.terminate()
    }
}
