// Documents of the maximum size with the longest names and values, from before their arrays were indexed.

import Basics
import DocumentModel
import StoreTestSupport
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing

@Suite(.timeLimit(.minutes(20)))
struct LargeDocumentIndexTests {
    /// A path that an index over a group cuts.
    private static func path(_ id: String) -> String {
        let ids = ["c", "d", "x"].map { String(repeating: $0, count: 1_000) }
        return "\(ids[0])/\(ids[1])/c/\(ids[2])\(id)"
    }

    private static func index(isGroup: Bool) throws -> IndexShape {
        let parts = [
            IndexShape.Part(field: try FieldPath("t"), kind: .contains),
            IndexShape.Part(field: try FieldPath("s"), kind: .ascending),
        ]
        return IndexShape(collectionID: "c", isGroup: isGroup, parts: parts)
    }

    private static func document(_ elements: [Value]) -> MapValue {
        ["s": .string(String(repeating: "s", count: 300)), "t": .array(elements)]
    }

    /// Declares indexes and waits until they are built.
    private static func build(_ shapes: [IndexShape], in model: IndexedModel) async throws {
        try await model.declare(shapes)
        try await model.waitForIndexes()
        expectEqual(model.harness.store.statistics.housekeepingFailures, 0)
    }

    @Test
    func `An array that repeats an element a document full of times has one entry for it`() async throws {
        let model = try IndexedModel { $0.automaticIndexes = .off }
        let elements = [Value](repeating: .null, count: 250_000)
        try await model.harness.commit([.set(Self.path("1"), Self.document(elements))])
        try await Self.build([try Self.index(isGroup: true)], in: model)
        try await model.harness.commit([.set(Self.path("1"), Self.document([1, 2]))])
        try await model.harness.commit([.delete(Self.path("1"))])
        try model.harness.finish()
    }

    /// Counts commits. Thread-safe.
    private final class Commits: Sendable {
        private let value = Atomic<Int>(0)

        var count: Int { value.load(ordering: .acquiring) }

        /// Has the commits of a store counted, each of which takes one document of the store's own.
        func observe(_ configuration: inout StoreConfiguration) {
            configuration.automaticIndexes = .off
            configuration.ownCommitBytesMax = 20_000
            configuration.onDerived = { [self] _, _ in value.add(1, ordering: .acquiringAndReleasing) }
        }
    }

    private static let ids = (100..<150).map { "\($0)" }
    private static let longArray = (0..<100).map { Value.integer($0) }

    @Test
    func `The documents of a deleted database are removed in commits that their index entries bound`() async throws {
        let commits = Commits()
        let model = try IndexedModel { commits.observe(&$0) }
        let harness = model.harness
        try await harness.commit(Self.ids.map { .set(Self.path($0), Self.document(Self.longArray)) })
        try await Self.build([try Self.index(isGroup: false), try Self.index(isGroup: true)], in: model)
        let before = commits.count
        try await withCheckedContinuation { continuation in
            harness.store.deleteDatabase(harness.database, check: { _ in }) { continuation.resume(returning: $0) }
        }.get()
        try await eventually("the documents are removed") {
            harness.clock.advance(milliseconds: 1_000)
            harness.store.noticeTime()
            return harness.store.describeDatabase(harness.database)?.settings?.state == .deleted
        }
        expect(commits.count - before >= Self.ids.count)
        try harness.finish()
    }

    @Test
    func `The documents of a database that moves are written in commits that their index entries bound`() async throws {
        let commits = Commits()
        let stores = try MovingStores { commits.observe(&$0) }
        stores.chunkBytes = 25_000
        try await stores.source.commit(Self.ids.map { .set(Self.path($0), Self.document(Self.longArray)) })
        try await Self.build([try Self.index(isGroup: true)], in: IndexedModel(stores.source))
        let before = commits.count
        try await stores.move()
        // The first chunk comes before the index.
        expect(commits.count - before >= Self.ids.count)
        for id in Self.ids { try expect(stores.target.get(Self.path(id)) != nil) }
        try await IndexedModel(stores.target).waitForIndexes()
        try stores.finish()
    }
}
