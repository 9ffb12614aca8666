// Kills at each step of a merge: what the directory is at that moment opens, reads as before, passes the check, and has
// no file that the manifest does not name.

import Basics
import EngineTestSupport
import Storage
import Synchronization
import TestSupport
import Testing

@testable import EmbeddedEngine

/// Copies a directory whenever a step begins, at most so often for each kind of step.
private final class StepCopies: Sendable {
    let directory: String
    let target: String
    private let copiesMax: Int
    private let isOn = Atomic<Bool>(false)
    private let copies = Monitor<[FileOperation: [String]]>([:])

    init(of directory: String, into target: String, copiesMax: Int) {
        self.directory = directory
        self.target = target
        self.copiesMax = copiesMax
    }

    var all: [FileOperation: [String]] { copies.withLock { $0 } }

    func start() { isOn.store(true, ordering: .releasing) }
    func stop() { isOn.store(false, ordering: .releasing) }

    var injection: @Sendable (FileOperation) -> Int32 {
        { [self] operation in
            guard isOn.load(ordering: .acquiring) else { return 0 }
            copies.withLock { copies in
                let known = copies[operation, default: []]
                if known.count >= copiesMax { return }
                let copy = target + "/\(operation)-\(known.count)"
                Files.copyTree(directory, to: copy)
                copies[operation, default: []].append(copy)
            }
            return 0
        }
    }
}

@Suite(.timeLimit(.minutes(20)))
struct MergeKillTests {
    let directory = TemporaryDirectory()
    let copies = TemporaryDirectory()

    /// Commits whose entries a merge moves, supersedes and leaves out.
    private func commit(
        _ version: UInt64, _ random: inout SeededGenerator, _ store: Store, _ model: inout Model
    ) throws {
        let changes = (0..<40).map { _ in
            // Documents and entries. Among documents no key is a prefix of another.
            let key = [random.pick([1, 0x21])] + Bytes("key \(random.below(600))".utf8) + [0]
            let value = Bytes(repeating: UInt8(version % 250), count: random.below(300))
            return Change(key: key, value: random.oneIn(5) ? nil : value)
        }
        try store.commit(version, changes)
        model.commit(version, changes)
    }

    /// Opens and closes what a kill left, and compares it with the model. Files go with the last use of the engine.
    private func compare(_ copy: String, _ options: EngineOptions, _ model: Model) throws {
        let store = try Store(copy, options)
        let last = store.engine.publishedVersion.microseconds
        expectEqual(last, model.last)
        for version in [last, last - 1, last / 2] where version >= store.engine.oldestReadableVersion.microseconds {
            let expected = model.entries([], [255], at: version, .forward)
            try expectEqual(store.scan(at: version), expected, "\(copy) at \(version)")
        }
        try store.engine.close()
    }

    /// Verifies what a kill left, and that no file is left over.
    private func verify(_ copy: String, _ options: EngineOptions, _ model: Model) throws {
        try compare(copy, options, model)
        try expectClean(copy)
        let manifest = try Manifest.read(in: copy + "/runs")
        let named = manifest.runs.flatMap { $0.parts.flatMap { RunFormat.fileNames($0.file, $0.kind) } }
        let present = Files.names(in: copy + "/runs").filter {
            RunFormat.file(named: $0) != nil || $0.hasSuffix(".new")
        }
        expectEqual(present.sorted(), named.sorted())
    }

    private func options(_ copies: StepCopies?, retention: UInt64) -> EngineOptions {
        var options = EngineOptions.small
        options.memtableBytesMax = 32 << 10
        options.runFileBytesMax = 64 << 10
        options.retentionMicroseconds = retention
        options.clock = { 1_000 }
        options.fault = copies?.injection
        return options
    }

    @Test(arguments: CaseShare.of(UInt64(1)...3, 1))
    func `A kill at any step of a merge leaves what was there`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var model = Model()
        let steps = StepCopies(of: directory.path, into: copies.path, copiesMax: 6)
        // Half of the history may go.
        let store = try Store(directory.path, options(steps, retention: 1_000 - 100))
        for version in UInt64(1)...200 {
            try commit(version, &random, store, &model)
            if version % 20 == 0 { try store.engine.checkpointNow() }
        }
        try store.engine.checkpointNow()
        steps.start()
        try store.engine.sweepHistoryNow()
        steps.stop()
        try store.engine.close()
        let made = steps.all
        for step in [FileOperation.writeMerge, .commitMerge, .removeRuns] { expect((made[step] ?? []).count >= 2) }
        for copy in made.values.joined() { try verify(copy, options(nil, retention: 1 << 60), model) }
    }
}
