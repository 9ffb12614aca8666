// What a salvage takes of damaged directories: everything that is intact, and nothing that was never there.

import Basics
import DocumentModel
import Foundation
import Storage
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing

@Suite(.needsFiles, .timeLimit(.minutes(20)))
struct SalvageTests {
    /// A store with documents in two databases, deleted ones, long names, large values, a declared index, and commits
    /// that only the log has.
    private final class Original {
        let harness: StoreHarness
        /// What is there, and what was there before.
        var documents: [String: SeenDocument] = [:]
        var former: [String: [SeenDocument]] = [:]
        /// Commits up to here are in runs.
        private(set) var inRuns: [String: SeenDocument] = [:]

        init(isCrashed: Bool) async throws {
            harness = try StoreHarness()
            var random = RandomQueries(seed: 3)
            let model = IndexedModel(harness)
            try await model.declare(random.shapes())
            for round in 0..<6 as Range<Int64> {
                let writes = (0..<300).map { number -> StepWrite in
                    let name = number % 40 == 0 ? "c/\(number)" + String(repeating: "é", count: 150) : "c/\(number)"
                    if round == 4 && number % 5 == 0 { return .delete(name) }
                    let text = String(repeating: "x", count: number % 70 == 0 ? 9_000 : number)
                    return .set(name, MapValue([("n", .integer(Int64(number) + round)), ("text", .string(text))]))
                }
                for start in stride(from: 0, to: 300, by: 50) {
                    harness.clock.advance(milliseconds: 3)
                    try await harness.commit(Array(writes[start..<(start + 50)]))
                }
                try look()
                if round == 3 || round == 4 { try harness.store.checkpoint() }
                if round == 4 { inRuns = documents }
            }
            if !isCrashed {
                harness.store.close()
                inRuns = documents
            }
        }

        private func look() throws {
            for path in try harness.ids("c").map({ "c/\($0)" }) {
                let seen = try #require(try harness.get(path))
                if documents[path] != seen { former[path, default: []].append(seen) }
            }
            documents = [:]
            for path in try harness.ids("c").map({ "c/\($0)" }) { documents[path] = try harness.get(path) }
        }

        func copy() throws -> TemporaryDirectory {
            let copy = TemporaryDirectory("hearth-salvage")
            try copyOpenDirectory(harness.configuration.directory, to: copy.path(of: "damaged"))
            return copy
        }
    }

    private func files(_ ending: String, in directory: TemporaryDirectory) throws -> [String] {
        let runs = directory.path(of: "damaged/runs/")
        return try FileManager.default.contentsOfDirectory(atPath: runs).filter { $0.hasSuffix(ending) }.sorted()
            .map { runs + $0 }
    }

    /// Salvages a copy.
    /// - Returns: the documents of the new directory, which is checked, and the report.
    private func salvage(
        _ copy: TemporaryDirectory, of original: Original
    ) throws -> (documents: [String: SeenDocument], report: StoreSalvage.Report) {
        let target = copy.path(of: "data")
        var stages: [String] = []
        let report = try StoreSalvage.run(copy.path(of: "damaged"), to: target) { progress in
            if stages.last != progress.stage { stages.append(progress.stage) }
        }
        expectEqual(stages, ["reading what is intact", "writing the documents"])
        expect(!FileManager.default.fileExists(atPath: target + ".salvaging"))
        let harness = try StoreHarness(in: copy, clock: original.harness.clock)
        var documents: [String: SeenDocument] = [:]
        for path in try harness.ids("c").map({ "c/\($0)" }) { documents[path] = try harness.get(path) }
        expectEqual(documents.count, report.documents)
        try waitUntil("no index has work left") { !harness.store.indexState.hasWork }
        try harness.finish()
        try FileManager.default.removeItem(atPath: target)
        return (documents, report)
    }

    @Test(arguments: [false, true])
    func `An intact directory is taken as a whole, with times`(isCrashed: Bool) async throws {
        let original = try await Original(isCrashed: isCrashed)
        let (documents, report) = try salvage(try original.copy(), of: original)
        expectEqual(documents, original.documents)
        expectEqual(report.losses, [])
    }

    @Test(arguments: [false, true])
    func `What is left of a deleted database is not taken; one that came into being again is, and settings are`(
        isCrashed: Bool
    ) async throws {
        let keepsDocuments = SharedFlag()
        let harness = try StoreHarness {
            $0.admitsHousekeeping = { task in task != .databaseRemoval || !keepsDocuments.isSet }
        }
        func name(_ id: String) throws -> DatabaseName { try DatabaseName(project: "p", database: id) }
        func commit(_ id: String, _ path: String) async throws {
            let request = CommitRequest(writes: try harness.list([.set(path, fields(1))], in: try name(id)))
            _ = try await harness.outcome(request).get()
        }
        func change(_ id: String, _ settings: DatabaseSettings) async throws {
            let database = try name(id)
            try await withCheckedContinuation { continuation in
                harness.store.changeDatabase(database) { _ in
                    settings
                } completion: {
                    continuation.resume(returning: $0)
                }
            }.get()
        }
        func delete(_ id: String) async throws {
            let database = try name(id)
            try await withCheckedContinuation { continuation in
                harness.store.deleteDatabase(database) { _ in
                } completion: {
                    continuation.resume(returning: $0)
                }
            }.get()
        }
        func state(_ id: String) throws -> DatabaseSettings.State? {
            harness.store.describeDatabase(try name(id))?.settings?.state
        }
        for id in ["(default)", "gone", "again", "leaving"] {
            for path in ["c/a", "c/b"] { try await commit(id, path) }
        }
        try await change("made", DatabaseSettings(state: .created, isProtected: true, location: "here"))
        for id in ["gone", "again"] {
            try await delete(id)
            try await eventually("the database is removed") {
                harness.clock.advance(milliseconds: 1_000)
                harness.store.noticeTime()
                return try state(id) == .deleted
            }
        }
        try await commit("again", "c/c")
        keepsDocuments.set()
        try await delete("leaving")
        try expectEqual(state("leaving"), .deleting)
        if !isCrashed { harness.store.close() }

        let copy = TemporaryDirectory("hearth-salvage")
        try copyOpenDirectory(harness.configuration.directory, to: copy.path(of: "damaged"))
        let report = try StoreSalvage.run(copy.path(of: "damaged"), to: copy.path(of: "data"))
        expectEqual(report.losses, [])
        expectEqual(report.documents, 3)
        let salvaged = try StoreHarness(in: copy, clock: harness.clock)
        expectEqual(salvaged.store.databaseNames.map(\.database).sorted(), ["(default)", "again", "made"])
        let made = salvaged.store.describeDatabase(try name("made"))?.settings
        expect(made?.isProtected == true && made?.location == "here")
        expectNil(salvaged.store.describeDatabase(try name("leaving")))
        try expectEqual(salvaged.ids("c"), ["a", "b"])
        try salvaged.finish()
    }

    @Test
    func `Without side files, manifest, entries or format everything is found by checksums`() async throws {
        let original = try await Original(isCrashed: false)
        let copy = try original.copy()
        for path in try files(".side", in: copy) + files(".run", in: copy) {
            try FileManager.default.removeItem(atPath: path)
        }
        let (documents, report) = try salvage(copy, of: original)
        expect(documents == original.documents && !report.losses.isEmpty)
        for name in ["runs/MANIFEST", "FORMAT"] {
            try FileManager.default.removeItem(atPath: copy.path(of: "damaged/" + name))
        }
        let (found, further) = try salvage(copy, of: original)
        expect(found == original.documents && further.lossCount > report.lossCount)
    }

    @Test
    func `What a killed backup has left is taken, whose manifest names no file yet`() async throws {
        let original = try await Original(isCrashed: true)
        let copy = TemporaryDirectory("hearth-salvage")
        try original.harness.store.backup(to: copy.path(of: "damaged"))
        let fresh = try StoreHarness()
        for name in ["FORMAT", "log", "runs/MANIFEST"] {
            try FileManager.default.removeItem(atPath: copy.path(of: "damaged/" + name))
        }
        try FileManager.default.copyItem(
            atPath: fresh.configuration.directory + "/runs/MANIFEST", toPath: copy.path(of: "damaged/runs/MANIFEST"))
        for path in try files(".side", in: copy) { try Data().write(to: URL(fileURLWithPath: path)) }
        let (documents, report) = try salvage(copy, of: original)
        expect(documents == original.documents && !report.losses.isEmpty)
        // Its last file is not whole.
        let path = try #require(try files(".mdb", in: copy).last)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        try bytes.prefix(bytes.count / 2).write(to: URL(fileURLWithPath: path))
        let (found, _) = try salvage(copy, of: original)
        expect(!found.isEmpty && found.count < original.documents.count)
        expect(found.allSatisfy { original.documents[$0] == $1 })
    }

    @Test(arguments: CaseShare.of(UInt64(1)...4, 1))
    func `Of a damaged page the intact entries are taken, and a damaged one is never`(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let original = try await Original(isCrashed: seed % 2 == 0)
        for round in 0..<6 {
            let copy = try original.copy()
            var flips = 0
            for path in try files(".mdb", in: copy) {
                var bytes = try Data(contentsOf: URL(filePath: path))
                for _ in 0..<(1 + round / 2) {
                    // In the entries of leaves, or anywhere.
                    bytes[bytes.startIndex + 8_192 + random.below(bytes.count - 8_192)] ^= 1 << UInt8(random.below(8))
                    flips += 1
                }
                try bytes.write(to: URL(filePath: path))
            }
            if round % 3 == 2 { for path in try files(".side", in: copy) { try Data().write(to: URL(filePath: path)) } }
            let (documents, report) = try salvage(copy, of: original)
            for (path, document) in documents where original.documents[path] != document {
                expectEqual(original.former[path]?.contains(document), true, "\(path)")
            }
            let kept = original.documents.filter { documents[$0.key] == $0.value }.count
            // A bit damages an entry; in the head of a page or in a value of several entries' page, a page.
            expect(kept >= original.documents.count - 40 * flips, "round \(round): \(report.losses)")
            expect(documents == original.documents || !report.losses.isEmpty, "round \(round)")
        }
    }

    @Test
    func `A page that a disk has written over another one of as many entries is not taken for it`() async throws {
        let original = try await Original(isCrashed: false)
        let copy = try original.copy()
        let path = try #require(files(".mdb", in: copy).last)
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        // By their head: leaves have 2 at 10, and the end of their entries' offsets at 12.
        let leaves = stride(from: 8_192, to: bytes.count, by: 4_096).filter {
            bytes[$0 + 10] == 2 && bytes[$0 + 11] == 0
        }
        let lengths = Dictionary(grouping: leaves) { [bytes[$0 + 12], bytes[$0 + 13]] }
        let alike = try #require(lengths.values.max { $0.count < $1.count })
        let (from, to) = (try #require(alike.first), try #require(alike.last))
        try #require(from < to)
        bytes.replaceSubrange(to..<(to + 4_096), with: bytes[from..<(from + 4_096)])
        try Data(bytes).write(to: URL(filePath: path))
        let (documents, report) = try salvage(copy, of: original)
        expect(documents != original.documents)
        expect(report.losses.contains { $0.contains("the page at \(to) is damaged") }, "\(report.losses)")
        for (path, document) in documents where original.documents[path] != document {
            expectEqual(original.former[path]?.contains(document), true, "\(path)")
        }
    }

    @Test
    func `Of a damaged log the commits before the damage are taken`() async throws {
        let original = try await Original(isCrashed: true)
        let copy = try original.copy()
        let log = copy.path(of: "damaged/log/")
        for name in try FileManager.default.contentsOfDirectory(atPath: log) where name.hasSuffix(".log") {
            var bytes = try Data(contentsOf: URL(filePath: log + name))
            for place in stride(from: 4_096, to: bytes.count, by: 4_096) { bytes[bytes.startIndex + place] ^= 1 }
            try bytes.write(to: URL(filePath: log + name))
        }
        let (documents, report) = try salvage(copy, of: original)
        expectEqual(documents, original.inRuns)
        expect(report.losses.count == 1 && report.losses.first?.contains("missing") == true, "\(report.losses)")
    }

    /// A byte of the last group is damaged: of its records, of its nonce, or of the version that it follows.
    @Test(arguments: [0, 16 - 60, 32 - 60])
    func `The report says that the last group of a log is not whole`(offset: Int) async throws {
        let losses = try await losses(damaging: "c/299", at: offset, of: 250..<300)
        expect(losses.count == 1 && losses.first?.contains("not whole") == true, "\(losses)")
    }

    /// Damages a byte of a log, and expects of some documents what the runs have, and of the others the newest.
    ///
    /// - Parameters:
    ///   - text: of the damaged group.
    ///   - offset: within the records of the group.
    ///   - numbers: of the documents of the group. Each commit of 50 documents is a group.
    /// - Returns: the losses that the report names.
    private func losses(damaging text: String, at offset: Int = 0, of numbers: Range<Int>) async throws -> [String] {
        let original = try await Original(isCrashed: true)
        let copy = try original.copy()
        let place = try group(with: text, in: copy.path(of: "damaged/log/"))
        var bytes = try Data(contentsOf: URL(filePath: place.path))
        bytes[bytes.startIndex + place.offset + offset] ^= 1
        try bytes.write(to: URL(filePath: place.path))
        let (documents, report) = try salvage(copy, of: original)
        func isLost(_ path: String) -> Bool { numbers.contains(Int(path.dropFirst(2).prefix { $0.isNumber }) ?? 0) }
        var expected = original.documents.filter { !isLost($0.key) }
        for (path, document) in original.inRuns where isLost(path) { expected[path] = document }
        expectEqual(documents, expected)
        return report.losses
    }

    /// Where the last group with a text lies: a file, and an offset within the group's records.
    private func group(with text: String, in log: String) throws -> (path: String, offset: Int) {
        var found: (path: String, offset: Int, version: UInt64)?
        for name in try FileManager.default.contentsOfDirectory(atPath: log) where name.hasSuffix(".log") {
            let bytes = [UInt8](try Data(contentsOf: URL(filePath: log + name)))
            func word(_ offset: Int) -> UInt64 {
                (0..<8).reduce(0) { $0 | UInt64(bytes[offset + $1]) << UInt64(8 * $1) }
            }
            for offset in stride(from: 4_096, to: bytes.count - 56, by: 8) {
                guard bytes[(offset + 8)..<(offset + 12)].elementsEqual("HFRM".utf8) else { continue }
                let end = min(bytes.count, offset + 56 + Int(truncatingIfNeeded: word(offset + 48)))
                let payload = String(decoding: bytes[(offset + 56)..<end], as: UTF8.self)
                guard payload.contains(text), word(offset + 40) > found?.version ?? 0 else { continue }
                found = (log + name, offset + 60, word(offset + 40))
            }
        }
        let last = try #require(found)
        return (last.path, last.offset)
    }

    @Test
    func `Of a log with a damaged group the later ones are taken, and the report names the gap`() async throws {
        // The last six groups are in the log alone.
        let losses = try await losses(damaging: "c/163", of: 150..<200)
        expect(losses.count == 1 && losses.first?.contains("are missing") == true, "\(losses)")
    }

    @Test
    func `Of a log whose segment has no header the groups are taken all the same`() async throws {
        let original = try await Original(isCrashed: true)
        let copy = try original.copy()
        let path = try group(with: "c/163", in: copy.path(of: "damaged/log/")).path
        var bytes = try Data(contentsOf: URL(filePath: path))
        bytes[bytes.startIndex + 20] ^= 1
        try bytes.write(to: URL(filePath: path))
        let (documents, report) = try salvage(copy, of: original)
        expectEqual(documents, original.documents)
        expect(report.losses.contains { $0.contains("header of the segment") })
    }
}
