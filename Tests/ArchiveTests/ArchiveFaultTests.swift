// Archives that are full, slow, damaged, of other stores, or on mounts that lack something.

import Basics
import EngineTestSupport
import Foundation
import Glibc
import Storage
import Synchronization
import TestSupport
import Testing

@testable import Archive
@testable import EmbeddedEngine
@testable import FileSystem

@Suite(.timeLimit(.minutes(20))) struct ArchiveFaultTests {
    private let directory = TemporaryDirectory("archive")
    private var data: String { directory.path(of: "data") }
    private var archive: String { directory.path(of: "archive") }
    private var restored: String { directory.path(of: "restored") }

    /// Makes commits to a store and a model.
    private func commit(
        _ versions: ClosedRange<UInt64>, to archived: ArchivedStore, _ model: inout Model, bytes: Int = 300
    ) throws {
        for version in versions {
            let changes = [Change.put("k\(version % 9)", "\(version)" + String(repeating: "x", count: bytes))]
            try archived.store.commit(version, changes)
            model.commit(version, changes)
        }
    }

    private func error(_ body: () throws -> Void) -> StorageError? {
        do {
            try body()
            return nil
        } catch {
            return error as? StorageError
        }
    }

    private func restoreHere(_ version: UInt64? = nil) throws {
        _ = try restore(from: archive, to: restored, upTo: version)
    }

    @Test(arguments: [ENOSPC, EIO])
    func `An archive that cannot be written delays no commit, is reported, and is complete later`(
        status: Int32
    ) throws {
        var model = Model()
        let archived = try ArchivedStore(data, archive: archive)
        try commit(1...20, to: archived, &model)
        try archived.archiveAll()
        let failing = FailingDirectory(archive, failure: status) {
            if case .write = $0 { true } else { false }
        }
        try commit(21...200, to: archived, &model, bytes: 2_000)
        try archived.store.engine.checkpointNow()
        expect(!archived.archiver.flush())
        expectEqual(archived.archiver.statistics.failure?.code, status == ENOSPC ? .full : .inputOutput)
        expectEqual(archived.events.count { if case .failing = $0 { true } else { false } }, 1)
        failing.set(0)
        try archived.archiveAll()
        expectNil(archived.archiver.statistics.failure)
        expectEqual(archived.archiver.statistics.gaps, 0)
        expectEqual(archived.events.count { if case .recovered = $0 { true } else { false } }, 1)
        failing.end()
        try archived.close()
        for version in [20, 21, 111, 200] as [UInt64] {
            try expectRestored(model, upTo: version, from: archive, to: restored)
        }
        try expectEqual(ArchiveCheck.run(archive), [])
    }

    /// A store whose archive has the commits 1 to 20 and takes no more. Its log keeps little for the archive.
    private func storeWithFullArchive(_ model: inout Model) throws -> (ArchivedStore, FailingDirectory) {
        var options = ArchivedStore.options
        options.logHeldBytesMax = 64 << 10
        let archived = try ArchivedStore(data, archive: archive, options)
        try commit(1...20, to: archived, &model)
        try archived.archiveAll()
        let failing = FailingDirectory(archive, failure: ENOSPC) {
            if case .write = $0 { true } else { false }
        }
        return (archived, failing)
    }

    @Test func `An archive that lags too far continues with a new base, and reports it`() throws {
        var model = Model()
        let (archived, failing) = try storeWithFullArchive(&model)
        expect(archived.archiver.flush())
        for start in stride(from: UInt64(21), to: 221, by: 20) {
            try commit(start...(start + 19), to: archived, &model, bytes: 2_000)
            try archived.store.engine.checkpointNow()
        }
        // The log has not grown: what the archive lacks is given up.
        expect(archived.store.engine.statistics.logSegmentsInUse < 10)
        failing.set(0)
        try archived.archiveAll()
        expectEqual(archived.archiver.statistics.gaps, 1)
        try waitUntil("there is a new base") {
            _ = archived.archiver.flush()
            return archived.archiver.statistics.bases == 2
        }
        try commit(221...240, to: archived, &model)
        failing.end()
        try archived.close()
        for version in [20, 220, 221, 240] as [UInt64] {
            try expectRestored(model, upTo: version, from: archive, to: restored)
        }
        let lost = error { try restoreHere(100) }
        expectEqual(lost?.code, .versionTooOld)
        expectEqual(lost?.message.contains("between versions 20 and 100"), true)
        try expectEqual(ArchiveCheck.run(archive), [])
    }

    @Test func `What the log has lost is reported once, also if the archive still fails when that is seen`() throws {
        var model = Model()
        let (archived, failing) = try storeWithFullArchive(&model)
        for start in stride(from: UInt64(21), to: 321, by: 20) {
            try commit(start...(start + 19), to: archived, &model, bytes: 2_000)
            try archived.store.engine.checkpointNow()
            if start > 200 { expect(!archived.archiver.flush()) }
        }
        expectEqual(archived.archiver.statistics.gaps, 0)
        failing.set(0)
        try archived.archiveAll()
        expectEqual(archived.archiver.statistics.gaps, 1)
        let gaps = archived.events.all.compactMap { event -> (after: UInt64, until: UInt64)? in
            guard case .gap(let after, let until) = event else { return nil }
            return (after.microseconds, until.microseconds)
        }
        expect(gaps.count == 1 && gaps.allSatisfy { $0.after == 20 && $0.until > 200 }, "\(gaps)")
        failing.end()
        try archived.close()
    }

    @Test func `What the log has lost while there was no archive is reported`() throws {
        var model = Model()
        let archived = try ArchivedStore(data, archive: archive)
        try commit(1...20, to: archived, &model)
        try archived.archiveAll()
        try archived.close()
        var options = ArchivedStore.options
        options.logHeldBytesMax = 0
        let alone = try Store(data, options)
        for version in 21...200 as ClosedRange<UInt64> {
            try alone.commit(version, [.put("k", String(repeating: "x", count: 2_000))])
        }
        try alone.engine.checkpointNow()
        try alone.engine.close()
        let again = try ArchivedStore(data, archive: archive)
        try again.archiveAll()
        expectEqual(again.archiver.statistics.gaps, 1)
        let gaps = again.events.count { event in
            if case .gap(let after, until: _) = event { after.microseconds == 20 } else { false }
        }
        expectEqual(gaps, 1)
        var later = model
        try commit(201...210, to: again, &later)
        try again.archiveAll()
        try again.close()
        // Commits after the gap, and no base that leads to them yet.
        let catalogue = try ArchiveCatalogue(archive)
        let newest = try #require(catalogue.bases.last).number
        try Directory.removeAll(ArchiveFormat.baseDirectory(newest, in: archive))
        let refusal = try #require(error { try restoreHere(nil) })
        expect(refusal.message.contains("no commits between versions 20 and 210"), "\(refusal)")
        expectEqual(refusal.remedy?.contains("--version 20"), true, "\(refusal)")
        try expectRestored(model, upTo: 20, from: archive, to: restored)
    }

    /// Mounts of object stores and others: each lacks one thing.
    @Test(arguments: [EPERM, EXDEV, ENOSYS, EOPNOTSUPP])
    func `Mounts without rename and links are archived to, also after a kill while a file is written`(
        status: Int32
    ) throws {
        var model = Model()
        let mount = FailingDirectory(archive, failure: status) { change in
            switch change {
            case .rename, .link: true
            default: false
            }
        }
        defer { mount.end() }
        let archived = try ArchivedStore(data, archive: archive)
        for start in stride(from: UInt64(1), to: 61, by: 10) {
            try commit(start...(start + 9), to: archived, &model)
            try archived.archiveAll()
        }
        try expect(ArchiveCatalogue(archive).files.count >= 5)
        try archived.close()
        for version in [1, 15, 60] as [UInt64] {
            try expectRestored(model, upTo: version, from: archive, to: restored)
        }
        // Half of the last file, as a kill leaves it: the log has what it lacks.
        let last = ArchiveFormat.recordFile(try ArchiveCatalogue(archive).files.count.number, in: archive)
        let bytes = Files.read(last)
        for length in [0, 50, RecordHeader.byteCount, bytes.count - 1] {
            Files.write(Array(bytes.prefix(length)), to: last)
            try expectEqual(ArchiveCatalogue(archive).problems, [])
            try expectRestored(model, upTo: 45, from: archive, to: restored)
        }
        let again = try ArchivedStore(data, archive: archive)
        try again.archiveAll()
        try again.close()
        try expectRestored(model, upTo: 60, from: archive, to: restored)
        try expectEqual(ArchiveCheck.run(archive), [])
    }

    @Test func `Damaged and missing files are refused with their name and a remedy, and others still lead to a state`()
        throws
    {
        var model = Model()
        let archived = try ArchivedStore(data, archive: archive) { $0.baseRecordBytesMin = 1 << 30 }
        try commit(1...10, to: archived, &model)
        try archived.archiveAll()
        let base = try #require(try ArchiveCatalogue(archive).bases.last)
        try commit(11...1_500, to: archived, &model, bytes: 1_000)
        expect(archived.archiver.flush())
        try commit(1_501...1_600, to: archived, &model, bytes: 1_000)
        try archived.close()
        let files = try ArchiveCatalogue(archive).files
        expect(files.count >= 2)
        let records = ArchiveFormat.recordFile(files[files.count - 1].number, in: archive)
        let baseFiles = ["BASE"] + base.parts.map(\.path)
        let paths = baseFiles.map { "\(ArchiveFormat.baseDirectory(base.number, in: archive))/\($0)" } + [records]
        var random = SeededGenerator(seed: 9)
        for path in paths {
            let bytes = Files.read(path)
            for _ in 0..<4 {
                var damaged = bytes
                damaged[random.below(bytes.count)] ^= UInt8(1 << random.below(8))
                Files.write(damaged, to: path)
                try expect(ArchiveCheck.run(archive).contains { $0.file == path && $0.remedy != nil })
                if path.hasSuffix("BASE") {
                    // The archive has all commits since the store was new, so another way leads there.
                    try expectRestored(model, upTo: 1_600, from: archive, to: restored)
                    continue
                }
                let found = error { try restoreHere() }
                expect(found?.code == .corrupt && found?.file == path, "\(path): \(String(describing: found))")
                expectEqual(found?.remedy?.contains("hearth archive check"), true)
                expect(!FileManager.default.fileExists(atPath: restored))
            }
            Files.write(bytes, to: path)
        }
        // Without its last file an archive looks like one that ends earlier.
        let whole = Files.read(records)
        let headers = stride(from: 0, to: RecordHeader.byteCount, by: 7).map { place in
            var damaged = whole
            damaged[place] ^= 1
            return damaged
        }
        for bytes in headers + [whole + [0]] {
            Files.write(bytes, to: records)
            let found = error { try restoreHere() }
            expect(found?.code == .corrupt && found?.file == records && found?.remedy != nil)
        }
        Files.write(whole, to: records)
        // What does not need the damaged file is restored.
        var damaged = Files.read(records)
        damaged[50] ^= 1
        Files.write(damaged, to: records)
        try expectRestored(model, upTo: 700, from: archive, to: restored)
        Files.remove(ArchiveFormat.recordFile(files[0].number, in: archive))
        try expect(ArchiveCheck.run(archive) != [])
        expect(error { try restoreHere(700) }?.code != nil)
        try expectRestored(model, upTo: base.version.microseconds, from: archive, to: restored)
    }

    @Test func `An archive takes the commits of one store and of one history alone`() throws {
        var model = Model()
        let archived = try ArchivedStore(data, archive: archive)
        try commit(1...10, to: archived, &model)
        try archived.archiveAll()
        let older = directory.path(of: "older")
        expect(archived.archiver.flush())
        Files.copyTree(data, to: older)
        expectEqual(error { _ = try ArchivedStore(directory.path(of: "second"), archive: archive) }?.code, .locked)
        try commit(11...20, to: archived, &model)
        try expectEqual(archived.store.engine.fork(to: directory.path(of: "fork")), 0)
        try archived.close()
        try restoreHere()
        for other in ["fork", "restored", "new"] {
            let refusal = error { _ = try ArchivedStore(directory.path(of: other), archive: archive) }
            expectEqual(refusal?.message.contains("of another store"), true, "\(other)")
            expectEqual(refusal?.remedy?.contains("name a new one"), true)
        }
        // An older copy of the directory lacks commits, and then has others.
        expectEqual(error { _ = try ArchivedStore(older, archive: archive) }?.remedy?.contains("restore it"), true)
        do {
            let store = try Store(older, ArchivedStore.options)
            for version in 11...30 as ClosedRange<UInt64> { try store.commit(version, [.put("other", "\(version)")]) }
        }
        expectEqual(
            error { _ = try ArchivedStore(older, archive: archive) }?.message.contains("another commit 20"), true)
        let again = try ArchivedStore(data, archive: archive)
        try again.close()
        expectEqual(error { _ = try ArchivedStore(data, archive: "\(data)/archive") }?.code, .inputOutput)
        expectEqual(error { _ = try ArchivedStore(data, archive: directory.path) }?.code, .inputOutput)
    }

    /// The disk with the archive is not mounted: its place is empty.
    private func unmounting(_ archive: String, _ body: () throws -> Void) throws {
        try Directory.rename(archive, to: "\(archive).away")
        try Directory.create(archive)
        try body()
        try Directory.removeAll(archive)
        try Directory.rename("\(archive).away", to: archive)
    }

    @Test func `No archive is begun where that of the store was, and it continues when it is there again`() throws {
        var model = Model()
        var archived = try ArchivedStore(data, archive: archive)
        try commit(1...10, to: archived, &model)
        try archived.archiveAll()
        try archived.close()
        try unmounting(archive) {
            archived = try ArchivedStore(data, archive: archive)
            try commit(11...20, to: archived, &model)
            expect(!archived.archiver.flush())
            expectEqual(archived.archiver.statistics.failure?.message.contains("is not there now"), true)
            expect(!Directory.exists("\(archive)/ARCHIVE"))
        }
        try archived.archiveAll()
        expect(archived.archiver.flush())
        // The lock is that of the archive, and not of its empty place.
        expectEqual(error { _ = try ArchivedStore(directory.path(of: "second"), archive: archive) }?.code, .locked)
        try archived.close()
        try expectEqual(ArchiveCheck.run(archive), [])
        try expectRestored(model, upTo: 20, from: archive, to: restored)

        // Another directory is chosen on purpose, and so is one whose mark was removed.
        let other = directory.path(of: "other-archive")
        archived = try ArchivedStore(data, archive: other)
        try archived.archiveAll()
        try archived.close()
        try Directory.removeAll(other)
        Files.remove("\(data)/ARCHIVED")
        archived = try ArchivedStore(data, archive: other)
        try archived.archiveAll()
        try archived.close()
    }

    @Test func `No base is made in the place of an archive that has gone while the server runs`() throws {
        var model = Model()
        let time = Atomic<UInt64>(0)
        let archived = try ArchivedStore(data, archive: archive) { settings in
            settings.clock = { time.load(ordering: .relaxed) }
        }
        try commit(1...10, to: archived, &model)
        try archived.archiveAll()
        try commit(11...20, to: archived, &model)
        expect(archived.archiver.flush())
        try unmounting(archive) {
            // Another base is due.
            time.store(100_000_000_000, ordering: .relaxed)
            try waitUntil("a base has failed") {
                _ = archived.archiver.flush()
                return archived.archiver.statistics.failures > 0
            }
            try expectEqual(Directory.names(in: archive), [])
        }
        try waitUntil("the base is made") {
            _ = archived.archiver.flush()
            return archived.archiver.statistics.bases == 2
        }
        try archived.close()
        try expectEqual(ArchiveCheck.run(archive), [])
    }

    @Test func `What is older than the retention is removed, and the rest can be restored`() throws {
        var model = Model()
        let archived = try ArchivedStore(data, archive: archive) { settings in
            settings.retentionMilliseconds = 0
            settings.clock = { 1_000_000 }
            settings.baseMilliseconds = 0
        }
        for start in stride(from: UInt64(1), to: 1_001, by: 100) {
            try commit(start...(start + 99), to: archived, &model, bytes: 6_000)
            try archived.archiveAll()
            try waitUntil("there is a base of the round") {
                _ = archived.archiver.flush()
                return archived.archiver.statistics.baseVersion?.microseconds ?? 0 >= start
            }
        }
        try archived.close()
        let catalogue = try ArchiveCatalogue(archive)
        expect(catalogue.bases.count <= 2)
        expect(catalogue.files.first?.number ?? 0 > 1)
        let first = try #require(catalogue.bases.first).version.microseconds
        expect(first > 800)
        try expectRestored(model, upTo: first, from: archive, to: restored)
        try expectRestored(model, upTo: 1_000, from: archive, to: restored)
        expectEqual(error { try restoreHere(first - 1) }?.message.contains("begins with version \(first)"), true)
        try expectEqual(ArchiveCheck.run(archive), [])
        try expectEqual(ArchiveRetention.pruneUnused(archive, before: .max).bases, catalogue.bases.count - 1)
        try expectRestored(model, upTo: 1_000, from: archive, to: restored)
    }

    @Test func `A clock that is ahead for less than an hour removes nothing, and the next base comes in time`() throws {
        let day: UInt64 = 86_400_000_000
        let time = Atomic<UInt64>(day)
        let elapsed = Atomic<UInt64>(0)
        var model = Model()
        let archived = try ArchivedStore(data, archive: archive) { settings in
            settings.clock = { time.load(ordering: .relaxed) }
            settings.elapsedMilliseconds = { elapsed.load(ordering: .relaxed) }
        }
        func waitForBases(_ count: UInt64) throws {
            try waitUntil("there are \(count) bases") {
                archived.archiver.flush() && archived.archiver.statistics.bases == count
            }
        }
        func pass(days: UInt64) {
            time.add(days * day, ordering: .relaxed)
            elapsed.add(days * day / 1_000, ordering: .relaxed)
        }
        for count in [1, 2] as [UInt64] {
            try commit((100 * count - 99)...(100 * count), to: archived, &model, bytes: 6_000)
            if count == 2 { pass(days: 2) }
            try waitForBases(count)
        }
        let kept = try ArchiveCatalogue(archive).bases
        expect(kept.count >= 2)
        // Each base removes what is too old.
        time.add(365 * day, ordering: .relaxed)
        elapsed.add(SettledTime.windowMilliseconds - 1, ordering: .relaxed)
        try commit(201...210, to: archived, &model)
        try waitForBases(3)
        try expect(ArchiveCatalogue(archive).bases.starts(with: kept))
        time.subtract(365 * day, ordering: .relaxed)
        try commit(211...220, to: archived, &model)
        try waitForBases(4)
        try expect(ArchiveCatalogue(archive).bases.starts(with: kept))
        pass(days: 30)
        try commit(221...230, to: archived, &model)
        try waitForBases(5)
        try expect(!ArchiveCatalogue(archive).bases.starts(with: kept))
        try archived.close()
        try expectRestored(model, upTo: 230, from: archive, to: restored)
    }

    @Test func `Bases are removed also if versions are ahead of the clock`() throws {
        var model = Model()
        try archiveWithBases(&model, clock: 50).close()
        let bases = try ArchiveCatalogue(archive).bases
        let newest = try #require(bases.last).version.microseconds
        expect(newest > 100)
        // The last of those from before the time stays. How many there are depends on when they were made.
        let early = bases.count { !$0.isEmpty && $0.version.microseconds <= 49 }
        try expectEqual(ArchiveRetention.prune(archive, before: 49).bases, max(early - 1, 0))
        try expect(ArchiveRetention.prune(archive, before: 60).bases > 0)
        try expectEqual(ArchiveCatalogue(archive).bases.map(\.version.microseconds), [newest])
        try expectRestored(model, upTo: newest, from: archive, to: restored)
        try expectEqual(ArchiveCheck.run(archive), [])
    }

    @Test func `A base whose description cannot be looked at is neither removed nor written over`() throws {
        var model = Model()
        try archiveWithBases(&model).close()
        let newest = try #require(try ArchiveCatalogue(archive).bases.last)
        let description = ArchiveFormat.baseDirectory(newest.number, in: archive) + "/BASE"
        let bytes = Files.read(description)
        Files.remove(description)
        // A link to itself stands for a mount that does not answer.
        expectEqual(symlink(description, description), 0)
        let archived = try ArchivedStore(data, archive: archive) { settings in
            settings.clock = { 1_000_000 }
            settings.baseMilliseconds = 0
        }
        try commit(201...210, to: archived, &model)
        try waitUntil("there is another base") {
            _ = archived.archiver.flush()
            return archived.archiver.statistics.bases > 0
        }
        try archived.close()
        expectEqual(archived.events.count { if case .damaged = $0 { true } else { false } }, 1)
        expectEqual(Files.names(in: ArchiveFormat.baseDirectory(newest.number, in: archive)), ["BASE", "runs"])
        Files.remove(description)
        Files.write(bytes, to: description)
        try expect(ArchiveCatalogue(archive).bases.contains { $0 == newest })
        try expectEqual(ArchiveCheck.run(archive), [])
        try expectRestored(model, upTo: newest.version.microseconds, from: archive, to: restored)
    }

    /// An archive with at least two bases, and commits after the first.
    private func archiveWithBases(
        _ model: inout Model, rounds: UInt64 = 2, clock: UInt64 = 1_000_000
    ) throws -> ArchivedStore {
        let archived = try ArchivedStore(data, archive: archive) { settings in
            settings.clock = { clock }
            settings.retentionMilliseconds = 1 << 40
            settings.baseMilliseconds = 0
        }
        for start in stride(from: 1, to: 100 * rounds, by: 100) {
            // More than a file of records that is replaced.
            try commit(start...(start + 99), to: archived, &model, bytes: 6_000)
            try waitUntil("there is a base of the round") {
                _ = archived.archiver.flush()
                return archived.archiver.statistics.baseVersion?.microseconds ?? 0 >= start
            }
        }
        return archived
    }

    @Test func `A restore whose base is pruned takes another one, or says that the version has gone`() throws {
        var model = Model()
        try archiveWithBases(&model).close()
        let bases = try ArchiveCatalogue(archive).bases.filter { !$0.isEmpty }
        let newest = try #require(bases.last).version.microseconds
        // At the time of the look no base after the first one was there.
        let later = bases.dropFirst().map { ArchiveFormat.baseDirectory($0.number, in: archive) + "/BASE" }
        let contents = later.map { Files.read($0) }
        for path in later { Files.remove(path) }
        func restorePruned(upTo version: UInt64) throws -> ArchiveRestore.Outcome {
            var isPruned = false
            return try ArchiveRestore.run(
                from: archive, to: restored, upTo: CommitVersion(microseconds: version),
                progress: { _ in
                    if isPruned { return }
                    isPruned = true
                    for (path, bytes) in zip(later, contents) { Files.write(bytes, to: path) }
                    do {
                        try expect(ArchiveRetention.prune(archive, before: .max).bases > 0)
                    } catch {
                        Issue.record("the archive cannot be pruned: \(error)")
                    }
                },
                replay: { records in
                    var options = EngineOptions.small
                    options.beginsTimeline = false
                    options.restoredRecords = records
                    try Store(restored, options).engine.close()
                })
        }
        let saved = directory.path(of: "saved")
        Files.copyTree(archive, to: saved)
        let outcome = try restorePruned(upTo: newest)
        expect(outcome.version.microseconds == newest && outcome.baseVersion.microseconds == newest)
        let store = try Store(restored, .small)
        try expectEqual(store.scan(to: [0xF0]), model.entries([], [0xF0], at: newest, .forward))
        try store.engine.close()
        Files.remove(restored)

        Files.remove(archive)
        Files.copyTree(saved, to: archive)
        let gone = error { _ = try restorePruned(upTo: newest - 1) }
        expectEqual(gone?.code, .versionTooOld, "\(String(describing: gone))")
        expectEqual(gone?.message.contains("begins with version \(newest)"), true)
        expectEqual(gone?.message.contains("removed during the restore"), true)
        expect(!FileManager.default.fileExists(atPath: restored))
    }

    @Test func `Damaged files that no restore needs any more are removed with the others`() throws {
        var model = Model()
        try archiveWithBases(&model, rounds: 4).close()
        let catalogue = try ArchiveCatalogue(archive)
        let base = try #require(catalogue.bases.first { !$0.isEmpty })
        let (first, last) = (catalogue.files[0], try #require(catalogue.files.last))
        let newest = try #require(catalogue.bases.last)
        expect(last.number > first.number + 2 && base != newest)
        for path in [
            ArchiveFormat.recordFile(first.number + 1, in: archive),
            ArchiveFormat.baseDirectory(base.number, in: archive) + "/BASE",
        ] {
            var bytes = Files.read(path)
            bytes[20] ^= 1
            Files.write(bytes, to: path)
        }
        try expectEqual(ArchiveCheck.run(archive).count, 2)
        _ = try ArchiveRetention.prune(archive, before: .max)
        try expectEqual(ArchiveCheck.run(archive), [])
        try expectEqual(ArchiveCatalogue(archive).bases, [newest])
        try expectRestored(model, upTo: 400, from: archive, to: restored)
    }

    @Test func `What is pruned during a check is not missing`() throws {
        var model = Model()
        try archiveWithBases(&model).close()
        var isPruned = false
        let problems = try ArchiveCheck.run(archive) { _ in
            if isPruned { return }
            isPruned = true
            do {
                try expect(ArchiveRetention.prune(archive, before: .max).bases > 0)
            } catch {
                Issue.record("the archive cannot be pruned: \(error)")
            }
        }
        expect(isPruned && problems == [])
    }

    @Test func `A restored directory has a new identity and a new history`() throws {
        var model = Model()
        let archived = try ArchivedStore(data, archive: archive)
        try commit(1...10, to: archived, &model)
        try archived.archiveAll()
        try archived.close()
        try restoreHere()
        expect(!FileManager.default.fileExists(atPath: "\(restored)/TIMELINE"))
        var options = EngineOptions.small
        options.clock = { 777 }
        let store = try Store(restored, options)
        guard case .embedded(let engine) = store.engine else { return }
        expectEqual(engine.timelineStart.microseconds, 777)
        let original = try IdentityFile.read(in: data)
        expect(engine.identity != nil && engine.identity != original)
        try store.engine.close()
    }
}

extension Int {
    /// The number of the last of so many files.
    fileprivate var number: UInt64 { UInt64(self) }
}
