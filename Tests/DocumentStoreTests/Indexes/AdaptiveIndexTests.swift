// Indexes on demand in a store: made, used, kept over restarts and crashes, dropped; changes of the mode; explain.

import DocumentModel
import StoreTestSupport
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct AdaptiveIndexTests {
    static let documentCount = 3_000

    /// Documents of `c` with three fields.
    private static var documents: [TestDocument] {
        (0..<Int64(documentCount)).map { number in
            let numbers: Value = .array([.integer(number % 50), "all"])
            return TestDocument(
                path: "c/d\(number)",
                fields: ["a": .integer(number % 100), "b": .integer(number), "m": .map(["x": numbers])])
        }
    }

    private static func model(
        _ mode: AutomaticIndexes, _ configure: (inout StoreConfiguration) -> Void = { _ in }
    ) async throws -> IndexedModel {
        var random = RandomQueries(seed: 1)
        var model = try IndexedModel {
            $0.automaticIndexes = mode
            $0.adaptiveIndexes.documentsDemanded = 4_000
            $0.engine.retentionMicroseconds = 1 << 42
            configure(&$0)
        }
        try await model.replace(with: documents, random: &random)
        return model
    }

    /// `where a == 3`.
    private static func equality() throws -> StructuredQuery {
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        query.filter = .field(try FieldPath("a"), .equal, EncodedValue(.integer(3)))
        return query
    }

    /// `order by b limit 5`.
    private static func order() throws -> StructuredQuery {
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        query.orderBy = [Order(field: try FieldPath("b"))]
        query.limit = 5
        return query
    }

    private static func run(_ query: StructuredQuery, _ model: IndexedModel) throws -> (ids: [String], scanned: Int) {
        let (found, _, scanned, _) = try model.run(query, parent: "", options: QueryOptions(), pageSize: 1_000)
        return (found.map(\.path), scanned)
    }

    /// Lets seconds pass, so that the commit thread looks at the demand.
    private static func pass(seconds: UInt64, _ model: IndexedModel) {
        model.harness.clock.advance(milliseconds: seconds * 1_000)
        model.harness.store.noticeTime()
    }

    /// Waits until a condition holds, while seconds pass.
    private static func passing(_ what: String, _ model: IndexedModel, _ condition: () throws -> Bool) async throws {
        try await eventually(what) {
            pass(seconds: 1, model)
            return try condition()
        }
    }

    /// The lines that explain has for a query, which is not run.
    private static func missing(_ query: StructuredQuery, _ model: IndexedModel) throws -> [String] {
        var run = QueryExecution(try plan(query))
        let reader = model.harness.store.makeReader()
        try run.chooseOperators(try reader.source(at: try reader.readPoint(.latest, in: model.harness.database)))
        return run.missingIndexes
    }

    fileprivate static func plan(_ query: StructuredQuery) throws -> QueryPlan {
        let root = Array("projects/p/databases/d/documents".utf8)
        return try QueryPlan(query, parent: root.byteSpan)
    }

    private static func entries(_ model: IndexedModel) throws -> Int {
        let report = try StoreCheck.run(model.harness.store)
        expectEqual(report.problems, [])
        return report.indexEntries
    }

    @Test
    func `An index is made when queries read enough without a match, serves them, outlives a restart, and goes unused`()
        async throws
    {
        var model = try await Self.model(.adaptive)
        let query = try Self.equality()
        try expectEqual(Self.entries(model), 0)
        let before = model.harness.clock.nowMicroseconds
        try expectEqual(
            Self.missing(query, model), ["Missing index c (a): not requested, 0 of 4000 documents read in vain"])
        // 2,970 of 3,000 documents are read in vain.
        try expectEqual(Self.run(query, model).scanned, Self.documentCount)
        try expectEqual(
            Self.missing(query, model), ["Missing index c (a): not requested, 2970 of 4000 documents read in vain"])
        try expectEqual(Self.run(query, model).scanned, Self.documentCount)
        try expectEqual(Self.missing(query, model), ["Missing index c (a): requested"])
        try await Self.passing("the index is used", model) { try Self.run(query, model).scanned == 30 }
        try expectEqual(Self.missing(query, model), [])
        try expectEqual(
            Self.run(query, model).ids, NaiveQuery.results(query, parent: "", of: Self.documents).map(\.path))
        try expectEqual(Self.entries(model), Self.documentCount)
        expectEqual(model.listing, ["READY"])
        try await Self.passing("the index is noted", model) { model.harness.store.statistics.adaptiveIndexes.made == 1 }
        expectEqual(model.harness.store.takeIndexEvents().map(\.change), [.requested, .made])
        // The past has no entries.
        let (old, tree, scanned, _) = try model.run(
            query, parent: "", options: QueryOptions(), pageSize: 1_000,
            at: .time(TimestampValue(microseconds: Int64(before))))
        expect(old.count == 30 && scanned == Self.documentCount, "\(tree)")

        model = IndexedModel(try model.harness.reopened())
        try expectEqual(Self.run(query, model).scanned, 30)
        // Used within the time, it stays; then it goes.
        Self.pass(seconds: 6 * 86_400, model)
        try expectEqual(Self.run(query, model).scanned, 30)
        try await Self.passing("the use is stored", model) { model.harness.store.indexState.changes >= 2 }
        Self.pass(seconds: 6 * 86_400, model)
        try await Self.passing("a round passes", model) { true }
        expectEqual(model.listing, ["READY"])
        Self.pass(seconds: 2 * 86_400, model)
        try await Self.passing("the index is dropped", model) {
            model.harness.store.indexState.current.groups.all.isEmpty
        }
        try await eventually("the removal is published") { try Self.entries(model) == 0 }
        expectEqual(model.listing, [])
        try expectEqual(Self.run(query, model).scanned, Self.documentCount)
        expectEqual(model.harness.store.takeIndexEvents().map(\.change), [.dropped])
        try model.harness.finish()
    }

    @Test
    func `Using an index commits nothing, until its last use is an hour younger than the stored one`() async throws {
        let model = try await Self.model(.adaptive)
        for _ in 0..<2 { try expectEqual(Self.run(Self.order(), model).scanned, Self.documentCount) }
        try await Self.passing("the index is used", model) { try Self.run(Self.order(), model).scanned == 5 }
        let changes = model.harness.store.indexState.changes
        for _ in 0..<300 {
            try expectEqual(Self.run(Self.order(), model).scanned, 5)
            Self.pass(seconds: 10, model)
        }
        try await model.harness.commit([.set("e/x", ["z": 1])])
        expectEqual(model.harness.store.indexState.changes, changes)
        Self.pass(seconds: 900, model)
        try expectEqual(Self.run(Self.order(), model).scanned, 5)
        try await Self.passing("the use is stored", model) { model.harness.store.indexState.changes == changes + 1 }
        try model.harness.finish()
    }

    @Test
    func `A build continues after a crash; until then queries scan, and explain counts its documents`() async throws {
        // Steps that are admitted: those of the mode, whose number depends on what was written before them, then two of
        // 512 documents.
        let steps = TaskBudget(0, .indexStep)
        let model = try await Self.model(.adaptive) { $0.admitsHousekeeping = steps.admits }
        func takeStep() async throws {
            steps.allowOnce()
            try await Self.passing("a step is taken", model) { steps.isUsed }
            // Commits come after the step.
            try await model.harness.commit([.delete("nothing/x")])
        }
        func isAdaptive() -> Bool {
            let states = model.harness.store.indexState.current
            return states.automatic.phase == .complete && !states.groups.common.adaptive.isEmpty
        }
        while !isAdaptive() { try await takeStep() }
        let query = try Self.equality()
        for _ in 0..<2 { try expectEqual(Self.run(query, model).scanned, Self.documentCount) }
        let line = "Missing index c (a): being built, 1024 documents visited"
        while try Self.missing(query, model) != [line] { try await takeStep() }
        try expectEqual(Self.run(query, model).scanned, Self.documentCount)
        try await model.harness.commit([.set("c/d2900", ["a": 3]), .set("c/d3", ["a": 4]), .delete("c/d103")])
        expectEqual(model.listing, ["BUILDING"])
        let crashed = try model.harness.crashed { $0.admitsHousekeeping = { _ in true } }
        model.harness.store.close()
        let after = IndexedModel(crashed)
        try await Self.passing("the index is used", after) { try Self.run(query, after).scanned == 29 }
        try expect(Self.run(query, after).ids.contains("c/d2900"))
        try expectEqual(Self.entries(after), Self.documentCount - 1)
        try after.harness.finish()
    }

    @Test
    func `Entries of all fields are used after a change to adaptive; those of unused fields go later, together`()
        async throws
    {
        var model = try await Self.model(.on)
        let all = try Self.entries(model)
        // a, b, m, m.x, two elements.
        expectEqual(all, 6 * Self.documentCount)
        model.harness.store.close()
        let configuration = model.harness.configuration
        func reopened(_ mode: AutomaticIndexes) throws -> IndexedModel {
            IndexedModel(
                try StoreHarness(in: model.harness.directory, clock: model.harness.clock, database: "d") {
                    $0 = configuration
                    $0.automaticIndexes = mode
                })
        }
        model = try reopened(.adaptive)
        try await eventually("the mode is adaptive") {
            model.harness.store.indexState.current.groups.common.allKeptSince != nil
        }
        // Before the first query, whose use is listed too when it is stored.
        expectEqual(model.listing.count, 1)
        try expectEqual(Self.run(Self.equality(), model).scanned, 30)
        try expectEqual(Self.entries(model), all)
        try await Self.passing("the use is stored", model) {
            !model.harness.store.indexState.current.groups.all.isEmpty
        }
        model.harness.store.close()
        model = try reopened(.adaptive)
        Self.pass(seconds: 6 * 86_400, model)
        try expectEqual(Self.run(Self.equality(), model).scanned, 30)
        try await Self.passing("the later use is stored", model) { model.harness.store.indexState.changes >= 2 }
        try expectEqual(Self.entries(model), all)
        Self.pass(seconds: 86_400, model)
        try await Self.passing("the entries of other fields are gone", model) {
            let states = model.harness.store.indexState.current
            return states.groups.common.allKeptSince == nil && !states.hasWork
        }
        try await eventually("the removal is published") { try Self.entries(model) == Self.documentCount }
        try expectEqual(Self.run(Self.equality(), model).scanned, 30)
        try expectEqual(Self.run(Self.order(), model).scanned, Self.documentCount)
        // Back to on: the index that exists is used throughout.
        model.harness.store.close()
        model = try reopened(.on)
        try await eventually("the mode is on") {
            model.harness.store.indexState.current.groups.common.adaptive.isEmpty
        }
        Self.pass(seconds: 1, model)
        try await model.harness.commit([.delete("other/nothing")])
        try expectEqual(Self.run(Self.equality(), model).scanned, 30)
        try await Self.passing("every field has entries", model) { try Self.run(Self.order(), model).scanned == 5 }
        try await eventually("the walks are over") { !model.harness.store.indexState.hasWork }
        try expectEqual(Self.entries(model), all)
        // Off gives them up; adaptive begins with none.
        model.harness.store.close()
        model = try reopened(.off)
        try await eventually("the state is off") { model.harness.store.indexState.current.automatic.phase == .off }
        model.harness.store.close()
        model = try reopened(.adaptive)
        try await eventually("the mode is adaptive") {
            model.harness.store.indexState.current.automatic.phase == .complete
        }
        try expectEqual(Self.entries(model), 0)
        try expectEqual(Self.run(Self.equality(), model).scanned, Self.documentCount)
        try model.harness.finish()
    }

    @Test
    func `A query that is open while its index is dropped, or made, returns what it began with`() async throws {
        let model = try await Self.model(.adaptive)
        for _ in 0..<2 { try expectEqual(Self.run(Self.equality(), model).scanned, Self.documentCount) }
        try await Self.passing("the index is used", model) { try Self.run(Self.equality(), model).scanned == 30 }
        let expected = NaiveQuery.results(try Self.equality(), parent: "", of: Self.documents).map(\.path)
        var byIndex = try OpenQuery(Self.equality(), model)
        var scan = StructuredQuery(from: [CollectionSelector(collectionID: "c")])
        scan.filter = .field(try FieldPath("m.x"), .arrayContains, EncodedValue(.string("all")))
        let scanned = NaiveQuery.results(scan, parent: "", of: Self.documents).map(\.path)
        var byScan = try OpenQuery(scan, model)
        try expectEqual(byIndex.next(10), Array(expected[..<10]))
        try expectEqual(byScan.next(10), Array(scanned[..<10]))
        // What is open does not see this.
        try await model.harness.commit([.delete("c/d2903"), .set("c/d0", ["a": 3, "b": 9_999])])
        for _ in 0..<2 { _ = try Self.run(Self.order(), model) }
        Self.pass(seconds: 8 * 86_400, model)
        try await Self.passing("one index is dropped, the other is made", model) {
            let scanned = try Self.run(Self.order(), model).scanned
            let indexes = model.harness.store.indexState.current.groups.all.flatMap(\.adaptiveIndexes)
            return scanned == 5 && indexes.map { "\($0.index.field)" } == ["b"]
        }
        try model.harness.store.checkpoint()
        try expectEqual(byIndex.next(10), Array(expected[10..<20]))
        try expectEqual(byIndex.next(100), Array(expected[20...]))
        try expectEqual(byScan.next(5_000), Array(scanned[10...]))
        try model.harness.finish()
    }

    /// A query that is read in pieces, as of its beginning.
    private struct OpenQuery: ~Copyable {
        private let reader: StoreReader
        private let point: ReadPoint
        private var run: QueryExecution

        init(_ query: StructuredQuery, _ model: IndexedModel) throws {
            let reader = model.harness.store.makeReader()
            let point = try reader.readPoint(.latest, in: model.harness.database)
            let plan = try AdaptiveIndexTests.plan(query)
            self.reader = reader
            self.point = point
            run = QueryExecution(plan)
        }

        /// The paths of the next results, so many if there are.
        mutating func next(_ count: Int) throws -> [String] {
            var paths: [String] = []
            while paths.count < count {
                let progress = try run.next(from: try reader.source(at: point, matching: run.plan.matcher)) { result in
                    paths.append(String(repairingUTF8: result.path))
                    return paths.count < count ? .more : .full
                }
                if progress == .finished { break }
            }
            return paths
        }
    }

    @Test
    func `A tool that opens the directory leaves its mode as it is`() async throws {
        let model = try await Self.model(.adaptive)
        for _ in 0..<2 { try expectEqual(Self.run(Self.equality(), model).scanned, Self.documentCount) }
        try await Self.passing("the index is used", model) { try Self.run(Self.equality(), model).scanned == 30 }
        model.harness.store.close()
        let configuration = model.harness.configuration
        let tool = IndexedModel(
            try StoreHarness(in: model.harness.directory, clock: model.harness.clock, database: "d") {
                $0 = configuration
                $0.automaticIndexes = .unchanged
            })
        try await tool.harness.commit([.set("c/new", ["a": 3, "b": 1])])
        try expectEqual(Self.run(Self.equality(), tool).scanned, 31)
        try expectEqual(Self.entries(tool), Self.documentCount + 1)
        expectEqual(tool.listing, ["READY"])
        try tool.harness.finish()
    }

    @Test
    func `What a declaration says of a field is neither made nor dropped on demand`() async throws {
        let model = try await Self.model(.adaptive)
        try await model.declare(
            IndexDeclaration(fieldOverrides: [
                FieldOverride(collectionID: "c", field: try FieldPath("a"), indexes: []),
                FieldOverride(collectionID: "c", field: try FieldPath("b"), indexes: [.ascending]),
            ]))
        try await model.waitForIndexes()
        try expectEqual(Self.entries(model), Self.documentCount)
        try expectEqual(Self.run(Self.order(), model).scanned, 5)
        for _ in 0..<3 { try expectEqual(Self.run(Self.equality(), model).scanned, Self.documentCount) }
        try expectEqual(Self.missing(Self.equality(), model), [])
        Self.pass(seconds: 30 * 86_400, model)
        try await Self.passing("rounds pass", model) { true }
        try expectEqual(Self.entries(model), Self.documentCount)
        try await model.declare(IndexDeclaration())
        try await model.waitForIndexes()
        try expectEqual(Self.entries(model), 0)
        for _ in 0..<2 { try expectEqual(Self.run(Self.equality(), model).scanned, Self.documentCount) }
        try await Self.passing("the index is used", model) { try Self.run(Self.equality(), model).scanned == 30 }
        // A declaration for all fields takes the index away.
        try await model.declare(
            IndexDeclaration(fieldOverrides: [FieldOverride(collectionID: "c", field: nil, indexes: [])]))
        try await eventually("the walk is over") { !model.harness.store.indexState.hasWork }
        try await eventually("the removal is published") { try Self.entries(model) == 0 }
        try model.harness.finish()
    }

    @Test
    func `Elements of arrays, fields in maps, counts and groups make their indexes`() async throws {
        let model = try await Self.model(.adaptive)
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "c", allDescendants: true)])
        query.filter = .field(try FieldPath("m.x"), .arrayContains, EncodedValue(.integer(7)))
        for _ in 0..<2 { try expectEqual(model.count(query, parent: "").scanned, Self.documentCount) }
        try expectEqual(Self.missing(query, model), ["Missing index c (m.x CONTAINS): requested"])
        try await Self.passing("the index is used", model) {
            let (count, scanned) = try model.count(query, parent: "")
            return count == 60 && scanned == 0
        }
        // The array has two elements; the array as a whole and the map around it have no entries.
        try expectEqual(Self.entries(model), 2 * Self.documentCount)
        try model.harness.finish()
    }
}
