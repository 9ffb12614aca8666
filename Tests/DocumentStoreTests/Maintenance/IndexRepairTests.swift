// Damaged index entries are made again from the documents, and nothing else is.

import Basics
import DocumentModel
import Foundation
import Storage
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing
@testable import QueryEngine

@Suite(.needsFiles, .timeLimit(.minutes(20)))
struct IndexRepairTests {
    enum Damage: CaseIterable {
        case flippedBit, cutFile, missingFile
    }

    /// A closed store with declared indexes and overrides, history, and commits that only the log has.
    private func makeModel() async throws -> IndexedModel {
        var random = RandomQueries(seed: 77)
        var model = try IndexedModel()
        try await model.declare(random.declaration())
        for round in 0..<3 {
            try await model.replace(with: random.documents(), random: &random)
            model.past.append((model.harness.clock.nowMicroseconds, model.documents))
            if round < 2 { try model.harness.store.checkpoint() }
        }
        try await model.waitForIndexes()
        return model
    }

    private func copy(_ model: IndexedModel) throws -> TemporaryDirectory {
        let copy = TemporaryDirectory("hearth-repair")
        try copyOpenDirectory(model.harness.configuration.directory, to: copy.path(of: "data"))
        return copy
    }

    /// The paths of the files with this ending.
    private func files(_ ending: String, in directory: TemporaryDirectory) throws -> [String] {
        let runs = directory.path(of: "data/runs/")
        return try FileManager.default.contentsOfDirectory(atPath: runs).filter { $0.hasSuffix(ending) }.sorted()
            .map { runs + $0 }
    }

    private func damage(_ path: String, _ damage: Damage) throws {
        let url = URL(filePath: path)
        var bytes = try Data(contentsOf: url)
        switch damage {
        case .flippedBit: bytes[bytes.startIndex + 100] ^= 4
        case .cutFile: bytes.removeLast(9)
        case .missingFile: return try FileManager.default.removeItem(at: url)
        }
        try bytes.write(to: url)
    }

    private func open(
        _ copy: TemporaryDirectory, of model: IndexedModel, _ configure: (inout StoreConfiguration) -> Void = { _ in }
    ) throws -> IndexedModel {
        var opened = IndexedModel(
            try StoreHarness(in: copy, clock: model.harness.clock, database: "d", configure: configure))
        opened.documents = model.documents
        return opened
    }

    /// Compares queries with the naive evaluator.
    private func expectRight(_ model: IndexedModel, _ count: Int = 60) throws {
        var random = RandomQueries(seed: 5)
        for _ in 0..<count {
            let (query, parent) = random.query()
            let (found, tree, _, _) = try model.run(query, parent: parent, options: QueryOptions(), pageSize: 1_000)
            let expected = NaiveQuery.results(query, parent: parent, of: Array(model.documents.values))
            expect(
                found.map(\.path) == expected.map(\.path) && found.map(\.fields) == expected.map(\.fields), "\(tree)")
        }
    }

    @Test(arguments: Damage.allCases)
    func `Damaged entries are dropped, queries stay right meanwhile and after a crash`(kind: Damage) async throws {
        let model = try await makeModel()
        model.harness.store.close()
        let copy = try copy(model)
        try damage(try #require(try files(".run", in: copy).last), kind)
        try expectEqual(IndexRepair.dropDamaged(copy.path(of: "data")).count, 1)
        // No index is built yet: queries scan.
        let scanning = try open(copy, of: model) { $0.admitsHousekeeping = { _ in false } }
        let declared = scanning.harness.store.declaredIndexes(in: scanning.harness.database)
        expect(!declared.isEmpty && declared.allSatisfy { $0.state == .building })
        try expectRight(scanning)
        // History before the checkpoint is gone, with the entries of its versions.
        let oldest = scanning.harness.store.engine.oldestReadableVersion.microseconds
        expect(oldest >= model.past[1].microseconds)
        let crashed = IndexedModel(try scanning.harness.crashed { $0.admitsHousekeeping = { _ in true } })
        scanning.harness.store.close()
        try await crashed.waitForIndexes()
        try await eventually("the automatic indexes are built") { !crashed.harness.store.indexState.hasWork }
        var built = crashed
        built.documents = model.documents
        try expectRight(built)
        try built.harness.finish()
    }

    @Test
    func `A repair that ended before the store was opened is continued, and a check names it`() async throws {
        let model = try await makeModel()
        model.harness.store.close()
        let copy = try copy(model)
        for path in try files(".run", in: copy) { try damage(path, .missingFile) }
        let configuration = StoreConfiguration(directory: copy.path(of: "data"))
        let missing = try StoreCheck.run(configuration)
        expect(missing.isRepairable && missing.problems.allSatisfy { $0.contains("missing") })
        try expectEqual(IndexRepair.dropDamaged(configuration.directory).isEmpty, false)
        let report = try StoreCheck.run(configuration)
        expect(report.isRepairable && report.problems.count == 1)
        // What only reads cannot make them.
        var readOnly = configuration
        readOnly.engine.isReadOnly = true
        #expect(throws: StorageError.self) { try DocumentStore.open(readOnly) }
        var stages: Set<String> = []
        try IndexRepair.run(configuration.directory) { stages.insert($0.stage) }
        expectEqual(stages, ["building indexes"])
        try expectEqual(StoreCheck.run(configuration).problems, [])
        let opened = try open(copy, of: model)
        try expectRight(opened)
        try opened.harness.finish()
    }

    @Test
    func `Intact entries stay, and damaged documents are not touched`() async throws {
        let model = try await makeModel()
        model.harness.store.close()
        let copy = try copy(model)
        let manifest = try Data(contentsOf: URL(filePath: copy.path(of: "data/runs/MANIFEST")))
        try expectEqual(IndexRepair.dropDamaged(copy.path(of: "data")), [])
        for path in try files(".mdb", in: copy) {
            let intact = try Data(contentsOf: URL(filePath: path))
            try damage(path, .cutFile)
            try expectEqual(IndexRepair.dropDamaged(copy.path(of: "data")), [])
            let report = try StoreCheck.run(StoreConfiguration(directory: copy.path(of: "data")))
            expect(!report.isClean && !report.isRepairable)
            try intact.write(to: URL(filePath: path))
        }
        try expectEqual(Data(contentsOf: URL(filePath: copy.path(of: "data/runs/MANIFEST"))), manifest)
        try open(copy, of: model).harness.finish()
    }
}
