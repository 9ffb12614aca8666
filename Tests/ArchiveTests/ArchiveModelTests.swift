// Random commits and everything that may happen to a store and its archive, beside a model: each version that is
// restored has what was committed up to it, forks of forks have what was committed to each, and damage is reported or
// has no effect.
//
// HEARTH_SOAK makes each of the six worlds ten times as long, with 200 restored versions and 100 damaged archives.

import EngineTestSupport
import Foundation
import Storage
import TestSupport
import Testing

@testable import Archive

@Suite(.timeLimit(.minutes(20))) struct ArchiveModelTests {
    private static let isSoak = ProcessInfo.processInfo.environment["HEARTH_SOAK"] != nil

    /// A store with its archive. After a kill both continue as copies.
    private struct World {
        let directory = TemporaryDirectory("archive")
        var random: SeededGenerator
        var model = Model()
        var generation = 0
        var archived: ArchivedStore

        var data: String { directory.path(of: "data\(generation)") }
        var archive: String { directory.path(of: "archive\(generation)") }

        init(seed: UInt64) throws {
            random = SeededGenerator(seed: seed)
            archived = try ArchivedStore(directory.path(of: "data0"), archive: directory.path(of: "archive0"))
        }

        mutating func commit() throws { try Self.commit(to: archived.store, &model, &random) }

        private static func commit(to store: Store, _ model: inout Model, _ random: inout SeededGenerator) throws {
            let version = model.last + 1 + UInt64(random.below(3))
            let changes = (0..<(1 + random.below(6))).map { _ in
                let name = Bytes("key \(random.below(50))".utf8) + [0]
                let value = Bytes(repeating: UInt8(version % 250), count: random.below(random.oneIn(20) ? 9000 : 400))
                return Change(key: random.pick([[0x10] + name, name]), value: random.oneIn(5) ? nil : value)
            }
            try store.commit(version, changes)
            model.commit(version, changes)
        }

        /// Makes a fork, a fork of it and so on, each of an open store, writes to all of them, and reads all of them.
        mutating func fork() throws {
            var stores = [archived.store]
            var models = [model]
            for depth in 1...(1 + random.below(3)) {
                let path = directory.path(of: "fork\(depth)")
                _ = try stores[depth - 1].engine.fork(to: path)
                stores.append(try Store(path, ArchivedStore.options))
                models.append(models[depth - 1])
                for _ in 0..<(1 + random.below(20)) {
                    let place = random.below(stores.count)
                    try Self.commit(to: stores[place], &models[place], &random)
                    if random.oneIn(8) { try stores[place].engine.checkpointNow() }
                }
            }
            model = models[0]
            for (depth, store) in stores.enumerated() {
                let expected = models[depth].entries([], [0xF0], at: models[depth].last, .forward)
                try expectEqual(store.scan(to: [0xF0]), expected)
                if depth == 0 { continue }
                try store.engine.close()
                let path = directory.path(of: "fork\(depth)")
                try expectClean(path)
                Files.remove(path)
            }
        }

        /// Changes a bit of a file of a copy of the archive: a restore has the right state, or names a file and a
        /// remedy.
        mutating func damage() throws {
            let copy = directory.path(of: "damaged")
            Files.copyTree(archive, to: copy)
            defer { Files.remove(copy) }
            let files = try FileManager.default.subpathsOfDirectory(atPath: copy).sorted().map { "\(copy)/\($0)" }
                .filter { path in
                    var isDirectory: ObjCBool = false
                    _ = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
                    return !isDirectory.boolValue && !Files.read(path).isEmpty
                }
            let file = random.pick(files)
            var bytes = Files.read(file)
            bytes[random.below(bytes.count)] ^= UInt8(1 << random.below(8))
            Files.write(bytes, to: file)
            let first = try #require(try ArchiveCatalogue(archive).bases.first).version.microseconds
            let version = first + UInt64(random.below(Int(model.last - first + 1)))
            let target = directory.path(of: "restored")
            do {
                _ = try ArchiveTests.restore(from: copy, to: target, upTo: version)
            } catch let error as StorageError {
                expect(error.file != nil && error.remedy != nil, "\(file): \(error)")
                expect(!FileManager.default.fileExists(atPath: target))
                return
            }
            let restored = try Store(target, .small)
            try expectEqual(
                restored.scan(to: [0xF0]), model.entries([], [0xF0], at: version, .forward),
                "\(file), version \(version)")
            try restored.engine.close()
            Files.remove(target)
        }

        /// Opens the directory again, after a kill at this moment or a close.
        mutating func reopen(isKilled: Bool) throws {
            let (data, archive) = (data, archive)
            generation += 1
            if isKilled {
                Files.copyTree(archive, to: self.archive)
                Files.copyTree(data, to: self.data)
            }
            try archived.close()
            if !isKilled {
                rename(data, self.data)
                rename(archive, self.archive)
            } else {
                Files.remove(data)
                Files.remove(archive)
            }
            archived = try ArchivedStore(self.data, archive: self.archive)
            // A kill loses no commit, since each was acknowledged.
            expectEqual(archived.store.engine.publishedVersion.microseconds, model.last)
        }

        mutating func step() throws {
            switch random.below(40) {
            case 0: try archived.store.engine.checkpointNow()
            case 1: try archived.store.engine.sweepHistoryNow()
            case 2...4: _ = archived.archiver.flush()
            case 5 where random.oneIn(4): try reopen(isKilled: random.oneIn(2))
            case 6 where random.oneIn(4): try fork()
            default: try commit()
            }
        }

        /// Restores some versions of those that the archive promises.
        mutating func restore(_ count: Int) throws {
            try archived.archiveAll()
            let catalogue = try ArchiveCatalogue(archive)
            expectEqual(catalogue.problems, [])
            expectEqual(catalogue.chains.count, 1)
            expectEqual(catalogue.lastVersion?.microseconds, model.last)
            let first = try #require(catalogue.bases.first).version.microseconds
            for _ in 0..<count {
                let version = first + UInt64(random.below(Int(model.last - first + 1)))
                try expectRestored(model, upTo: version, from: archive, to: directory.path(of: "restored"))
            }
            try expectRestored(model, upTo: model.last, from: archive, to: directory.path(of: "restored"))
        }
    }

    @Test(arguments: CaseShare.of(Array(1...6 as ClosedRange<UInt64>), 2))
    func `Each version is restored as it was, after checkpoints, sweeps, kills and new bases`(seed: UInt64) throws {
        var world = try World(seed: seed)
        for round in 1...(Self.isSoak ? 10 : 2) {
            for _ in 0..<(Self.isSoak ? 600 : 300) { try world.step() }
            try world.restore(Self.isSoak ? 20 : 4)
            for _ in 0..<(Self.isSoak ? 10 : 2) { try world.damage() }
            print("archive model: round \(round), \(world.model.versions.count) commits, seed \(seed)")
        }
        try expectEqual(ArchiveCheck.run(world.archive), [])
        try world.archived.close()
    }

    @Test func `An original whose segments were all recycled still restores every version`() throws {
        let directory = TemporaryDirectory("archive")
        let archive = directory.path(of: "archive")
        let archived = try ArchivedStore(directory.path(of: "data"), archive: archive) {
            $0.baseRecordBytesMin = 1 << 30
        }
        try archived.archiveAll()
        var model = Model()
        for version in 1...120 as ClosedRange<UInt64> {
            let change = Change.put("k\(version % 7)", String(repeating: "\(version) ", count: 400))
            try archived.store.commit(version, [change])
            model.commit(version, [change])
            if version % 10 == 0 {
                expect(archived.archiver.flush())
                try archived.store.engine.checkpointNow()
            }
        }
        expect(archived.store.engine.statistics.logSegmentsInUse <= 2)
        try archived.close()
        for version in stride(from: UInt64(1), through: 120, by: 7) {
            try expectRestored(model, upTo: version, from: archive, to: directory.path(of: "restored"))
        }
    }
}
