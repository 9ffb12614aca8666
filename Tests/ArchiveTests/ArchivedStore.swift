// An engine with an archive, and a model of what was committed.

import Basics
import EmbeddedEngine
import EngineTestSupport
import Glibc
import Storage
import StorageEngines
import Synchronization
import TestSupport
import Testing

@testable import Archive
@testable import FileSystem

/// What an archive has reported.
final class Events: Sendable {
    private let events = Monitor<[ArchiveEvent]>([])

    func add(_ event: ArchiveEvent) { events.update { $0.append(event) } }

    var all: [ArchiveEvent] { events.withLock { $0 } }

    func count(where matches: (ArchiveEvent) -> Bool) -> Int { all.count(where: matches) }
}

/// An open engine whose commits are archived when a test asks for it.
final class ArchivedStore {
    let store: Store
    let archiver: Archiver
    let events = Events()
    let archive: String

    static var options: EngineOptions {
        var options = EngineOptions.small
        options.memtableBytesMax = 64 << 10
        options.logSegmentBytes = 16 << 10
        options.logSpareSegmentsMax = 1
        options.runFileBytesMax = 16 << 10
        options.logHeldBytesMax = 64 << 20
        return options
    }

    init(
        _ directory: String, archive: String, _ options: EngineOptions = ArchivedStore.options,
        configure: (inout ArchiveSettings) -> Void = { _ in }
    ) throws {
        self.archive = archive
        store = try Store(directory, options)
        guard case .embedded(let engine) = store.engine else { preconditionFailure("an engine without files") }
        var settings = ArchiveSettings(directory: archive)
        // Tests say when, and their versions are small numbers.
        settings.intervalMilliseconds = 1 << 40
        settings.clock = { 0 }
        settings.baseRecordBytesMin = 100 << 10
        settings.onEvent = { [events] in events.add($0) }
        configure(&settings)
        archiver = try Archiver(engine, settings)
    }

    /// Waits until the archive has everything, a base included.
    func archiveAll() throws {
        try waitUntil("the archive has a base and everything") {
            archiver.flush() && archiver.statistics.baseVersion != nil
        }
    }

    func close() throws {
        archiver.stop()
        try store.engine.close()
    }
}

/// Changes of files in a directory that fail.
final class FailingDirectory: Sendable {
    private let failure: Mutex<Int32>
    private let watch = Monitor<DiskWatch?>(nil)

    /// - Parameters:
    ///   - failure: an `errno`, or 0.
    ///   - affects: the changes that fail.
    init(_ directory: String, failure: Int32, affects: @escaping @Sendable (DiskChange) -> Bool) {
        self.failure = Mutex(failure)
        let began = DiskWatch.begin(directory) { [self] change, call in
            let failure = self.failure.withLock { $0 }
            if failure != 0, affects(change) {
                errno = failure
                return -1
            }
            return call()
        }
        watch.withLock { $0 = began }
    }

    func set(_ failure: Int32) { self.failure.withLock { $0 = failure } }

    func end() { watch.withLock { $0?.end() } }
}

/// Restores a state of an archive, as `hearth restore` does.
func restore(
    from archive: String, to target: String, upTo version: UInt64? = nil, _ options: EngineOptions = .small
) throws -> ArchiveRestore.Outcome {
    try ArchiveRestore.run(
        from: archive, to: target, upTo: version.map { CommitVersion(microseconds: $0) },
        replay: { records in
            var options = options
            options.beginsTimeline = false
            options.restoredRecords = records
            try Store(target, options).engine.close()
        })
}

/// What a restored directory must have.
func expectRestored(
    _ model: Model, upTo version: UInt64, from archive: String, to target: String,
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let outcome = try restore(from: archive, to: target, upTo: version)
    expect(outcome.version.microseconds <= version, sourceLocation: sourceLocation)
    let restored = try Store(target, .small)
    let found = try restored.scan(to: [0xF0])
    expectEqual(
        found, model.entries([], [0xF0], at: version, .forward), "version \(version)", sourceLocation: sourceLocation)
    try restored.engine.close()
    try expectClean(target, sourceLocation: sourceLocation)
    Files.remove(target)
}
