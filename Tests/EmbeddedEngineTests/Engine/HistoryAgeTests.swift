// When history goes: by the clock, and otherwise.

import EngineTestSupport
import Storage
import StorageEngines
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct HistoryAgeTests {
    private let directory = TemporaryDirectory()

    @Test
    func `History goes also if versions are ahead of the clock`() throws {
        var options = EngineOptions.small
        options.retentionMicroseconds = 1_000
        options.clock = { 1_000_000 }
        let store = try Store(directory.path, options)
        let first = UInt64(1) << 50
        for version in first..<(first + 4) {
            try store.commit(version, [.put("a", "\(version)")])
            try store.engine.checkpointNow()
        }
        try waitUntil("history has gone") {
            try store.engine.sweepHistoryNow()
            return store.engine.statistics.historyEntries == 0
        }
        #expect(throws: StorageError.self) { try store.get("a", at: first) }
        try expectEqual(store.get("a", at: first + 3), "\(first + 3)")
        try store.engine.close()
        try expectClean(directory.path)
    }
}
