// kill -9 at random moments, again and again: every acknowledged commit is there and whole, no half of another is, and
// a commit that was sent again because its answer was lost counts once.

import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient
import Synchronization
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct CrashTests {
    /// Flags that make checkpoints frequent, so that many kills fall into one.
    static let frequentCheckpoints = ["--memtable", "1MiB"]

    /// How far one writer has come.
    private final class Writer: Sendable {
        let index: Int
        let attempted = Atomic<Int64>(0)
        let acknowledged = Atomic<Int64>(0)
        init(_ index: Int) { self.index = index }

        /// Overwritten in every commit.
        var current: [String] { (0..<3).map { "current\($0)/writer\(index)" } }
        /// Added by commit `number`.
        func entry(_ number: Int64) -> String { "journal/writer\(index)-\(number)" }

        /// Commits one batch after the other until a call fails.
        func run(_ client: HearthClient, padding: Value) async {
            while true {
                let number = attempted.add(1, ordering: .relaxed).newValue
                let document: MapValue = ["n": .integer(number), "padding": padding]
                do {
                    try await client.commit(current.map { ($0, document) } + [(entry(number), document)])
                } catch {
                    return
                }
                acknowledged.store(number, ordering: .relaxed)
            }
        }
    }

    @Test
    func `Every acknowledged commit survives kill -9, whole`() async throws {
        let arena = Arena()
        let writers = (0..<8).map(Writer.init)
        var random = SeededGenerator(seed: .random(in: 0...UInt64.max))
        print("seed \(random.seed)")
        try Self.declareIndexes(arena)

        for round in 0..<8 * Arena.scale {
            let server = try arena.start(Self.frequentCheckpoints)
            let client = try Arena.client(of: server, timeout: .seconds(20))
            // Large documents in some rounds bring checkpoints about; small ones many commits a group.
            let padding = Value.string(String(repeating: "x", count: round % 2 == 0 ? 10 : 20_000))
            let running = writers.map { writer in Task { await writer.run(client, padding: padding) } }
            // The kill comes at a random moment of the work.
            try await Task.sleep(for: .milliseconds(150 + random.below(500)))
            server.kill()
            await client.close()
            for task in running { await task.value }

            try arena.expectSound("after kill \(round), seed \(random.seed)")
            let restarted = try arena.start(Self.frequentCheckpoints)
            let reader = try Arena.client(of: restarted)
            for writer in writers { try await Self.expectWhole(writer, reader, "round \(round), seed \(random.seed)") }
            await reader.close()
            if round % 2 == 0 { restarted.kill() } else { expectEqual(restarted.stop(), 0) }
        }
        expect(writers.allSatisfy { $0.acknowledged.load(ordering: .relaxed) > 0 })
    }

    /// Beside the automatic indexes, one over two fields and one over a group.
    private static func declareIndexes(_ arena: Arena) throws {
        let file = arena.directory.path(of: "firestore.indexes.json")
        let json = """
            {"indexes": [{"collectionGroup": "journal", "queryScope": "COLLECTION", "fields": [
                {"fieldPath": "n", "order": "DESCENDING"}, {"fieldPath": "padding", "order": "ASCENDING"}]}],
             "fieldOverrides": [{"collectionGroup": "current0", "fieldPath": "n", "indexes": [
                {"order": "ASCENDING", "queryScope": "COLLECTION"},
                {"order": "ASCENDING", "queryScope": "COLLECTION_GROUP"}]}]}
            """
        try Data(json.utf8).write(to: URL(fileURLWithPath: file))
        let server = try arena.start()
        let outcome = try Arena.indexes(["apply", file], data: arena.data)
        expectEqual(outcome.status, 0, "\(outcome.errors)")
        expectEqual(server.stop(), 0)
    }

    /// Compares the replies that a writer got with what is stored; the writer continues from what is stored.
    private static func expectWhole(_ writer: Writer, _ client: HearthClient, _ comment: Comment) async throws {
        let acknowledged = writer.acknowledged.load(ordering: .relaxed)
        let attempted = writer.attempted.load(ordering: .relaxed)
        let reply = try await client.batchGet(
            BatchGetDocumentsRequest(database: Arena.database.description, documents: writer.current.map(Arena.name)))
        let numbers = Set(try reply.results.map { try $0.content?.integer("n") ?? 0 })
        expectEqual(numbers.count, 1, "half a commit: \(numbers), \(comment)")
        let last = numbers.first ?? 0
        expect(
            (acknowledged...attempted).contains(last),
            "acknowledged \(acknowledged), found \(last), attempted \(attempted), \(comment)")

        // Of the journal, every entry up to the last commit is there and none after it.
        let entries = (max(1, last - 200)...attempted + 1).map { Arena.name(writer.entry($0)) }
        let journal = try await client.batchGet(
            BatchGetDocumentsRequest(database: Arena.database.description, documents: entries))
        for (name, content) in journal.results {
            let number = Int64(name.split(separator: "-").last ?? "") ?? -1
            expectEqual(content != nil, number <= last, "entry \(number) of \(last), \(comment)")
            if let content { try expectEqual(content.integer("n"), number) }
        }
        writer.attempted.store(last, ordering: .relaxed)
        writer.acknowledged.store(last, ordering: .relaxed)
    }

    @Test
    func `A commit whose answer was lost and that was sent again counts once`() async throws {
        let arena = Arena()
        var server = try arena.start(Self.frequentCheckpoints)
        let port = server.port
        let client = try Arena.client(of: server, timeout: .seconds(110))
        let workers = 16
        let isEnding = Flag()
        let counters = (0..<4).map { "counters/\($0)" }
        try await client.commit(counters.map { ($0, ["n": 0]) })
        var random = SeededGenerator(seed: .random(in: 0...UInt64.max))
        print("seed \(random.seed)")

        // Each worker increments until the end; the client sends again by itself what a crash left without answer.
        let running = (0..<workers).map { worker in
            Task { () -> Int64 in
                var increments: Int64 = 0
                while !isEnding.isSet {
                    var writes = CommitWrites(database: Arena.database)
                    for counter in [counters[worker % 4], counters[(worker + 1) % 4]] {
                        // increment: 3 { integer_value: 1 }
                        writes.set(
                            Arena.name(counter), fields: [UInt8](), mask: [],
                            transforms: [EncodedTransform(path: "n", operation: [0x1A, 0x02, 0x10, 0x01])])
                    }
                    try await client.commit(writes)
                    increments += 1
                }
                return increments
            }
        }
        for _ in 0..<5 * Arena.scale {
            // The kill comes at a random moment of the work.
            try await Task.sleep(for: .milliseconds(100 + random.below(300)))
            server.kill()
            server = try arena.start(port: port, Self.frequentCheckpoints)
        }
        isEnding.set()
        var acknowledged: Int64 = 0
        for task in running { acknowledged += try await task.value }
        let sum = try await client.snapshot(counters).map { try $0.integer("n") }.reduce(0, +)
        expectEqual(
            sum, acknowledged * 2, "acknowledged \(acknowledged) commits of two increments, seed \(random.seed)")
        expect(acknowledged > Int64(workers))
        await client.close()
        expectEqual(server.stop(), 0)
        try arena.expectSound()
    }
}
