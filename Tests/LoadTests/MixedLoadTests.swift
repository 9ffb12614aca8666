// Many clients at once, all kinds of calls mixed, every answer compared with what it must be.

import Basics
import DocumentModel
import FirestoreMessages
import HearthClient
import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct MixedLoadTests {
    @Test
    func `Every answer is right while many clients read, write, batch, query and run transactions`() async throws {
        let fixture = try LoadFixture()
        let seed = UInt64.random(in: 0...UInt64.max)
        print("seed \(seed)")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<16 {
                group.addTask {
                    let client = try fixture.client()
                    var actor = LoadActor(
                        index: index, client: client, random: SeededGenerator(seed: seed &+ UInt64(index)))
                    for _ in 0..<150 * LoadFixture.scale { try await actor.step() }
                    try await actor.compareAll()
                    await client.close()
                }
            }
            try await group.waitForAll()
        }
        try fixture.expectSoundEnd()
    }
}

/// One client with documents that only it writes, in a collection that all share, and a copy of what they must hold.
struct LoadActor {
    let index: Int
    let client: HearthClient
    var random: SeededGenerator
    private var expected: [String: MapValue] = [:]
    private var stamp: Int64 = 0

    init(index: Int, client: HearthClient, random: SeededGenerator) {
        self.index = index
        self.client = client
        self.random = random
    }

    private func path(_ number: Int) -> String { "shared/client\(index)-\(number)" }
    private mutating func randomPath() -> String { path(random.below(20)) }

    private mutating func randomDocument() -> MapValue {
        stamp += 1
        return [
            "owner": .integer(Int64(index)), "stamp": .integer(stamp),
            "text": .string(String(repeating: "é", count: random.below(400))),
            "list": [.integer(stamp), "a", .double(0.5)],
            "map": ["inner": .boolean(random.oneIn(2)), "when": .timestamp(TimestampValue(microseconds: stamp))],
        ]
    }

    mutating func step() async throws {
        switch random.below(8) {
        case 0: try await setOne()
        case 1: try await commitBatch()
        case 2: try await update()
        case 3: try await delete()
        case 4: try await compareOne()
        case 5: try await compareSeveral()
        case 6: try await compareQuery()
        default: try await transact()
        }
    }

    private mutating func setOne() async throws {
        let (path, document) = (randomPath(), randomDocument())
        try await commit { $0.set(LoadFixture.name(path), fields: document.documentBytes) }
        expected[path] = document
    }

    private mutating func commitBatch() async throws {
        var changes: [(String, MapValue?)] = []
        for _ in 0..<1 + random.below(20) { changes.append((randomPath(), random.oneIn(4) ? nil : randomDocument())) }
        try await commit { writes in
            for (path, document) in changes {
                if let document {
                    writes.set(LoadFixture.name(path), fields: document.documentBytes)
                } else {
                    writes.delete(LoadFixture.name(path))
                }
            }
        }
        for (path, document) in changes { expected[path] = document }
    }

    private mutating func update() async throws {
        let path = randomPath()
        let value = Value.integer(Int64(random.below(1000)))
        let isThere = expected[path] != nil
        do {
            try await commit {
                $0.set(
                    LoadFixture.name(path), fields: MapValue([("extra", value)]).documentBytes,
                    mask: ["extra", "text"],
                    precondition: .exists(true))
            }
            expect(isThere, "\(path) was updated though it is not there")
        } catch let error as RequestError {
            expect(error.code == .notFound && !isThere, "\(error)")
        }
        // The mask's second path is not in the document given, so it is deleted.
        if let old = expected[path] {
            expected[path] = MapValue(
                old.entries.filter { $0.key != "text" && $0.key != "extra" } + [(key: "extra", value: value)])
        }
    }

    private mutating func delete() async throws {
        let path = randomPath()
        try await commit { $0.delete(LoadFixture.name(path)) }
        expected[path] = nil
    }

    private mutating func compareOne() async throws {
        let path = randomPath()
        let content = try await client.getDocument(LoadFixture.name(path))
        try expectContent(content, at: path)
    }

    private mutating func compareSeveral() async throws {
        let paths = Array(Set((0..<8).map { _ in randomPath() }))
        let reply = try await client.batchGet(
            BatchGetDocumentsRequest(database: LoadFixture.database.description, documents: paths.map(LoadFixture.name))
        )
        expectEqual(reply.results.count, paths.count)
        for (name, content) in reply.results {
            try expectContent(content, at: String(name.dropFirst(LoadFixture.name("").count)))
        }
    }

    private mutating func compareQuery() async throws {
        let limit = 1 + random.below(10)
        let query = StructuredQuery(
            from: [CollectionSelector(collectionID: "shared")],
            filter: .field(try FieldPath("owner"), .equal, EncodedValue(.integer(Int64(index)))),
            orderBy: [Order(field: try FieldPath("stamp"), direction: .descending)], limit: Int32(limit))
        let found = try await client.runQuery(RunQueryRequest(parent: LoadFixture.database.documentsRoot, query: query))
        let stamps = expected.values.compactMap { document -> Int64? in
            if case .integer(let stamp)? = document["stamp"] { stamp } else { nil }
        }
        let wanted = Array(stamps.sorted(by: >).prefix(limit))
        let got = try found.map { document -> Int64 in
            guard case .integer(let stamp)? = try MapValue(documentBytes: document.content.fields.span.bytes)["stamp"]
            else { return -1 }
            return stamp
        }
        expectEqual(got, wanted)
    }

    private mutating func transact() async throws {
        let path = randomPath()
        let added = Int64(1 + random.below(5))
        let before = expected[path]
        let fresh = randomDocument()
        expected[path] = try await client.runTransaction(database: LoadFixture.database, attemptsMax: 20) {
            transaction in
            let content = try await transaction.get(LoadFixture.name(path))
            let read = try content.map { try MapValue(documentBytes: $0.fields.span.bytes) }
            expectEqual(read, before)
            var count: Int64 = 0
            if case .integer(let number)? = read?["count"] { count = number }
            let entries = (read ?? fresh).entries.filter { $0.key != "count" }
            let next = MapValue(entries + [(key: "count", value: .integer(count + added))])
            transaction.writes.set(LoadFixture.name(path), fields: next.documentBytes)
            return next
        }
    }

    /// Compares every document this client ever wrote.
    func compareAll() async throws {
        for number in 0..<20 {
            try expectContent(try await client.getDocument(LoadFixture.name(path(number))), at: path(number))
        }
    }

    private func expectContent(_ content: StoredDocument?, at path: String) throws {
        let read = try content.map { try MapValue(documentBytes: $0.fields.span.bytes) }
        expectEqual(read, expected[path], "\(path)")
    }

    private func commit(_ build: (inout CommitWrites) -> Void) async throws {
        var writes = CommitWrites(database: LoadFixture.database)
        build(&writes)
        let response = try await client.commit(writes)
        expectEqual(response.writeResults.count, writes.count)
    }
}
