// kill -9 while indexes are kept, built, dropped and overridden: after every recovery each document has its entries,
// and there are no others.

import DocumentModel
import FirestoreMessages
import Foundation
import HearthClient
import Synchronization
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct IndexCrashTests {
    /// Files between which the indexes go back and forth: what one has is dropped, built, lifted or exempt in the
    /// other.
    static let files = [
        """
        {"indexes": [
           {"collectionGroup": "items", "queryScope": "COLLECTION", "fields": [
             {"fieldPath": "kind", "order": "ASCENDING"}, {"fieldPath": "n", "order": "DESCENDING"}]}],
         "fieldOverrides": [
           {"collectionGroup": "items", "fieldPath": "n", "indexes": [
             {"order": "ASCENDING", "queryScope": "COLLECTION"},
             {"order": "ASCENDING", "queryScope": "COLLECTION_GROUP"}]},
           {"collectionGroup": "items", "fieldPath": "info", "indexes": []},
           {"collectionGroup": "expiring", "fieldPath": "until", "ttl": true, "indexes": []}]}
        """,
        """
        {"indexes": [
           {"collectionGroup": "items", "queryScope": "COLLECTION_GROUP", "fields": [
             {"fieldPath": "tags", "arrayConfig": "CONTAINS"}, {"fieldPath": "n", "order": "ASCENDING"}]}],
         "fieldOverrides": [
           {"collectionGroup": "items", "fieldPath": "*", "indexes": []},
           {"collectionGroup": "items", "fieldPath": "info.inner", "indexes": [{"order": "DESCENDING"}]},
           {"collectionGroup": "expiring", "fieldPath": "until", "ttl": true}]}
        """,
        "{}",
    ]

    private static let flags = CrashTests.frequentCheckpoints + ["--ttl-interval", "1s"]

    /// Documents over which an index takes a while to be built.
    static let documentCount = 8_000

    static func document(_ number: Int64, _ kind: Int64) -> MapValue {
        [
            "n": .integer(number), "kind": .integer(kind), "tags": .array([.integer(number % 7), "all"]),
            "info": .map(["inner": .string("text \(number % 100)"), "list": .array([.integer(number)])]),
        ]
    }

    static func path(_ number: Int64) -> String {
        number % 3 == 0 ? "groups/g\(number % 10)/items/d\(number)" : "items/d\(number)"
    }

    /// Changes, adds and removes documents until a call fails.
    static func write(_ index: Int64, _ client: HearthClient, _ round: Int64) async {
        var number = index
        while true {
            number += 8
            var writes = CommitWrites(database: Arena.database)
            for offset in 0..<Int64(4) {
                let target = (number * 31 + offset * 977) % Int64(documentCount)
                writes.set(Arena.name(path(target)), fields: Arena.fields(document(target, round + number % 5)))
            }
            writes.delete(Arena.name(path((number * 17) % Int64(documentCount))))
            let until = Value.timestamp(TimestampValue(microseconds: number % 2 == 0 ? 1 : 4_000_000_000_000_000))
            writes.set(Arena.name("expiring/w\(index)-\(number % 50)"), fields: Arena.fields(["until": until]))
            do { try await client.commit(writes) } catch { return }
        }
    }

    /// Applies the files in turn until the server is gone.
    private static func apply(_ paths: [String], _ data: String, from first: Int, until isEnding: Flag) async {
        var next = first
        while !isEnding.isSet {
            let outcome = try? Arena.indexes(["apply", paths[next % paths.count]], data: data)
            if outcome?.status != 0 { return }
            next += 1
            // Time for the index to be made in part before the next declaration takes it away.
            try? await Task.sleep(for: .milliseconds(60))
        }
    }

    @Test
    func `Documents and entries agree after kill -9, also amid builds and overrides`() async throws {
        let arena = Arena()
        var random = SeededGenerator(seed: .random(in: 0...UInt64.max))
        print("seed \(random.seed)")
        let paths = try Self.files.indices.map { index in
            let path = arena.directory.path(of: "indexes\(index).json")
            try Data(Self.files[index].utf8).write(to: URL(fileURLWithPath: path))
            return path
        }
        let server = try arena.start(Self.flags)
        let client = try Arena.client(of: server)
        for start in stride(from: Int64(0), to: Int64(Self.documentCount), by: 500) {
            try await client.commit((start..<start + 500).map { (Self.path($0), Self.document($0, $0 % 5)) })
        }
        await client.close()
        server.kill()

        for round in 0..<5 * Arena.scale {
            let server = try arena.start(Self.flags)
            let client = try Arena.client(of: server, timeout: .seconds(20))
            let isEnding = Flag()
            let writers = (0..<Int64(4)).map { index in Task { await Self.write(index, client, Int64(round)) } }
            let applier = Task.detached { await Self.apply(paths, arena.data, from: round, until: isEnding) }
            // The kill comes at a random moment of the work.
            try await Task.sleep(for: .milliseconds(100 + random.below(600)))
            isEnding.set()
            // Half the kills come while a declaration is being applied, half while what it asked for is being made.
            if round % 2 == 1 { await applier.value }
            server.kill()
            await client.close()
            await applier.value
            for writer in writers { await writer.value }
            try arena.expectSound("after kill \(round), seed \(random.seed)")
        }

        // What was under way comes to its end, and what has expired goes.
        let last = try arena.start(Self.flags)
        try expectEqual(Arena.indexes(["apply", paths[0]], data: arena.data).status, 0)
        var listed = ""
        try await eventually("no index is being built or dropped") {
            listed = try Arena.indexes(["list"], data: arena.data).output
            return !listed.contains("BUILDING") && !listed.contains("DROPPING")
        }
        expectEqual(listed.split(separator: "\n").count, 4, "\(listed)")
        let reader = try Arena.client(of: last)
        let all = StructuredQuery(from: [CollectionSelector(collectionID: "items", allDescendants: true)])
        let found = try await reader.runQuery(RunQueryRequest(parent: Arena.database.documentsRoot, query: all))
        var ordered = all
        ordered.orderBy = [Order(field: try FieldPath("n"))]
        let indexed = try await reader.runQuery(RunQueryRequest(parent: Arena.database.documentsRoot, query: ordered))
        let numbers = try found.map { try $0.content.integer("n") }.sorted()
        try expect(indexed.map { try $0.content.integer("n") } == numbers && !numbers.isEmpty, "seed \(random.seed)")
        let expired = StructuredQuery(
            from: [CollectionSelector(collectionID: "expiring")],
            filter: .field(try FieldPath("until"), .lessThan, EncodedValue(.timestamp(TimestampValue(microseconds: 2))))
        )
        let expiredRequest = RunQueryRequest(parent: Arena.database.documentsRoot, query: expired)
        try await eventually("what has expired is deleted") { try await reader.runQuery(expiredRequest).isEmpty }
        await reader.close()
        expectEqual(last.stop(), 0)
        try arena.expectSound("at the end, seed \(random.seed)")
    }
}
