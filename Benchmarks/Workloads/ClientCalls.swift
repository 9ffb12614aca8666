// How long calls of the Swift client take, over a connection to a server or in process.

import Basics
import DocumentModel
import FirebaseFirestore
import FirestoreMessages
import Foundation
import HearthClient
import InProcess

/// Reads and commits of one document at a time, by one task and by 64.
struct ClientCalls {
    /// `HOST:PORT`, or a location of a store in this process.
    let host: String
    let calls: Int

    func run() async throws {
        let start = ContinuousClock.now
        let firestore = Firestore.firestore()
        let settings = firestore.settings
        settings.host = host
        firestore.settings = settings
        let collection = firestore.collection("calls")
        let data: [String: any Sendable] = ["title": String(repeating: "x", count: 400), "n": 1]
        _ = try await collection.document("none").getDocument()
        row("opened, first read", microseconds(since: start))
        try await collection.document("d0").setData(data)
        row("and first write", microseconds(since: start))
        for _ in 0..<2 {
            try await latency("read") { _ = try await collection.document("d0").getDocument() }
            try await latency("commit") { try await collection.document("d0").setData(data) }
        }
        try await rate("reads") { _ in _ = try await collection.document("d0").getDocument() }
        try await rate("commits") { try await collection.document("d\($0)").setData(data) }
        try await plainCommits()
        let end = ContinuousClock.now
        try await firestore.terminate()
        row("closed", microseconds(since: end))
    }

    /// The same commits without the cache and the mutation queue.
    private func plainCommits() async throws {
        var configuration = try HearthClient.Configuration(address: host)
        configuration.openStore = SharedStore.use
        let client = try HearthClient(configuration)
        let database = try DatabaseName(project: "hearth")
        let fields = MapValue([("n", .integer(1)), ("title", .string(String(repeating: "x", count: 400)))])
            .documentBytes
        try await rate("commits of HearthClient") { task in
            var writes = CommitWrites(database: database)
            writes.set("\(database.documentsRoot)/calls/d\(task)", fields: fields)
            try await client.commit(writes)
        }
        await client.close()
    }

    private func latency(_ name: String, _ call: () async throws -> Void) async throws {
        var times: [Double] = []
        for _ in 0..<calls {
            let start = ContinuousClock.now
            try await call()
            times.append(microseconds(since: start))
        }
        times.sort()
        row("\(name), one task, p50", times[times.count / 2])
        row("\(name), one task, p99", times[times.count * 99 / 100])
    }

    private func rate(_ name: String, _ call: @escaping @Sendable (Int) async throws -> Void) async throws {
        let tasks = 64
        let start = ContinuousClock.now
        let processorStart = clock()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<tasks {
                group.addTask { for _ in 0..<calls / 16 { try await call(task) } }
            }
            try await group.waitForAll()
        }
        let count = Double(calls / 16 * tasks)
        let processor = Double(clock() - processorStart) * 1e6 / Double(CLOCKS_PER_SEC) / count
        print("\(name), 64 tasks\t\(Int(count / microseconds(since: start) * 1e6))\t/s")
        print("\(name), 64 tasks, processor time\t\(String(format: "%.1f", processor))\tus")
    }

    private func row(_ name: String, _ microseconds: Double) {
        print("\(name)\t\(String(format: "%.1f", microseconds))\tus")
    }

    private func microseconds(since start: ContinuousClock.Instant) -> Double {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Double(seconds) * 1e6 + Double(attoseconds) / 1e12
    }
}
