// Operators that read a source: scans, look-ups, index ranges and their merges, over a sorted array.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import Indexing
@testable import QueryEngine

@Suite(.timeLimit(.minutes(20)))
struct AccessOperatorTests {
    /// Documents whose fields repeat at different rates, with neighbours that no operator may read.
    private static let documents =
        numbered(60) {
            [
                "n": .integer($0), "third": .integer($0 % 3), "fifth": .integer($0 % 5),
                "tags": .array([.integer($0 % 7), "all"]),
            ]
        }
    private static let neighbours = [
        TestDocument(path: "b/x", fields: ["third": 1]), TestDocument(path: "c/d001/s/x", fields: ["third": 1]),
        TestDocument(path: "cc/x", fields: ["third": 1]),
    ]

    private func source(isIndexed: Bool = true) throws -> MemorySource {
        try MemorySource(Self.documents + Self.neighbours, isIndexed: isIndexed)
    }

    private static let collection = Array("c".utf8)

    // MARK: Documents

    @Test(arguments: Paging.all)
    func `CollectionScan reads a range of ids in both directions`(paging: Paging) throws {
        let source = try source()
        let ids = DocumentIDRange(
            lower: DocumentIDBound(id: Array("d010".utf8), isInclusive: false),
            upper: DocumentIDBound(id: Array("d014".utf8), isInclusive: true))
        for (direction, expected) in [
            (SortDirection.ascending, ["d011", "d012", "d013", "d014"]),
            (.descending, ["d014", "d013", "d012", "d011"]),
        ] {
            let scan = CollectionScan(Self.collection, ids: ids, direction: direction)
            let given = try rows(of: scan, over: source, paging)
            expectEqual(given.ids, expected)
            expectEqual(given.work.documents, 4)
            expect(given.documents[0].fields["n"] != nil)
        }
        let all = CollectionScan(Self.collection, direction: .ascending)
        try expectEqual(rows(of: all, over: source, paging).ids, Self.documents.map(\.id))
        let none = CollectionScan(Array("none".utf8), direction: .ascending)
        try expect(rows(of: none, over: source, paging).ids.isEmpty)
    }

    @Test(arguments: Paging.all)
    func `CollectionScan gives out ids that are too long for a key in their order`(paging: Paging) throws {
        let prefix = String(repeating: "p", count: 215)
        let ids = ["a", "z"] + (10..<40).map { prefix + String($0) } + [prefix]
        let source = try MemorySource(ids.shuffled().map { TestDocument(path: "c/\($0)", fields: ["n": 1]) })
        let sorted = ids.sorted()
        let up = CollectionScan(Self.collection, direction: .ascending)
        try expectEqual(rows(of: up, over: source, paging).ids, sorted)
        let down = CollectionScan(Self.collection, direction: .descending)
        try expectEqual(rows(of: down, over: source, paging).ids, sorted.reversed())
    }

    @Test(arguments: [(count: 300, length: 219), (count: 900, length: 1_400)])
    func `CollectionScan goes over long ids a few times, however small the pages are`(
        ids: (count: Int, length: Int)
    ) throws {
        let sorted = (1_000..<1_000 + ids.count).map { String(repeating: "p", count: ids.length - 4) + String($0) }
        var source = try MemorySource(sorted.shuffled().map { TestDocument(path: "c/\($0)", fields: ["n": 1]) })
        let waits = SourceWaits(seed: 1, oneIn: .max)
        source.waits = waits
        for direction in [SortDirection.ascending, .descending] {
            let before = waits.readCount
            let scan = CollectionScan(Self.collection, direction: direction)
            let given = try rows(of: scan, over: source, Paging(rows: 2, budget: 50)).ids
            expectEqual(given, direction == .ascending ? sorted : sorted.reversed())
            expect(waits.readCount - before < 10 * ids.count)
        }
        let range = DocumentIDRange(
            lower: DocumentIDBound(id: Array(sorted[20].utf8), isInclusive: false),
            upper: DocumentIDBound(id: Array(sorted[ids.count - 5].utf8), isInclusive: false))
        let part = CollectionScan(Self.collection, ids: range, direction: .descending)
        let expected = Array(sorted[21..<ids.count - 5].reversed())
        try expectEqual(rows(of: part, over: source, Paging(rows: 7)).ids, expected)
    }

    @Test(arguments: Paging.all)
    func `SubtreeScan reads collections below documents with long ids in the order of names`(paging: Paging) throws {
        let ids = ["a"] + (10..<30).map { String(repeating: "p", count: 215) + String($0) } + ["z"]
        let paths = ids.flatMap { ["c/\($0)", "c/\($0)/s/1", "c/\($0)/s/2"] }
        let source = try MemorySource(paths.shuffled().map { TestDocument(path: $0, fields: ["n": 1]) })
        let all = SubtreeScan(.descendants(parent: [], collectionID: nil), names: .all)
        try expectEqual(rows(of: all, over: source, paging).paths, paths)
    }

    @Test
    func `Entries whose values were cut alike are sorted in short steps, and each is read once`() throws {
        let text = String(repeating: "x", count: 300)
        let documents = numbered(100) { ["s": .string("\(text)\(900 - $0)")] }
        let source = try MemorySource(documents, isIndexed: true)
        let query = StructuredQuery(
            from: [CollectionSelector(collectionID: "c")], orderBy: [Order(field: try FieldPath("s"))])
        var options = QueryOptions()
        options.candidatesPerStep = 10
        let parent = Array("projects/p/databases/d/documents".utf8)
        var run = QueryExecution(try QueryPlan(query, parent: parent.byteSpan, options: options))
        var ids: [String] = []
        var progress = QueryExecution.Progress.paused
        while progress == .paused {
            let (entries, count) = (run.scannedEntries, ids.count)
            progress = try run.next(from: source) { (row) throws(RequestError) in
                ids.append(String(repairingUTF8: row.path))
                return .more
            }
            expect(run.scannedEntries - entries <= 10)
            expect(ids.count - count <= 10)
        }
        expectEqual(ids, documents.map(\.path).reversed())
        expectEqual(run.scannedEntries, documents.count)
    }

    @Test(arguments: [nil, "n"], [SortDirection.ascending, .descending])
    func `A step passes few deleted documents`(field: String?, direction: SortDirection) throws {
        let documents = numbered(102) { _ in ["n": 1] }
        let left = [documents[0], documents[101]]
        let source = try MemorySource(left, isIndexed: true, deleted: Array(documents[1...100]))
        let query = StructuredQuery(
            from: [CollectionSelector(collectionID: "c")],
            orderBy: [Order(field: try FieldPath(field ?? "__name__"), direction: direction)])
        var options = QueryOptions()
        options.candidatesPerStep = 5
        let parent = Array("projects/p/databases/d/documents".utf8)
        let plan = try QueryPlan(query, parent: parent.byteSpan, options: options)
        let (found, run) = try results(of: plan, over: source)
        expectEqual(found, direction == .ascending ? left : left.reversed())
        expect(run.calls >= 5, "\(run.tree)")
    }

    @Test(arguments: Paging.all)
    func `SubtreeScan reads nested collections in the order of names`(paging: Paging) throws {
        let paths = ["a/1", "a/1/x/5", "a/1/x/5/x/7", "a/1/y/1", "a/2", "b/1", "b/1/x/2", "x/1"]
        let source = try MemorySource(
            paths.shuffled().map { TestDocument(path: $0, fields: ["n": 1]) }, emptyCollections: ["a/9/x"])
        let all = SubtreeScan(.descendants(parent: [], collectionID: nil), names: .all)
        try expectEqual(rows(of: all, over: source, paging).paths, paths)
        let group = SubtreeScan(.descendants(parent: [], collectionID: Array("x".utf8)), names: .all)
        try expectEqual(rows(of: group, over: source, paging).paths, ["a/1/x/5", "a/1/x/5/x/7", "b/1/x/2", "x/1"])
        let children = SubtreeScan(.children(parent: Array("a/1".utf8)), names: .all)
        try expectEqual(rows(of: children, over: source, paging).paths, ["a/1/x/5", "a/1/y/1"])
        let position = NamePosition(path: Array("a/1/x/5".utf8))
        let late = NameRange(lower: NameRange.Bound(position: position, isInclusive: false))
        let rest = SubtreeScan(.descendants(parent: [], collectionID: nil), names: late)
        try expectEqual(rows(of: rest, over: source, paging).paths, Array(paths.dropFirst(2)))
    }

    @Test(arguments: Paging.all, [SortDirection.ascending, .descending])
    func `CollectionScan reads each group of long ids once`(paging: Paging, direction: SortDirection) throws {
        let documents = ["p", "q", "r"].flatMap { letter in
            (10..<30).map { TestDocument(path: "c/\(String(repeating: letter, count: 230))\($0)", fields: ["n": 1]) }
        }
        let scan = CollectionScan(Array("c".utf8), direction: direction)
        let given = try rows(of: scan, over: try MemorySource(documents), paging, pagesMax: 1_000)
        expectEqual(given.paths, (direction == .ascending ? documents : documents.reversed()).map(\.path))
    }

    @Test(arguments: [QueryScope.descendants(parent: [], collectionID: nil), .children(parent: [])])
    func `A step that looks for collections passes few deleted documents`(scope: QueryScope) throws {
        let left = ["a/1", "c/1", "e/1"].map { TestDocument(path: $0, fields: ["n": 1]) }
        let deleted = ["b", "d", "f"].flatMap { id in
            (100..<200).map { TestDocument(path: "\(id)/\($0)", fields: ["n": 1]) }
        }
        let source = try MemorySource(left, deleted: deleted)
        var scan = SubtreeScan(scope, names: .all)
        var (paths, steps): ([String], Int) = ([], 0)
        while !scan.isFinished {
            var work = StepWork(budget: 5)
            try scan.next(from: source, &work) { (row) throws(RequestError) in
                paths.append(String(repairingUTF8: row.path))
                return .more
            }
            steps += 1
        }
        expectEqual(paths, left.map(\.path))
        expect(steps >= 15, "\(steps) steps")
    }

    @Test(arguments: Paging.all)
    func `PointLookup reads the documents that exist, and nothing else`(paging: Paging) throws {
        let paths = ["c/d005", "c/none", "c/d002"]
        let lookup = PointLookup(paths.map { Array($0.utf8) }, in: .collection(path: Self.collection))
        let given = try rows(of: lookup, over: try source(), paging)
        expectEqual(given.paths, ["c/d005", "c/d002"])
        expectEqual(given.work.documents, 2)
        expectEqual(lookup.tree.description, "PointLookup 3 of collection c")
    }

    // MARK: Entries

    private func index(
        _ field: String, _ kind: IndexUse.Kind = .values, in source: borrowing MemorySource
    ) throws -> IndexUse {
        let path = try FieldPath(field)
        let collection = try #require(try source.indexedCollection(Self.collection))
        let number = try #require(try source.fieldNumber(of: path))
        var prefix = ByteBuffer()
        IndexKey.begin(
            kind == .values ? .values : .elements, collection: collection.number, field: number, into: &prefix)
        return IndexUse(kind: kind, field: path, prefix: prefix.copyBytes())
    }

    private func range(_ field: String, _ value: Value, in source: borrowing MemorySource) throws -> IndexRange {
        IndexRange(
            try index(field, in: source), value: IndexedKey(EncodedValue(value)),
            condition: "\(field) == \(value.literal)")
    }

    private func fetch(_ entries: EntrySource, readsDocuments: Bool = true) -> Fetch {
        Fetch(
            entries, in: .collection(path: Self.collection), readsDocuments: readsDocuments, FetchCheck(), orders: [])
    }

    @Test(arguments: Paging.all)
    func `IndexScan reads intervals of an index in both directions, and no entry twice`(paging: Paging) throws {
        let source = try source()
        let intervals = [5, 9, 30].map { ByteInterval(value: IndexedKey(EncodedValue(.integer($0)))) }
        for direction in [SortDirection.ascending, .descending] {
            let scan = IndexScan(
                try index("n", in: source), intervals: intervals, direction: direction, condition: "n in [5, 9, 30]")
            let given = try rows(of: fetch(.scan(scan)), over: source, paging)
            expectEqual(given.ids, direction == .ascending ? ["d005", "d009", "d030"] : ["d030", "d009", "d005"])
            expectEqual(given.work.entries, 3)
            expectEqual(given.work.documents, 3)
        }
    }

    @Test(arguments: Paging.all)
    func `IndexScan of one value is in the order of ids`(paging: Paging) throws {
        let source = try source()
        let scan = IndexScan(try range("third", 1, in: source), direction: .descending)
        let given = try rows(of: fetch(.scan(scan)), over: source, paging)
        expectEqual(given.ids, Self.documents.filter { $0.fields["third"] == 1 }.map(\.id).reversed())
        expectEqual(given.work.entries, 20)
    }

    @Test(arguments: Paging.all)
    func `Cut values are sorted by their documents`(paging: Paging) throws {
        let prefix = String(repeating: "v", count: 300)
        let values = (0..<30).map { prefix + String(($0 * 7) % 30 + 100) }
        let documents =
            [TestDocument(path: "c/first", fields: ["s": "a"])]
            + values.enumerated().map { TestDocument(path: "c/k\(100 + $0)", fields: ["s": .string($1)]) }
            + [TestDocument(path: "c/last", fields: ["s": "z"])]
        let source = try MemorySource(documents, isIndexed: true)
        for direction in [SortDirection.ascending, .descending] {
            var scan = IndexScan(try index("s", in: source), intervals: [.all], direction: direction, condition: "")
            scan.isOrdered = true
            let orders = [
                Order(field: try FieldPath("s"), direction: direction),
                Order(field: .documentName, direction: direction),
            ]
            let fetch = Fetch(
                .scan(scan), in: .collection(path: Self.collection), readsDocuments: true, FetchCheck(), orders: orders)
            var expected = ["a"] + values.sorted() + ["z"]
            if direction == .descending { expected.reverse() }
            let given = try rows(of: fetch, over: source, paging)
            expectEqual(given.documents.map { $0.fields["s"] }, expected.map { .string($0) })
        }
    }

    @Test(arguments: Paging.all)
    func `Fetch without documents counts the entries`(paging: Paging) throws {
        let source = try source()
        let scan = IndexScan(try range("third", 1, in: source), direction: .ascending)
        var fetch = fetch(.scan(scan), readsDocuments: false)
        var count = 0
        var work = StepWork()
        while !fetch.isFinished {
            work.budget = paging.budget
            var inPage = 0
            try fetch.next(from: source, &work) { _ in
                count += 1
                inPage += 1
                return inPage < paging.rows ? .more : .full
            }
        }
        expectEqual(count, 20)
        expect((work.documents, work.entries) == (0, 20))
        expectEqual(fetch.tree.description, "IndexOnly\n└─ IndexScan (third ASC, __name__ ASC): third == 1")
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `ZigzagMerge and Union are intersection and union of sets, in order`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let documents = numbered(200) { _ in
            MapValue(["a", "b", "e"].map { ($0, .integer(Int64(generator.below($0 == "e" ? 40 : 3)))) })
        }
        let source = try MemorySource(documents + Self.neighbours, isIndexed: true)
        for round in 0..<20 {
            let direction = generator.pick([SortDirection.ascending, .descending])
            let members = (0..<(1 + generator.below(3))).map { _ in
                (0..<(1 + generator.below(3))).map { _ in
                    (field: generator.pick(["a", "b", "e"]), value: Int64(generator.below(3)))
                }
            }
            let union = Union(
                try members.map { member in
                    ZigzagMerge(ranges: try member.map { try range($0.field, .integer($0.value), in: source) })
                }, direction: direction)
            var expected = documents.filter { document in
                members.contains { $0.allSatisfy { document.fields[$0.field] == .integer($0.value) } }
            }.map(\.id)
            if direction == .descending { expected.reverse() }
            let paging = generator.pick(Paging.all)
            let given = try rows(of: fetch(.union(union)), over: source, paging)
            expectEqual(given.ids, expected, "seed \(seed), round \(round), \(paging): \(members), \(direction)")
        }
    }

    @Test
    func `ZigzagMerge skips what the other range does not contain, and pauses when the step's budget is spent`() throws
    {
        // One field is 1 in the first half, the other in the second; only the last document has both.
        let documents = numbered(400) {
            ["low": .integer($0 < 200 || $0 == 399 ? 1 : 0), "high": .integer($0 >= 200 ? 1 : 0)]
        }
        let source = try MemorySource(documents, isIndexed: true)
        let merge = ZigzagMerge(ranges: [try range("low", 1, in: source), try range("high", 1, in: source)])
        let given = try rows(of: fetch(.union(Union([merge], direction: .ascending))), over: source)
        expectEqual(given.ids, ["d399"])
        expect(given.work.entries < 40, "the halves are skipped, not read")
        // Fields that alternate agree nowhere: every entry is looked at, a few in each step.
        let odd = numbered(400) { ["x": .integer($0 % 2), "y": .integer(($0 + 1) % 2)] }
        let alternating = try MemorySource(odd, isIndexed: true)
        let apart = ZigzagMerge(ranges: [try range("x", 1, in: alternating), try range("y", 1, in: alternating)])
        var fetch = fetch(.union(Union([apart], direction: .ascending)))
        var steps = 0
        while !fetch.isFinished {
            var work = StepWork(budget: 20)
            try fetch.next(from: alternating, &work) { _ in .more }
            expect(work.entries <= 20 + 2 * 256, "a step reads its budget and no more than a batch of each range")
            steps += 1
        }
        expect(steps > 10)
    }

    @Test(arguments: Paging.all)
    func `Append gives out each document once, by the first alternative that it meets`(paging: Paging) throws {
        let source = try source()
        var script = QueryCommands()
        for command in ["query c", "where n < 10 or fifth > 3"] { try script.read(command) }
        let plan = try plan(script.query)
        let access = try #require(try AccessPlanner.choose(plan, source))
        expectEqual(access.parts.count, 2)
        let given = try rows(of: access.operators(of: plan), over: source, paging)
        let expected = Self.documents.enumerated().filter { $0.offset < 10 || $0.offset % 5 > 3 }.map(\.element.id)
        expectEqual(given.ids.sorted(), expected)
    }
}
