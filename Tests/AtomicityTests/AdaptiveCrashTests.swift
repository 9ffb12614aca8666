// kill -9 while indexes are made and dropped on demand and the mode changes: after every recovery each document has its
// entries, there are no others, and queries return what a scan returns.

import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct AdaptiveCrashTests {
    private static func flags(_ mode: String) -> [String] {
        CrashTests.frequentCheckpoints + [
            "--automatic-indexes", mode, "--adaptive-index-demand", "20", "--adaptive-index-unused", "1s",
            "--max-group-adaptive-indexes", "3",
        ]
    }

    /// Queries over several fields of the documents, each with few results.
    private static func queries() throws -> [StructuredQuery] {
        let collection = [CollectionSelector(collectionID: "items")]
        let group = [CollectionSelector(collectionID: "items", allDescendants: true)]
        func filter(_ field: String, _ operation: FieldOperator, _ value: Value) throws -> DocumentModel.Filter {
            .field(try FieldPath(field), operation, EncodedValue(value))
        }
        return [
            StructuredQuery(from: collection, filter: try filter("n", .lessThan, 90)),
            StructuredQuery(from: group, filter: try filter("info.inner", .equal, .string("text 3"))),
            StructuredQuery(from: collection, filter: try filter("tags", .arrayContains, .integer(3)), limit: 50),
            StructuredQuery(from: collection, filter: try filter("kind", .equal, 2), limit: 20),
        ]
    }

    private static func ids(_ query: StructuredQuery, _ client: HearthClient) async throws -> [String] {
        let request = RunQueryRequest(parent: Arena.database.documentsRoot, query: query)
        return try await client.runQuery(request).map(\.name)
    }

    /// Runs queries until a call fails.
    private static func ask(_ client: HearthClient, _ queries: [StructuredQuery]) async {
        while true {
            for query in queries {
                do { _ = try await ids(query, client) } catch { return }
            }
        }
    }

    @Test
    func `Documents, entries and results agree after kill -9, in every mode and between them`() async throws {
        let arena = Arena()
        var random = SeededGenerator(seed: .random(in: 0...UInt64.max))
        print("seed \(random.seed)")
        let queries = try Self.queries()
        let server = try arena.start(Self.flags("adaptive"))
        let client = try Arena.client(of: server)
        for start in stride(from: Int64(0), to: Int64(IndexCrashTests.documentCount), by: 500) {
            try await client.commit(
                (start..<start + 500).map { (IndexCrashTests.path($0), IndexCrashTests.document($0, $0 % 5)) })
        }
        await client.close()
        server.kill()
        for round in 0..<6 * Arena.scale {
            let mode = random.pick(["adaptive", "adaptive", "adaptive", "on", "off"])
            let server = try arena.start(Self.flags(mode))
            let client = try Arena.client(of: server, timeout: .seconds(20))
            let writers = (0..<Int64(3)).map { index in
                Task { await IndexCrashTests.write(index, client, Int64(round)) }
            }
            let reader = Task { await Self.ask(client, queries) }
            // The kill comes at a random moment of the work; demand is looked at once a second.
            try await Task.sleep(for: .milliseconds(500 + random.below(2_500)))
            server.kill()
            await client.close()
            await reader.value
            for writer in writers { await writer.value }
            try arena.expectSound("after kill \(round) in mode \(mode), seed \(random.seed)")
        }

        // An index serves the first query in the end; the mode without indexes gives the same results.
        let adaptive = try arena.start(Self.flags("adaptive"))
        let last = try Arena.client(of: adaptive)
        try await eventually("an index is ready") {
            _ = try await Self.ids(queries[0], last)
            return try Arena.indexes(["list"], data: arena.data).output.contains(
                "READY\t{\"collectionGroup\":\"items\"")
        }
        var found: [[String]] = []
        for query in queries { found.append(try await Self.ids(query, last).sorted()) }
        await last.close()
        expectEqual(adaptive.stop(), 0)
        let scanning = try arena.start(Self.flags("off"))
        let naive = try Arena.client(of: scanning)
        for (query, results) in zip(queries, found) where query.limit == nil {
            try await expectEqual(Self.ids(query, naive).sorted(), results, "seed \(random.seed)")
        }
        await naive.close()
        expectEqual(scanning.stop(), 0)
        try arena.expectSound("at the end, seed \(random.seed)")
    }
}
