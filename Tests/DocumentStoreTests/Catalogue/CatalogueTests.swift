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
}
