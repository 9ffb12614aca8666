// Power cuts at any step of the engine: every acknowledged commit is there, whatever the disk keeps of what was not
// synced (`SimulatedDisk`).

import EngineTestSupport
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import EmbeddedEngine

/// Makes recordings.
final class RecordedRun {
    let directory = TemporaryDirectory()
    let recorder: DiskRecorder
    var recording: Recording
    var random: SeededGenerator
    var options = PowerCut.options
    let now = Clock()

    final class Clock: Sendable {
        let microseconds = Atomic<UInt64>(0)
    }

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        recording = Recording()
        recording.start = SimulatedDisk(loading: directory.path)
        recorder = DiskRecorder(directory.path)
        // Part of the history goes.
        options.retentionMicroseconds = 30
        options.sweepPauseMicroseconds = 1 << 40
        let now = now
        options.clock = { now.microseconds.load(ordering: .relaxed) }
    }

    /// Opens the directory, makes commits with checkpoints and merges, and closes it.
    func run(steps: Int) throws {
        let store = try Store(directory.path + "/data", options)
        recording.timelineStart = store.engine.timelineStart.microseconds
        for _ in 0..<steps {
            switch random.below(12) {
            case 0: try store.engine.checkpointNow()
            case 1: try store.engine.sweepHistoryNow()
            default: try commitGroup(store)
            }
        }
        try store.engine.close()
    }

    /// Copies the directory.
    func make(_ form: CopyForm) throws {
        let store = try Store(directory.path + "/data", options)
        recorder.note(.acknowledge(version: store.engine.publishedVersion.microseconds))
        // The operator makes the directory.
        recorder.note(.makeDirectory(path: "/copy"))
        let target = directory.path + "/copy"
        mkdir(target, 0o700)
        switch form {
        case .backup: try store.engine.backup(to: target)
        case .fork: try expectEqual(store.engine.fork(to: target), 0)
        }
        recorder.note(.endCopy)
        for _ in 0..<5 { try commitGroup(store) }
        try store.engine.close()
    }

    func commitGroup(_ store: Store) throws {
        var last: UInt64 = 0
        for _ in 0..<(1 + random.below(3)) {
            last = (recording.commits.last?.version ?? 0) + 1
            let changes = (0..<(1 + random.below(12))).map { _ in
                let value = Bytes(repeating: UInt8(last % 250), count: random.below(random.oneIn(10) ? 6000 : 300))
                // Documents and entries. Among documents no key is a prefix of another.
                let name = Bytes("key \(random.below(40))".utf8) + [0]
                let key = random.pick([[0x10] + name, name])
                return Change(key: key, value: random.oneIn(5) ? nil : value)
            }
            recording.commits.append((last, changes))
            recorder.note(.begin(version: last))
            try store.stage(last, changes)
        }
        if random.oneIn(2) {
            try store.writer.commitGroup()
        } else {
            try store.writer.commitGroup { _ in }
            store.writer.waitForGroup()
        }
        recorder.note(.acknowledge(version: last))
        now.microseconds.store(last, ordering: .relaxed)
    }

    /// Ends the recording, which has all changes that there were.
    func end(sourceLocation: SourceLocation = #_sourceLocation) -> Recording {
        recording.events = recorder.end()
        var disk = recording.start
        for event in recording.events { disk.apply(event) }
        expect(disk.isSame(as: directory.path), "a change was not recorded", sourceLocation: sourceLocation)
        return recording
    }
}

@Suite(.timeLimit(.minutes(20)))
struct PowerCutTests {
    private static let factor = ProcessInfo.processInfo.environment["HEARTH_SOAK"] == nil ? 1 : 20

    /// Makes cuts of a recording at each kind of step and at others.
    private func expectNoProblem(_ cuts: consuming PowerCuts, _ recording: Recording, ofEachKind: Int, others: Int) {
        let places = recording.places(
            ofEachKind: ofEachKind * Self.factor, others: others * Self.factor, &cuts.random)
        let problem = cuts.problem(of: recording, at: PowerCuts.share(of: places))
        print("power cuts: \(cuts.count) of \(recording.events.count) events, seed \(cuts.random.seed)")
        expectNil(problem)
    }

    @Test(arguments: CaseShare.of(UInt64(1)...2, 1))
    func `Commits, checkpoints, merges and closes, and a second cut during recovery`(seed: UInt64) throws {
        let run = RecordedRun(seed: seed)
        for _ in 0..<3 { try run.run(steps: 40) }
        var cuts = PowerCuts(seed: seed)
        cuts.secondCutEvery = 2
        expectNoProblem(cuts, run.end(), ofEachKind: 1, others: 20)
    }

    @Test
    func `A kill of the process, then a power cut while the directory is opened again`() throws {
        let run = RecordedRun(seed: 3)
        try run.run(steps: 40)
        var cuts = PowerCuts(seed: 3)
        cuts.kept = .all
        cuts.secondCutEvery = 1
        expectNoProblem(cuts, run.end(), ofEachKind: 1, others: 20)
    }

    @Test(arguments: CaseShare.of(UInt64(1)...2, 1), CopyForm.allCases)
    func `Backups and forks are complete, or they are refused`(seed: UInt64, form: CopyForm) throws {
        let run = RecordedRun(seed: seed)
        try run.run(steps: 30)
        let version = run.recording.commits.last!.version
        let start = run.recorder.count
        try run.make(form)
        let recording = run.end()
        let model = recording.model(upTo: version)
        var cuts = PowerCuts(seed: seed)
        cuts.inspect = { path, disk in
            let copy = path + "/copy"
            guard Files.isDirectory(copy), Files.names(in: copy).contains("FORMAT") else {
                return disk.hasCopy ? "the copy is gone" : nil
            }
            let report = try EngineCheck.run(directory: copy)
            if !report.isClean { return "the copy: \(report.problems)" }
            let store = try Store(copy, PowerCut.options)
            let found = try store.scan(at: version, to: [0xF0])
            try store.engine.close()
            return found == model.entries([], [0xF0], at: version, .forward) ? nil : "the copy has something else"
        }
        let places = recording.places(ofEachKind: 2, others: 40, &cuts.random).filter { $0 >= start }
        let problem = cuts.problem(of: recording, at: PowerCuts.share(of: places))
        print("power cuts: \(cuts.count) of \(recording.events.count - start) events with a \(form), seed \(seed)")
        expectNil(problem)
    }

    /// Each sync, by its kind: what it makes durable.
    private static let syncs = [
        "sync .log", "sync .prepare", "sync log", "sync .run", "sync .mdb", "sync .side",
        "sync MANIFEST.new", "sync runs",
        "sync runs with MANIFEST", "sync FORMAT.new", "sync TIMELINE.new", "sync IDENTITY.new", "sync data", "sync top",
    ]

    @Test(arguments: CaseShare.of(syncs, 4))
    func `A sync that is missing is found`(sync: String) throws {
        let run = RecordedRun(seed: 5)
        try run.run(steps: 40)
        try run.run(steps: 10)
        let recording = run.end()
        let kinds = recording.kinds()
        expect(kinds.contains(sync))
        var problem: String?
        for seed in UInt64(1)...20 where problem == nil {
            var cuts = PowerCuts(seed: seed)
            cuts.isSynced = { kinds[$0] != sync }
            let places = recording.places(ofEachKind: 1, others: 20, &cuts.random)
            problem = cuts.problem(of: recording, at: places)
        }
        print("power cuts without \(sync): \(problem ?? "no problem")")
        expect(problem != nil)
    }

    @Test(arguments: CaseShare.of(["sync data", "sync runs", "sync log", "sync top"], 2))
    func `A sync that an opening after a kill leaves out is found`(sync: String) throws {
        let run = RecordedRun(seed: 7)
        try run.run(steps: 30)
        let recording = run.end()
        let unfinished = sync == "sync runs" ? "sync runs with MANIFEST" : sync
        let places = zip(recording.events.indices, recording.kinds()).filter { $0.1 == unfinished }.map(\.0)
        var problem: String?
        for seed in UInt64(1)...40 where problem == nil {
            var cuts = PowerCuts(seed: seed)
            cuts.kept = .all
            cuts.secondCutEvery = 1
            cuts.skippedBeforeSecondCut = sync
            problem = cuts.problem(of: recording, at: places)
        }
        print("power cuts after a kill, without \(sync): \(problem ?? "no problem")")
        expect(problem != nil)
    }
}
