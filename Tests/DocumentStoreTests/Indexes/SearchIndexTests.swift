// Indexes for searches: their entries and statistics through commits, builds, crashes and changes of the libraries. The
// check of the store compares both with what the documents require.

import Basics
import DocumentModel
import Storage
import StoreTestSupport
import TestSupport
import Testing
import TextAnalysis

@testable import DocumentStore
@testable import Indexing

@Suite(.timeLimit(.minutes(20)))
struct SearchIndexTests {
    private static let words = ["run", "running", "runner", "fox", "foxes", "the", "été", "häuser", "x", "東京"]

    private static let shapes = [
        IndexShape(
            collectionID: "c", isGroup: false, parts: [],
            search: IndexShape.SearchPart(
                texts: [try! FieldPath("t"), try! FieldPath("m.u")], points: [try! FieldPath("p")])),
        IndexShape(
            collectionID: "c", isGroup: true, parts: [],
            search: IndexShape.SearchPart(
                texts: [try! FieldPath("t")], language: try! TextLanguage(tag: "de"))),
    ]

    private func document(_ random: inout SeededGenerator) -> MapValue {
        func text() -> Value {
            .string(
                (0..<random.below(6)).map { _ in random.pick(Self.words) }.joined(separator: random.pick([" ", ", "])))
        }
        var fields: MapValue = ["other": .integer(Int64(random.below(3)))]
        switch random.below(5) {
        case 0: break
        case 1: fields["t"] = .array([text(), .integer(1), text()])
        case 2: fields["t"] = .integer(7)
        default: fields["t"] = text()
        }
        if random.oneIn(2) { fields["m"] = .map(["u": text()]) }
        if random.oneIn(2) {
            fields["p"] = .geoPoint(
                GeoPointValue(latitude: Double(random.below(181)) - 90, longitude: Double(random.below(361)) - 180))
        }
        return fields
    }

    private func commit(_ count: Int, _ harness: StoreHarness, _ random: inout SeededGenerator) async throws {
        // The last id is too long for a key.
        let ids = (0..<20).map { "\($0)" } + [String(repeating: "long", count: 100)]
        for _ in 0..<count {
            var writes: [StepWrite] = []
            for id in ids.shuffled(using: &random).prefix(1 + random.below(4)) {
                let path = random.pick(["c", "d/\(String(repeating: "e", count: 300))/c", "other"]) + "/" + id
                writes.append(random.oneIn(4) ? .delete(path) : .set(path, document(&random)))
            }
            if random.oneIn(5) {
                // Fails, and takes back what its other writes have changed.
                let refused = try await harness.failure(
                    writes + [.set("none/a", [:], Precondition.exists(true))])
                expectEqual(refused?.code, .notFound)
            } else {
                try await harness.commit(writes)
            }
        }
    }

    private func declare(_ shapes: [IndexShape], _ harness: StoreHarness) async throws {
        try await withCheckedContinuation { continuation in
            harness.store.declareIndexes(IndexDeclaration(indexes: shapes), in: harness.database) {
                continuation.resume(returning: $0)
            }
        }.get()
    }

    private func listing(_ harness: StoreHarness) -> [String] {
        harness.store.indexListing(in: harness.database).map(\.state.rawValue)
    }

    private func waitForIndexes(_ harness: StoreHarness) async throws {
        try await eventually("every index is ready") { listing(harness).allSatisfy { $0 == "READY" } }
    }

    @Test(arguments: CaseShare.of(UInt64(5000)..<5006, 3))
    func `Entries and statistics are those of the documents, during builds and after crashes`(
        seed: UInt64
    ) async throws {
        var random = SeededGenerator(seed: seed)
        var harness = try StoreHarness()
        try await commit(30, harness, &random)
        for round in 0..<4 {
            try await declare(round == 2 ? [Self.shapes[1]] : Self.shapes, harness)
            try await commit(20, harness, &random)
            if round == 1 { try harness.store.checkpoint() }
            let crashed = try harness.crashed()
            try await commit(5, crashed, &random)
            try await waitForIndexes(crashed)
            try crashed.finish()
            try await waitForIndexes(harness)
            try await commit(20, harness, &random)
            try expectEqual(StoreCheck.run(harness.store).problems, [], "seed \(seed), round \(round)")
            if round == 1 { harness = try harness.reopened() }
        }
        try harness.finish()
    }

    @Test(.needsFiles)
    func `Statistics count each document once after entries were dropped and commits were replayed`() async throws {
        var random = SeededGenerator(seed: 9)
        let harness = try StoreHarness()
        try await declare(Self.shapes, harness)
        try await commit(30, harness, &random)
        try await waitForIndexes(harness)
        try harness.store.checkpoint()
        // Only the log has these.
        try await commit(30, harness, &random)
        let copy = TemporaryDirectory("hearth-search-repair")
        var configuration = harness.configuration
        configuration.directory = copy.path(of: "data")
        try copyOpenDirectory(harness.configuration.directory, to: configuration.directory)
        try IndexRepair.run(configuration.directory)
        try expectEqual(StoreCheck.run(configuration).problems, [])
        try harness.finish()
    }

    @Test
    func `An index is built again when the libraries change, and waits while they are missing`() async throws {
        var random = SeededGenerator(seed: 1)
        let first = try StoreHarness { $0.textLibraries = { .ready(version: "old") } }
        try await declare(Self.shapes, first)
        try await commit(20, first, &random)
        try await waitForIndexes(first)
        first.store.close()

        func opened(_ libraries: TextLibraries) throws -> StoreHarness {
            try StoreHarness(in: first.directory, clock: first.clock) {
                $0 = first.configuration
                $0.textLibraries = { libraries }
            }
        }
        let second = try opened(.missing("libicuuc"))
        expect(Set(listing(second)).contains("WAITING") && !listing(second).contains("READY"))
        try await commit(10, second, &random)
        let error = await #expect(throws: RequestError.self) {
            try await declare([Self.shapes[0].renamed("z")], second)
        }
        expect(error?.code == .failedPrecondition && error?.message.contains("libicuuc") == true)
        second.store.close()

        // A directory is checked with whatever libraries there are.
        for libraries in [TextLibraries.missing("libicuuc"), .ready(version: "new"), .system] {
            var configuration = first.configuration
            configuration.textLibraries = { libraries }
            try expectEqual(StoreCheck.run(configuration).problems, [])
        }

        let third = try opened(.system)
        try await commit(10, third, &random)
        try await waitForIndexes(third)
        expectEqual(listing(third), ["READY", "READY"])
        let stored = third.store.indexState.current.declared.all.map(\.analysis)
        expect(stored.allSatisfy { $0 == TextLibraries.system.version })
        try third.finish()
    }

    @Test
    func `A commit that crashes before the index is renewed is applied without its entries`() async throws {
        var random = SeededGenerator(seed: 2)
        let first = try StoreHarness()
        try await declare(Self.shapes, first)
        try await waitForIndexes(first)
        try await commit(20, first, &random)
        // The log has commits that were made with another version than the one that replays them.
        let second = try first.crashed { $0.textLibraries = { .ready(version: "another") } }
        try await commit(5, second, &random)
        let third = try second.crashed { $0.textLibraries = { .system } }
        try await waitForIndexes(third)
        try third.finish()
        second.store.close()
        try first.finish()
    }

    @Test
    func `A document of the largest size has a bounded number of entries`() async throws {
        let harness = try StoreHarness()
        try await declare(Array(Self.shapes.prefix(1)), harness)
        let text = (0..<150_000).map { String($0, radix: 36) }.joined(separator: " ")
        try await harness.commit([.set("c/a", ["t": .string(String(text.prefix(900_000)))])])
        try await harness.commit([.set("c/b", ["t": .string(String(repeating: "a ", count: 450_000))])])
        try await harness.commit([.set("c/a", ["t": "short"]), .delete("c/b")])
        try await waitForIndexes(harness)
        try harness.finish()
    }

    @Test
    func `Declarations that are not possible are refused`() async throws {
        let harness = try StoreHarness()
        let field = try FieldPath("t")
        let part = IndexShape.SearchPart.self
        let refused: [[IndexShape.SearchPart]] = [
            [part.init(texts: [])],
            [part.init(texts: [field, field])],
            [part.init(texts: [.documentName])],
            [part.init(texts: try (0...16).map { try FieldPath("f\($0)") })],
            try (0..<5).map { part.init(texts: [try FieldPath("f\($0)")]) },
        ]
        for searches in refused {
            let error = await #expect(throws: RequestError.self) {
                try await declare(
                    searches.map { IndexShape(collectionID: "c", isGroup: false, parts: [], search: $0) }, harness)
            }
            expectEqual(error?.code, .invalidArgument)
        }
        try harness.finish()
    }
}

extension IndexShape {
    fileprivate func renamed(_ id: String) -> IndexShape {
        IndexShape(collectionID: id, isGroup: isGroup, parts: parts, search: search)
    }
}
