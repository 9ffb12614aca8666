// A recorded run of the engine, and the power cuts that a test makes of it.

import EngineTestSupport
import Storage
import TestSupport

@testable import EmbeddedEngine

/// Commits, and what the engine did to the disk for them.
struct Recording {
    /// What the disk had before, all durable.
    var start = SimulatedDisk()
    var events: [DiskEvent] = []
    var commits: [(version: UInt64, changes: [Change])] = []
    /// What the engine says since its first commit.
    var timelineStart: UInt64 = 0

    /// The kind of each event: what is done to which kind of file.
    func kinds() -> [String] {
        var paths: [Int32: String] = [:]
        /// A manifest was renamed, and its directory was not synced since.
        var hasManifest = false
        return events.map { event in
            switch event {
            case .open(let descriptor, let path, _, _):
                paths[descriptor] = path
                return "open \(Self.kind(ofFile: path))"
            case .write(let descriptor, _, _): return "write \(Self.kind(ofFile: paths[descriptor]!))"
            case .resize(let descriptor, _): return "resize \(Self.kind(ofFile: paths[descriptor]!))"
            case .sync(let descriptor):
                let kind = Self.kind(ofFile: paths[descriptor]!)
                guard kind == "runs", hasManifest else { return "sync \(kind)" }
                hasManifest = false
                return "sync runs with MANIFEST"
            case .close(let descriptor): return "close \(Self.kind(ofFile: paths[descriptor] ?? "?"))"
            case .makeDirectory(let path): return "make \(Self.kind(ofFile: path))"
            case .rename(let path, let newPath):
                if newPath.hasSuffix("/MANIFEST") { hasManifest = true }
                return "rename \(Self.kind(ofFile: path))"
            case .link(let path, _): return "link \(Self.kind(ofFile: path))"
            case .removeFile(let path): return "remove \(Self.kind(ofFile: path))"
            case .removeDirectory(let path): return "remove \(Self.kind(ofFile: path))"
            case .begin: return "begin"
            case .acknowledge: return "acknowledge"
            case .endCopy: return "end of a copy"
            case .archive: return "archive"
            }
        }
    }

    /// The name of a file without its number.
    private static func kind(ofFile path: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? "top"
        for ending in [".run", ".mdb", ".side", ".log", ".prepare"] where name.hasSuffix(ending) { return ending }
        return name
    }

    /// Places to cut, ascending: before and after some events of each kind, and some others.
    func places(ofEachKind: Int, others: Int, _ random: inout SeededGenerator) -> [Int] {
        var places: Set<Int> = []
        let byKind = Dictionary(grouping: zip(events.indices, kinds()), by: \.1)
        for (_, found) in byKind.sorted(by: { $0.key < $1.key }) {
            for _ in 0..<ofEachKind {
                let event = random.pick(found).0
                places.formUnion([event, event + 1])
            }
        }
        for _ in 0..<others { places.insert(random.below(events.count + 1)) }
        return places.sorted()
    }

    /// What a reader must find after a recovery that found commits up to `version`.
    func model(upTo version: UInt64) -> Model {
        var model = Model()
        for commit in commits where commit.version <= version { model.commit(commit.version, commit.changes) }
        return model
    }
}

/// Opens what a power cut left, and looks whether everything that was promised is there.
struct PowerCut {
    /// The commits that may be found.
    let commits: [(version: UInt64, changes: [Change])]
    let begun: UInt64
    let acknowledged: UInt64
    /// The start of the timeline; nil if there need not be one.
    let timelineStart: UInt64?
    /// The time after the cut.
    let now: UInt64

    /// The engine's options: everything is small.
    static var options: EngineOptions {
        var options = EngineOptions.small
        options.memtableBytesMax = 16 << 10
        options.logSegmentBytes = 16 << 10
        options.runFileBytesMax = 16 << 10
        options.diskReserveBytes = 64 << 10
        options.latestOnlySpaces = [0xF0]
        return options
    }

    /// After a cut nothing is removed any more.
    private func open(_ directory: String) throws -> Store {
        var options = Self.options
        options.clock = { [now] in now }
        return try Store(directory, options)
    }

    /// Opens `path/data`, reads, commits once more, closes, checks and reopens.
    /// - Returns: what is wrong, or nil; and the recording of all this, for a second cut.
    func problem(
        in path: String, from disk: SimulatedDisk, _ random: inout SeededGenerator
    ) -> (problem: String?, recording: Recording) {
        var recording = Recording(start: disk)
        let recorder = DiskRecorder(path)
        var found: String?
        do {
            found = try look(path + "/data", recorder, &recording, &random)
        } catch {
            found = "\(error)"
        }
        recording.events = recorder.end()
        return (found, recording)
    }

    private func look(
        _ directory: String, _ recorder: DiskRecorder, _ recording: inout Recording, _ random: inout SeededGenerator
    ) throws -> String? {
        if Files.isDirectory(directory), Files.names(in: directory).contains("FORMAT") {
            let report = try EngineCheck.run(directory: directory)
            if !report.isClean { return "before opening: \(report.problems)" }
        } else if acknowledged > 0 {
            return "the directory is gone"
        }
        if let problem = try recover(directory, recorder, &recording, &random) { return problem }
        if let problem = try leftover(directory) { return problem }
        let store = try open(directory)
        let last = recording.commits.last!.version
        if store.engine.publishedVersion.microseconds != last { return "the commit after the cut is gone" }
        if store.replayed != [] { return "a clean close left commits in the log" }
        let problem = try compare(store, recording.model(upTo: last), at: last)
        try store.engine.close()
        return problem
    }

    /// The first opening: recovery, reads, a commit, and a close.
    private func recover(
        _ directory: String, _ recorder: DiskRecorder, _ recording: inout Recording, _ random: inout SeededGenerator
    ) throws -> String? {
        let store = try open(directory)
        let last = store.engine.publishedVersion.microseconds
        if last < acknowledged { return "\(acknowledged) was acknowledged, and \(last) is the last" }
        if last > begun { return "\(last) was not begun" }
        recording.commits = commits.filter { $0.version <= last }
        if last != recording.commits.last?.version ?? 0 { return "\(last) is the last, and no commit" }
        recorder.note(.acknowledge(version: last))
        recording.timelineStart = store.engine.timelineStart.microseconds
        if let timelineStart, recording.timelineStart != timelineStart { return "the timeline is new" }
        let model = recording.model(upTo: last)
        let oldest = store.engine.oldestReadableVersion.microseconds
        if oldest > last { return "nothing can be read" }
        for version in [last, UInt64.random(in: oldest...last, using: &random), oldest] {
            if let problem = try compare(store, model, at: version) { return problem }
        }
        let next = (version: begun + 1, changes: [Change.put("after the cut", "\(begun + 1)")])
        recording.commits.append(next)
        recorder.note(.begin(version: next.version))
        try store.commit(next.version, next.changes)
        recorder.note(.acknowledge(version: next.version))
        if random.oneIn(2) { try store.engine.checkpointNow() }
        try store.engine.close()
        return nil
    }

    private func compare(_ store: Store, _ model: Model, at version: UInt64) throws -> String? {
        let found = try store.scan(at: version, to: [0xF0])
        let expected = model.entries([], [0xF0], at: version, .forward)
        return found == expected ? nil : "at \(version) there is something else"
    }

    /// A file that nothing needs, or what the check finds.
    private func leftover(_ directory: String) throws -> String? {
        let report = try EngineCheck.run(directory: directory)
        if !report.isClean { return "\(report.problems)" }
        let manifest = try Manifest.read(in: directory + "/runs")
        let named = manifest.runs.flatMap { $0.parts.flatMap { RunFormat.fileNames($0.file, $0.kind) } }.sorted()
        let runs = Files.names(in: directory + "/runs").filter { $0 != "MANIFEST" && $0 != "space" }
        if runs != named { return "the files of runs are \(runs), the manifest names \(named)" }
        let names = Files.names(in: directory).filter { !$0.hasSuffix(".new") && $0 != CompanionFiles.archived }
        if names != ["FORMAT", "IDENTITY", "LOCK", "TIMELINE", "log", "runs"] { return "there are the files \(names)" }
        let log = Files.names(in: directory + "/log").filter { !$0.hasSuffix(".log") && $0 != "reserve" }
        return log == [] ? nil : "the log has the files \(log)"
    }
}

/// Many cuts of one recording.
struct PowerCuts {
    var random: SeededGenerator
    /// Cuts that were made.
    private(set) var count = 0
    /// What cuts keep; nil for a choice each time.
    var kept: SimulatedDisk.Kept?
    /// Makes a second cut after one in so many, while the directory is opened again; 0 for none.
    var secondCutEvery = 0
    /// The kind of sync that has no effect the first time that it comes before a second cut.
    var skippedBeforeSecondCut: String?
    /// Which syncs have an effect.
    var isSynced: (Int) -> Bool = { _ in true }
    /// Looks at something else that a cut left, and returns what is wrong.
    var inspect: (_ path: String, SimulatedDisk) throws -> String? = { _, _ in nil }

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    /// The places where a run makes cuts: one in so many, others each day. Under the thread sanitizer a fifth of these:
    /// `Tools/test` makes all of them without it.
    static func share(of places: [Int], oneIn parts: Int = 1) -> [Int] {
        #if THREAD_SANITIZER
            let parts = 5 * parts
        #endif
        return places.indices.filter { ($0 + CaseShare.number) % parts == 0 }.map { places[$0] }
    }

    /// Makes cuts at some places.
    /// - Returns: the first problem.
    mutating func problem(of recording: Recording, at places: [Int]) -> String? {
        var disk = recording.start
        var next = 0
        for place in places {
            while next < place {
                if isSynced(next) { disk.apply(recording.events[next]) }
                next += 1
            }
            let usual: SimulatedDisk.Kept = random.oneIn(2) ? .namesInOrder : .any
            let kept = kept ?? (random.oneIn(6) ? random.pick(SimulatedDisk.Kept.allCases) : usual)
            if let problem = problem(of: recording, disk, kept) {
                return "seed \(random.seed), cut \(count) before event \(place) keeps \(kept): \(problem)"
            }
        }
        return nil
    }

    private mutating func problem(
        of recording: Recording, _ disk: SimulatedDisk, _ kept: SimulatedDisk.Kept
    ) -> String? {
        count += 1
        let directory = TemporaryDirectory("power-cut")
        let path = directory.path(of: "disk")
        disk.write(kept, to: path, &random)
        // After a kill of the process alone, what was not synced may still be lost later.
        var left = disk
        left.kill()
        if kept != .all {
            left = SimulatedDisk(loading: path, begun: disk.begun, acknowledged: disk.acknowledged)
        }
        let isNew = disk.acknowledged <= recording.start.acknowledged
        let cut = PowerCut(
            commits: recording.commits, begun: disk.begun, acknowledged: disk.acknowledged,
            timelineStart: isNew ? nil : recording.timelineStart, now: recording.timelineStart + 1 << 40)
        do {
            if let problem = try inspect(path, disk) { return problem }
        } catch {
            return "\(error)"
        }
        let (problem, second) = cut.problem(in: path, from: left, &random)
        if let problem { return problem }
        guard secondCutEvery > 0, random.oneIn(secondCutEvery) else { return nil }
        var cuts = PowerCuts(seed: random.next())
        var places = 0..<(second.events.count + 1)
        if let skippedBeforeSecondCut {
            let kinds = second.kinds()
            let skipped = kinds.firstIndex(of: skippedBeforeSecondCut)
            cuts.isSynced = { $0 != skipped }
            // The next sync of the same directory makes up for it.
            if let skipped {
                let next = kinds[(skipped + 1)...].firstIndex { $0.hasPrefix(skippedBeforeSecondCut) }
                places = (skipped + 1)..<((next ?? kinds.count) + 1)
            }
        }
        defer { count += cuts.count }
        let place = places.lowerBound + random.below(places.count)
        return cuts.problem(of: second, at: [place]).map { "then \($0)" }
    }
}
