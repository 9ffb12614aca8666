// Reads at the times of commits: every way to read agrees with the log replayed to that time.
//
// Several clients commit random writes, among them the first of a collection, of a group or of a field, and each reads
// at the time of its commit at once. Put in the order of their times, the commits give the state of a model at every
// time. All reads at these times must show it: those made meanwhile, and those made later, after a crash, a checkpoint
// and a restart.

import Basics
import DocumentModel
import Glibc
import Storage
import StoreTestSupport
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct CommitTimeReadTests {
    /// One write: the fields of a document, or nil for a delete.
    private struct Step: Sendable {
        var path: String
        var fields: MapValue?

        var write: StepWrite { fields.map { .set(path, $0) } ?? .delete(path) }
    }

    private struct Done: Sendable {
        var time: UInt64
        var steps: [Step]
        /// What the client saw at the time of its commit right after it.
        var seen: Seen
    }

    /// What a few reads return that the catalogue answers.
    private struct Seen: Equatable, Sendable {
        var groupCount: Int64?
        var collectionCounts: [Int64?] = []
        var inGroup: [String] = []
        var roots: [String] = []
    }

    private typealias Documents = [String: TestDocument]

    // MARK: Commits

    /// Writes of which many are the first of something.
    private static func steps(_ random: inout RandomQueries) -> [Step] {
        func pick(_ places: [String]) -> String { random.random.generator.pick(places) }
        let number = random.random.generator.below(400)
        return (0..<(1 + random.random.generator.below(4))).map { _ in
            let collection = pick(["c", "d", "c/1/c", "d/z/c", "r\(number)/x/c", "g\(number)"])
            let path = "\(collection)/\(random.random.generator.below(6))"
            if random.random.generator.oneIn(4) { return Step(path: path, fields: nil) }
            var fields: MapValue = ["a": random.value(), "n": .integer(Int64(random.random.generator.below(50)))]
            if random.random.generator.oneIn(3) { fields["m"] = .map(["x": random.scalar()]) }
            if random.random.generator.oneIn(2) { fields["f\(number)"] = random.scalar() }
            return Step(path: path, fields: fields)
        }
    }

    private static func commit(
        _ clients: Int, each: Int, seed: UInt64, to harness: StoreHarness
    ) async throws -> [Done] {
        let done = Collected<Done>()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for client in 0..<clients {
                group.addTask {
                    var random = RandomQueries(seed: seed &* 1_000 &+ UInt64(client))
                    for round in 0..<each {
                        var steps = steps(&random)
                        // A collection that is large enough to be cut into two parts.
                        if client == 0, round == each / 2 {
                            steps += (0..<300).map { Step(path: "parts/\($0)", fields: ["n": .integer(Int64($0))]) }
                        }
                        let time = try await harness.result(committing: steps.map(\.write)).commitMicroseconds
                        let seen = try look(steps, harness, at: time)
                        done.append(Done(time: time, steps: steps, seen: seen))
                    }
                }
            }
            try await group.waitForAll()
        }
        return done.all.sorted { $0.time < $1.time }
    }

    private static func collections(of steps: [Step]) -> [String] {
        Set(steps.map { TestDocument(path: $0.path, fields: [:]).collection }).sorted()
    }

    private static func look(_ steps: [Step], _ harness: StoreHarness, at time: UInt64) throws -> Seen {
        let model = IndexedModel(harness)
        let selector = ReadSelector.time(TimestampValue(microseconds: Int64(time)))
        let reader = harness.store.makeReader()
        let point = try harness.readPoint(reader, selector)
        let (all, _, _, _) = try model.run(group, parent: "", options: QueryOptions(), pageSize: 100, at: selector)
        return Seen(
            groupCount: try model.count(group, parent: "", at: selector).count,
            collectionCounts: try collections(of: steps).map { path in
                let collection = try CollectionPath(database: harness.database, path: path)
                return Int64(try reader.documentCount(of: collection, at: point))
            },
            inGroup: all.map(\.path).sorted(),
            roots: try reader.collectionIDs(below: nil, after: nil, limit: 10_000, at: point))
    }

    private static let group = StructuredQuery(from: [CollectionSelector(collectionID: "c", allDescendants: true)])

    // MARK: The model

    private static func states(_ order: [Done]) -> [Documents] {
        var documents: Documents = [:]
        return order.map { commit in
            for step in commit.steps {
                documents[step.path] = step.fields.map { TestDocument(path: step.path, fields: $0) }
            }
            return documents
        }
    }

    private static func ids(_ documents: Documents, below parent: String) -> [String] {
        let prefix = parent.isEmpty ? "" : parent + "/"
        let ids = Set(
            documents.keys.filter { $0.hasPrefix(prefix) && $0.count > prefix.count }.map {
                String($0.dropFirst(prefix.count).prefix { $0 != "/" })
            })
        return ids.sorted { pathOrder($0, $1) < 0 }
    }

    private static func expected(_ steps: [Step], _ documents: Documents) -> Seen {
        Seen(
            groupCount: Int64(documents.values.filter { $0.segments.suffix(2).first == "c" }.count),
            collectionCounts: collections(of: steps).map { collection in
                Int64(documents.values.filter { $0.collection == collection }.count)
            },
            inGroup: documents.keys.filter { documents[$0]!.segments.suffix(2).first == "c" }.sorted(),
            roots: ids(documents, below: ""))
    }

    // MARK: Reads

    /// Reads one state in every way, and compares with the model.
    private struct Checker {
        let harness: StoreHarness
        let documents: Documents
        let selector: ReadSelector
        let place: String
        var random: RandomQueries

        mutating func check(_ steps: [Step]) throws {
            for step in steps.suffix(3) {
                let path = step.path
                try expectEqual(harness.get(path, selector)?.fields, documents[path]?.fields, "\(path), \(place)")
                for name in step.fields?.entries.map(\.key) ?? [] { try check(field: name, in: path) }
            }
            for collection in CommitTimeReadTests.collections(of: steps) { try check(collection: collection) }
            try checkNames()
            for _ in 0..<3 {
                let (query, parent) = random.query()
                try check(query, parent)
            }
        }

        /// A filter or an order by a field, in the document's collection or in its group.
        private mutating func check(field name: String, in path: String) throws {
            let segments = TestDocument(path: path, fields: [:]).segments
            let isGroup = random.random.generator.oneIn(2)
            let parent = isGroup ? "" : segments.dropLast(2).joined(separator: "/")
            var query = StructuredQuery(
                from: [CollectionSelector(collectionID: segments[segments.count - 2], allDescendants: isGroup)])
            if let value = documents[path]?.fields[name], value != .null, random.random.generator.oneIn(2) {
                query.filter = .field(try FieldPath(name), .equal, EncodedValue(value))
            } else {
                query.orderBy = [Order(field: try FieldPath(name))]
            }
            try check(query, parent, withTotals: true)
        }

        private func check(_ query: StructuredQuery, _ parent: String, withTotals: Bool = false) throws {
            let model = IndexedModel(harness)
            let (found, tree, _, _) = try model.run(
                query, parent: parent, options: QueryOptions(), pageSize: 100, at: selector)
            let expected = NaiveQuery.results(query, parent: parent, of: Array(documents.values))
            expectEqual(found.map(\.path), expected.map(\.path), "\(place), plan:\n\(tree)")
            var bare = query
            bare.select = nil
            let count = try model.count(bare, parent: parent, at: selector).count
            expectEqual(count, Int64(expected.count), "\(place):\n\(tree)")
            guard withTotals else { return }
            let numbers = expected.compactMap { document -> Int64? in
                guard case .integer(let number)? = document.fields["n"] else { return nil }
                return number
            }
            let totals = try model.totals(
                bare, [.sum(FieldPath("n")), .average(FieldPath("n"))], parent: parent, at: selector)
            let sum = numbers.reduce(0, +)
            let average: Value = numbers.isEmpty ? .null : .double(Double(sum) / Double(numbers.count))
            expectEqual(totals, [.integer(sum), average], "\(place):\n\(tree)")
        }

        private func check(collection: String) throws {
            let reader = harness.store.makeReader()
            let point = try harness.readPoint(reader, selector)
            let expected = documents.values.filter { $0.collection == collection }.map(\.id)
                .sorted { pathOrder($0, $1) < 0 }
            var listed: [String] = []
            let path = try CollectionPath(database: harness.database, path: collection)
            try reader.listDocuments(in: path, showMissing: false, at: point) { id, _ in
                listed.append(String(repairingUTF8: id))
                return .more
            }
            expectEqual(listed, expected, "\(collection), \(place)")
            try expectEqual(reader.documentCount(of: path, at: point), expected.count, "\(collection), \(place)")
            // A part has at least 128 documents: a collection of 300 is cut once.
            guard collection == "parts", expected.count == 300 else { return }
            let root = Array(harness.database.documentsRoot.utf8)
            let group = StructuredQuery(from: [CollectionSelector(collectionID: collection, allDescendants: true)])
            var partitioner = try GroupPartitioner(group, parent: root.byteSpan, cuts: 4)
            while try !partitioner.next(from: reader.source(at: point)) {}
            let cuts = partitioner.result.map { String(decoding: $0, as: UTF8.self) }
            expect(cuts.count == 1 && documents[cuts.first ?? ""] != nil, "\(cuts), \(place)")
        }

        private func checkNames() throws {
            let reader = harness.store.makeReader()
            let point = try harness.readPoint(reader, selector)
            for parent in ["", "c/1", "d/z"] {
                let path = parent.isEmpty ? nil : try DocumentPath(database: harness.database, path: parent)
                let found = try reader.collectionIDs(below: path, after: nil, limit: 10_000, at: point)
                expectEqual(found, CommitTimeReadTests.ids(documents, below: parent), "below \(parent), \(place)")
            }
        }
    }

    @Test(arguments: zip([UInt64(301), 302], [AutomaticIndexes.on, .adaptive]))
    func `Every read at the time of a commit sees the commit and all that follows from it`(
        seed: UInt64, indexes: AutomaticIndexes
    ) async throws {
        print("seed \(seed)")
        let harness = try StoreHarness(database: "d") {
            $0.automaticIndexes = indexes
            if seed % 2 == 0 { $0.engine.memtableBytesMax = 128 << 10 }
            // Commits come together while a group is synced.
            $0.engine.fault = {
                if $0 == .syncLog { usleep(1_000) }
                return 0
            }
        }
        let order = try await Self.commit(6, each: 16, seed: seed, to: harness)
        let states = Self.states(order)
        expect(harness.store.statistics.groups < UInt64(order.count))
        for (commit, documents) in zip(order, states) {
            expectEqual(commit.seen, Self.expected(commit.steps, documents), "at \(commit.time), right after it")
        }
        var random = RandomQueries(seed: seed)
        func check(_ harness: StoreHarness, _ store: String) async throws {
            let parts = order.firstIndex { $0.steps.count >= 300 }
            for round in 0..<8 {
                let number = round == 0 ? parts ?? 0 : random.random.generator.below(order.count)
                let (commit, time) = (order[number], order[number].time)
                let place = "at \(time), \(store), seed \(seed)"
                func check(_ selector: ReadSelector, _ documents: Documents) throws {
                    var check = Checker(
                        harness: harness, documents: documents, selector: selector, place: place, random: random)
                    try check.check(commit.steps)
                    random = check.random
                }
                let then = TimestampValue(microseconds: Int64(time))
                try check(.time(then), states[number])
                // Just before it there is nothing of it.
                let before = TimestampValue(microseconds: Int64(time) - 1)
                if number > 0 { try check(.time(before), states[number - 1]) }
                if round < 4 {
                    try check(.transaction(try await harness.begin(.readOnly(readTime: then))), states[number])
                }
            }
        }
        try await check(harness, "live")
        let crashed = try harness.crashed()
        try await check(crashed, "replayed")
        try crashed.finish()
        try harness.store.checkpoint()
        try await check(harness, "after a checkpoint")
        let reopened = try harness.reopened()
        try await check(reopened, "reopened")
        try reopened.finish()
    }

    @Test
    func `A database is there at the time of its first commit`() async throws {
        let harness = try StoreHarness()
        for number in 0..<12 {
            let database = try DatabaseName(project: "p", database: "other-\(number)")
            let writes = try (0..<3).map { try harness.list([.set("c/\($0)/c/x", fields(1))], in: database) }
            let outcomes = await withTaskGroup { group in
                for writes in writes { group.addTask { await harness.outcome(CommitRequest(writes: writes)) } }
                return await group.reduce(into: []) { $0.append($1) }
            }
            let times = try outcomes.map { try $0.get().commitMicroseconds }.sorted()
            let reader = harness.store.makeReader()
            for (position, time) in times.enumerated() {
                let selector = ReadSelector.time(TimestampValue(microseconds: Int64(time)))
                let point = try reader.readPoint(selector, in: database)
                let source = try reader.source(at: point)
                var count = CatalogueCount(.descendants(parent: [], collectionID: Array("c".utf8)))
                try expectEqual(count.next(from: source), .count(position + 1))
            }
        }
        try harness.finish()
    }
}
