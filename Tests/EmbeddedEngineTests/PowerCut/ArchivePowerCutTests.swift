// Power cuts at any step of an archive on the same disk: it is never damaged, has what it said to have, and never more
// than the store.

import Archive
import EngineTestSupport
import Foundation
import Storage
import StorageEngines
import TestSupport
import Testing

@testable import EmbeddedEngine

extension RecordedRun {
    /// Makes commits and archives them now and then.
    fileprivate func runArchived(steps: Int) throws {
        options.logHeldBytesMax = 16 << 20
        let store = try Store(directory.path + "/data", options)
        recording.timelineStart = store.engine.timelineStart.microseconds
        let archiver = try Self.archiver(store, directory.path + "/archive")
        for _ in 0..<steps {
            switch random.below(10) {
            case 0: try store.engine.checkpointNow()
            case 1...3:
                expect(archiver.flush())
                recorder.note(.archive(version: recording.commits.last?.version ?? 0))
            default: try commitGroup(store)
            }
        }
        archiver.stop()
        try store.engine.close()
    }

    fileprivate static func archiver(_ store: Store, _ directory: String) throws -> Archiver {
        guard case .embedded(let engine) = store.engine else { preconditionFailure("an engine without files") }
        var settings = ArchiveSettings(directory: directory)
        settings.intervalMilliseconds = 1 << 40
        settings.baseRecordBytesMin = 20 << 10
        settings.clock = { 0 }
        return try Archiver(engine, settings)
    }
}

@Suite(.timeLimit(.minutes(20)))
struct ArchivePowerCutTests {
    private static let isSoak = ProcessInfo.processInfo.environment["HEARTH_SOAK"] != nil
    private static let factor = isSoak ? 20 : 1

    @Test(arguments: CaseShare.of(UInt64(1)...4, 1))
    func `An archive is whole after each cut, and continues`(seed: UInt64) throws {
        let run = RecordedRun(seed: seed)
        for _ in 0..<2 { try run.runArchived(steps: 30) }
        let recording = run.end()
        let options = run.options
        var cuts = PowerCuts(seed: seed)
        cuts.inspect = { path, disk in try Self.problem(path, disk, recording, options) }
        let places = recording.places(ofEachKind: Self.factor, others: 20 * Self.factor, &cuts.random)
        // Each cut is followed by a new base, a check of the whole archive and a restore.
        let share = PowerCuts.share(of: places, oneIn: Self.isSoak ? 1 : 3)
        let problem = cuts.problem(of: recording, at: share)
        print("power cuts: \(cuts.count) of \(recording.events.count) events with an archive, seed \(seed)")
        expectNil(problem)
    }

    /// Looks at a copy of what a cut left.
    private static func problem(
        _ path: String, _ disk: SimulatedDisk, _ recording: Recording, _ options: EngineOptions
    ) throws -> String? {
        let archive = path + "/archive"
        guard Files.isDirectory(archive), Files.names(in: archive).contains("ARCHIVE") else {
            return disk.archived > 0 ? "the archive is gone" : nil
        }
        let catalogue = try ArchiveCatalogue(archive)
        if let problem = catalogue.problems.first { return "the archive: \(problem)" }
        let last = max(catalogue.lastVersion ?? .zero, catalogue.chains.last?.last ?? .zero).microseconds
        if last < disk.archived { return "the archive had \(disk.archived), and has \(last)" }
        let copy = TemporaryDirectory("archive-cut")
        for name in ["data", "archive"] { Files.copyTree("\(path)/\(name)", to: copy.path(of: name)) }
        let store = try Store(copy.path(of: "data"), options)
        // What is durable may be archived before the thread that committed it notes the acknowledgement.
        let recovered = store.engine.publishedVersion.microseconds
        if last > recovered { return "the archive has \(last), and the store has \(recovered)" }
        let archiver = try RecordedRun.archiver(store, copy.path(of: "archive"))
        try waitUntil("the archive has a base and everything") {
            archiver.flush() && archiver.statistics.baseVersion != nil
        }
        let published = store.engine.publishedVersion.microseconds
        archiver.stop()
        try store.engine.close()
        if archiver.statistics.gaps > 0 { return "the archive has a gap" }
        let problems = try ArchiveCheck.run(copy.path(of: "archive"))
        if !problems.isEmpty { return "the archive that continued: \(problems)" }
        _ = try ArchiveRestore.run(
            from: copy.path(of: "archive"), to: copy.path(of: "restored"),
            replay: { records in
                var options = PowerCut.options
                options.beginsTimeline = false
                options.restoredRecords = records
                try Store(copy.path(of: "restored"), options).engine.close()
            })
        let restored = try Store(copy.path(of: "restored"), PowerCut.options)
        defer { try? restored.engine.close() }
        let found = try restored.scan(to: [0xF0])
        let expected = recording.model(upTo: published).entries([], [0xF0], at: published, .forward)
        return found == expected ? nil : "version \(published) is restored as something else"
    }
}
