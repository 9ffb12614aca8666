// Which runs are merged; what the manifest says about it; and merges that end in the middle.

import CommitLog
import EngineTestSupport
import Foundation
import Storage
import Synchronization
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct MergePolicyTests {
    /// Runs of these levels and sizes, the newest first.
    private func manifest(_ runs: [(level: UInt64, bytes: UInt64)]) -> Manifest {
        var manifest = Manifest()
        for (index, run) in runs.enumerated() {
            let number = UInt64(index + 1)
            let part = Manifest.Part(file: 100 + number, identity: number, byteCount: run.bytes)
            manifest.runs.append(Manifest.Run(number: number, level: run.level, parts: [part]))
        }
        return manifest
    }

    private func choice(_ manifest: Manifest, isIdle: Bool = false) -> MergePolicy.Choice? {
        MergePolicy.choice(manifest, isIdle: isIdle, hasGarbage: { _ in false })
    }

    @Test
    func `Eight runs of a level become one of the next, the smallest level first`() {
        let seven = Array(repeating: (level: UInt64(0), bytes: UInt64(10)), count: 7)
        expectNil(choice(manifest(seven + [(1, 1_000)])))
        let eight = seven + [(0, 10)]
        expectEqual(choice(manifest(eight + [(1, 1_000)])), .init(places: 0..<8, level: 1))
        let levelOne = Array(repeating: (level: UInt64(1), bytes: UInt64(80)), count: 8)
        expectEqual(choice(manifest(eight + levelOne + [(2, 9_000)])), .init(places: 0..<8, level: 1))
        expectEqual(choice(manifest(seven + levelOne + [(2, 9_000)])), .init(places: 7..<15, level: 2))
    }

    @Test
    func `The lowest run is merged when the others have as many bytes; when idle, if they have a sixteenth`() {
        expectNil(choice(manifest([(0, 60), (1, 40), (2, 101)])))
        expectEqual(choice(manifest([(0, 60), (1, 40), (2, 100)])), .init(places: 0..<3, level: 2))
        expectEqual(choice(manifest([(0, 7), (2, 100)]), isIdle: true), .init(places: 0..<2, level: 2))
        expectNil(choice(manifest([(0, 6), (2, 100)]), isIdle: true))
        expectEqual(choice(manifest([(0, 3), (0, 3), (2, 100)]), isIdle: true), .init(places: 0..<2, level: 1))
        expectNil(choice(manifest([(0, 100)]), isIdle: true))
    }

    @Test
    func `Runs that a merge uses are left alone, and a smaller merge comes in between`() {
        var runs = manifest(Array(repeating: (0, 10), count: 8) + [(1, 80), (1, 80), (2, 40)])
        runs.runs[8].output = 11
        runs.runs[9].output = 11
        expectEqual(runs.merges.map(\.inputs), [8..<10])
        expectEqual(runs.merges.map(\.output), [10])
        expectEqual(choice(runs), .init(places: 0..<8, level: 1))
        expectNil(MergePolicy.all(runs))
        runs.runs.removeFirst(8)
        expectNil(choice(runs, isIdle: true))
    }

    @Test
    func `A run with much history that may go is merged by itself`() {
        let runs = manifest([(0, 10), (1, 100)])
        let choice = MergePolicy.choice(runs, isIdle: false) { $0 == 1 }
        expectEqual(choice, .init(places: 1..<2, level: 1))
    }

    @Test
    func `A manifest is read as it was written, and any other bytes are refused`() throws {
        var runs = manifest([(0, 10), (1, 100), (2, 1_000)])
        runs.checkpoint = CommitVersion(microseconds: 77)
        runs.horizon = CommitVersion(microseconds: 70)
        runs.logStart = LogPosition(segment: 5)
        runs.nextNumber = 900
        runs.runs[0].output = 2
        runs.runs[0].lowerBound = [1, 2, 3]
        let bytes = runs.encoded()
        expectEqual(Manifest(bytes), runs)
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 1
            expectNil(Manifest(damaged))
            expectNil(Manifest(Array(bytes.prefix(index))))
        }
        expectNil(Manifest(bytes + [0]))
    }

    @Test(arguments: 0...6)
    func `A merge that ends in the middle continues after a restart, and reads are right in between`(steps: Int) throws
    {
        let directory = TemporaryDirectory()
        let left = Atomic<Int>(steps)
        var options = EngineOptions.small
        options.runFileBytesMax = 8 << 10
        options.retentionMicroseconds = 0
        options.sweepPauseMicroseconds = 1 << 40
        options.clock = { 0 }
        options.fault = { operation in
            guard operation == .commitMerge else { return 0 }
            return left.subtract(1, ordering: .relaxed).newValue >= 0 ? 0 : EIO
        }
        var model = Model()
        var random = SeededGenerator(seed: UInt64(steps))
        do {
            let store = try Store(directory.path, options)
            for version in 1...5 as ClosedRange<UInt64> {
                let changes = (0..<120).map { _ in
                    let value = Bytes(repeating: UInt8(random.below(256)), count: random.below(300))
                    return Change(
                        key: Bytes("key \(random.below(300))".utf8), value: random.oneIn(4) ? nil : value)
                }
                try store.commit(version, changes)
                model.commit(version, changes)
                try store.engine.checkpointNow()
            }
            let error = #expect(throws: StorageError.self) { try store.engine.sweepHistoryNow() }
            expectEqual(error?.code, .inputOutput)
            try? store.engine.close()
        }
        try expectClean(directory.path)
        let expected = model.entries([], [255], at: 5, .forward)
        options.fault = nil
        let store = try Store(directory.path, options)
        try expectEqual(store.scan(), expected)
        try expectEqual(store.scan(at: 3), model.entries([], [255], at: 3, .forward))
        try store.engine.sweepHistoryNow()
        try expectEqual(store.scan(), expected)
        try expectEqual(store.scan(.backward), expected.reversed())
        expectEqual(store.engine.statistics.runs, 1)
        try store.engine.close()
        try expectClean(directory.path)
        // What the manifest does not name is gone.
        let files = Files.names(in: directory.path(of: "runs")).filter { RunFormat.file(named: $0) != nil }
        expectEqual(
            Set(files),
            Set(
                try Manifest.read(in: directory.path(of: "runs")).runs.flatMap { run in
                    run.parts.flatMap { RunFormat.fileNames($0.file, $0.kind) }
                }))
    }
}
