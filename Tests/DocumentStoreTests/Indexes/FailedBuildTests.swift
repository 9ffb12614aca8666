// Index builds that cannot continue: they are named, others continue, and they are tried again.

import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing

@Suite(.needsFiles, .timeLimit(.minutes(20)))
struct FailedBuildTests {
    private static let marker = "the marker of a document"

    private static func index(_ collection: String) throws -> IndexShape {
        let parts = try ["a", "b"].map { IndexShape.Part(field: try FieldPath($0), kind: .ascending) }
        return IndexShape(collectionID: collection, isGroup: false, parts: parts)
    }

    @Test
    func `A build that meets damage is named, others continue, and it ends when the damage is mended`() async throws {
        let first = try StoreHarness(database: "d")
        let padding = String(repeating: "x", count: 1_000)
        for start in stride(from: 0, to: 1_000, by: 100) {
            try await first.commit(
                (start..<start + 100).map { number in
                    let text = number == 500 ? Self.marker + padding : padding
                    return .set("c/d\(1_000 + number)", ["a": 1, "b": .integer(Int64(number)), "s": .string(text)])
                })
        }
        try await first.commit([.set("e/x", ["a": 1, "b": 2])])
        try first.store.checkpoint()
        first.store.close()
        let damage = try FileDamage(of: Self.marker, in: first.directory.path(of: "data/runs"))

        let model = IndexedModel(try StoreHarness(in: first.directory, clock: first.clock, database: "d"))
        let (harness, store) = (model.harness, model.harness.store)
        let (damaged, intact) = (try Self.index("c"), try Self.index("e"))
        func state(_ shape: IndexShape) -> DocumentStore.IndexProgress? {
            store.declaredIndexes(in: harness.database).first { $0.shape == shape }?.state
        }
        try await model.declare([damaged, intact])
        try await eventually("the other index is built") { state(intact) == .ready }
        try await eventually("the build has failed") { state(damaged) == .failed }
        expectEqual(store.statistics.indexBuildsFailed, 1)
        let cause = try #require(store.indexFailure(of: damaged, in: harness.database))
        expectNil(store.indexFailure(of: intact, in: harness.database))
        let listed = store.indexListing(in: harness.database)
        expectEqual(listed.filter { $0.state == .failed }.map(\.failure), [cause])
        expectEqual(store.housekeepingFailures.last?.contains("the index \(damaged.json): "), true)
        // Commits keep its entries meanwhile.
        try await harness.commit([.set("c/more", ["a": 1, "b": 2])])
        let failures = store.housekeepingFailures.count
        try await eventually("it is tried again") {
            harness.clock.advance(milliseconds: 10_000)
            store.noticeTime()
            return store.housekeepingFailures.count > failures
        }
        expectEqual(state(damaged), .failed)

        try damage.mend()
        try await eventually("the build continues") {
            harness.clock.advance(milliseconds: 10_000)
            store.noticeTime()
            return state(damaged) == .ready
        }
        expectEqual(store.statistics.indexBuildsFailed, 0)
        try harness.finish()
    }

    @Test
    func `A build of the automatic indexes that meets damage is listed with the cause`() async throws {
        let first = try StoreHarness(database: "d") { $0.automaticIndexes = .off }
        let padding = String(repeating: "x", count: 1_000)
        for start in stride(from: 0, to: 1_000, by: 100) {
            try await first.commit(
                (start..<start + 100).map { number in
                    let text = number == 500 ? Self.marker + padding : padding
                    return .set("c/d\(1_000 + number)", ["a": 1, "s": .string(text)])
                })
        }
        try await first.commit([.set("e/x", ["a": 1, "b": 2])])
        try first.store.checkpoint()
        first.store.close()
        let damage = try FileDamage(of: Self.marker, in: first.directory.path(of: "data/runs"))

        let harness = try StoreHarness(in: first.directory, clock: first.clock, database: "d")
        let store = harness.store
        func listed() -> [ListedIndex] { store.indexListing(in: harness.database).filter(\.isOfAllFields) }
        try await eventually("the build has failed") { listed().map(\.state) == [.failed] }
        let cause = try #require(listed().first?.failure)
        expect(cause.contains("data/runs/"), "\(cause)")
        expectEqual(store.statistics.indexBuildsFailed, 1)
        try damage.mend()
        try await eventually("the build ends") {
            harness.clock.advance(milliseconds: 10_000)
            store.noticeTime()
            return listed().isEmpty
        }
        expectEqual(store.statistics.indexBuildsFailed, 0)
        store.close()
    }

    @Test
    func `A build that fails is tried later and later, and is forgotten when it is dropped`() {
        let failed = FailedBuilds()
        let build = IndexBuild.declared(database: 1, number: 2, isDropped: false)
        expect(failed.paused(among: [build], nowMilliseconds: 0).builds.isEmpty)
        var (now, pauses): (UInt64, [UInt64]) = (5_000, [])
        for _ in 0..<9 {
            failed.note("why", of: build, nowMilliseconds: now)
            let (builds, end) = failed.paused(among: [build, .automatic], nowMilliseconds: now)
            expectEqual(builds, [build])
            pauses.append(end - now)
            now = end
            expect(failed.paused(among: [build], nowMilliseconds: now).builds.isEmpty)
            expect(failed.message(of: build) == "why" && failed.count == 1)
        }
        expectEqual(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 64_000, 64_000])
        expect(failed.paused(among: [.automatic], nowMilliseconds: 0).builds.isEmpty && failed.count == 0)
    }
}
