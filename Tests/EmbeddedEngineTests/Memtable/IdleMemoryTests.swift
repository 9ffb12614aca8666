// The memory that an engine keeps when nobody writes.

import EngineTestSupport
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20))) struct IdleMemoryTests {
    private let directory = TemporaryDirectory()

    /// Commits that fill several memtables, so that the memory of one is kept for the next.
    private static let burst = 12

    @Test(arguments: [0, 1, 2, 3])
    func `An idle engine has no memory of earlier memtables`(further: Int) throws {
        var options = EngineOptions.small
        options.idleCheckpointMicroseconds = 200_000
        options.memoryKeptMicroseconds = 400_000
        options.logSegmentBytes = 1 << 20
        let store = try Store(directory.path, options)
        for number in 0..<Self.burst + further {
            try store.commit(UInt64(number + 1), [.put("key \(number)", String(repeating: "v", count: 300 << 10))])
        }
        guard case .embedded(let engine) = store.engine else { preconditionFailure("the engine has a directory") }
        let core = engine.core
        try waitUntil("the memtable is empty and has fresh memory") {
            core.progress.withLock { progress in
                let active = core.registry.viewForUpdate.active
                return progress.frozen == nil && active.isEmpty && !progress.isActiveRecycled
            }
        }
        let resident = core.progress.withLock { _ in core.registry.viewForUpdate.active.residentBytes }
        let fresh = try EngineCore.makeMemtable(options, hashSeed: core.hashSeed)
        expect(resident <= fresh.residentBytes)
        fresh.release()
        try store.engine.close()
        try expectClean(directory.path)
    }
}
