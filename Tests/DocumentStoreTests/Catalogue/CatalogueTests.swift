// The commit thread's view of the collections.

import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct CatalogueTests {
    @Test
    func `Collections with long paths are counted right beyond the bytes that are kept of them`() async throws {
        let harness = try StoreHarness()
        // 5.6 KB for each path, 9 MB in all.
        let paths = (0..<1_600).map { number in
            let id = String(repeating: "c", count: 1_400) + "\(number)"
            return "\(id)/d/\(id)/d/\(id)/d/\(id)"
        }
        for round in 0..<2 {
            for start in stride(from: 0, to: paths.count, by: 100) {
                try await harness.commit(paths[start..<start + 100].map { .set("\($0)/r\(round)", fields(1)) })
            }
        }
        for start in stride(from: 0, to: paths.count, by: 100) {
            try await harness.commit(paths[start..<start + 100].map { .delete("\($0)/r0") })
        }
        // The check at the end compares the counts with the documents.
        try harness.finish()
    }

    @Test(.needsFiles)
    func `A collection whose entry could not be read keeps its number and its count`() async throws {
        let first = try StoreHarness()
        // Some pages of other collections on both sides of the one that is damaged.
        let padding = String(repeating: "p", count: 150)
        let collections = (0..<400).map { $0 == 200 ? "c1200-the-damaged-one-\(padding)" : "c\(1_000 + $0)\(padding)" }
        for start in stride(from: 0, to: 400, by: 100) {
            try await first.commit(collections[start..<start + 100].map { .set("\($0)/first", fields(1)) })
        }
        try first.store.checkpoint()
        first.store.close()
        let damage = try FileDamage(of: "-the-damaged-one-", in: first.directory.path(of: "data/runs"))
        let harness = try StoreHarness(in: first.directory, clock: first.clock)
        let refused = try await harness.failure([.set("\(collections[200])/second", fields(2))])
        expectEqual(refused?.code, .dataLoss)
        try damage.mend()
        try await harness.commit([.set("\(collections[200])/second", fields(2))])
        try expectEqual(harness.ids(collections[200]).sorted(), ["first", "second"])
        // The check compares the counts with the documents, and the index entries.
        try harness.finish()
    }
}
