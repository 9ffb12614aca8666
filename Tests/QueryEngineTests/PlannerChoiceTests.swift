// What the planner chooses: a table of queries over collections of which only the statistics are known.

import Basics
import DocumentModel
import Storage
import StoreTestSupport
import Synchronization
import TestSupport
import Testing

@testable import Indexing
@testable import QueryEngine
@testable import StoreFormat

@Suite(.timeLimit(.minutes(20))) struct PlannerChoiceTests {
    /// A collection as its statistics show it: fields have entries, and so many of them lie in whatever range is
    /// asked for.
    private struct StatisticsSource: QuerySource, ~Copyable {
        private let memory: MemorySource
        /// Entries in every range of a field's index, by what the keys of the index begin with.
        private let entries: [[UInt8]: Int]
        /// Entries counted so far: the planner's own work.
        private let countedEntries = Mutex(0)

        /// - Parameter entries: entries in every range of a field's index. A field that is not here was never in a
        ///   document.
        init(documents: Int, entries: [String: Int], isKnown: Bool = true) throws {
            let document = TestDocument(path: "c/x", fields: MapValue(entries.keys.sorted().map { ($0, .null) }))
            let memory = try MemorySource(isKnown ? [document] : [], count: documents, isIndexed: true)
            var ranges: [[UInt8]: Int] = [:]
            for (field, count) in entries {
                guard let number = try memory.fieldNumber(of: try FieldPath(field)) else { continue }
                for space in [KeySpace.values, .elements] {
                    var prefix = ByteBuffer(capacity: 16)
                    IndexKey.begin(space, collection: 1, field: number, into: &prefix)
                    ranges[prefix.copyBytes()] = count
                }
            }
            self.memory = memory
            self.entries = ranges
        }

        var counted: Int { countedEntries.withLock { $0 } }
        var database: UInt32 { memory.database }
        var versionMicroseconds: UInt64 { memory.versionMicroseconds }

        @_lifetime(borrow self)
        borrowing func cursor(
            from lower: RawSpan, to upper: RawSpan, _ direction: SortDirection
        ) throws(RequestError) -> MemorySource.Cursor {
            Issue.record("a plan reads no ranges")
            return try memory.cursor(from: lower, to: upper, direction)
        }

        @_lifetime(borrow self)
        borrowing func value(forKey key: RawSpan) throws(RequestError) -> SourceValue? { try memory.value(forKey: key) }

        borrowing func indexedFields(of collection: RawSpan) -> IndexedFields { .all }

        borrowing func countKeys(from lower: RawSpan, to upper: RawSpan, atMost: Int) throws(RequestError) -> Int {
            let lower = [UInt8](copying: lower)
            let found = entries.first { lower.starts(with: $0.key) }
            let count = min(found?.value ?? 0, atMost)
            countedEntries.withLock { $0 += count }
            return count
        }
    }

    /// The choice as text: the tree with a line for each level, then what is known of the candidates.
    private static func choice(_ commands: String, _ source: borrowing StatisticsSource) throws -> String {
        var script = QueryCommands()
        for command in ["query c"] + commands.split(separator: "; ").map(String.init) { try script.read(command) }
        let query = try queryPlan(script)
        guard let access = try AccessPlanner.choose(query, source) else { return "scan" }
        let tree = access.operators(of: query).tree.description
        let traits = [(access.isOrdered, "ordered"), (access.isExact, "exact"), (access.countsOnly, "counts only")]
        return ([tree] + traits.filter(\.0).map(\.1)).joined(separator: "; ")
    }

    private static func queryPlan(_ script: QueryCommands) throws -> QueryPlan {
        if script.aggregations.isEmpty { return try plan(script.query, parent: script.parent, options: script.options) }
        let query = StructuredAggregationQuery(query: script.query, aggregations: script.aggregations)
        return try AggregationExecution(query, parent: Array(script.parent.utf8).byteSpan, options: script.options).plan
    }

    private static func choice(_ commands: String, documents: Int = 10_000, _ entries: [String: Int]) throws -> String {
        return try choice(commands, try StatisticsSource(documents: documents, entries: entries))
    }

    private static let fields = ["a": 500, "b": 500, "c": 500]

    @Test(arguments: [
        ("where a == 1", "Fetch\n└─ IndexScan (a ASC, __name__ ASC): a == 1; ordered; exact"),
        (
            "where a == 1 and b == 2",
            "Fetch\n└─ ZigzagMerge\n   └─ IndexScan (a ASC, __name__ ASC): a == 1\n"
                + "   └─ IndexScan (b ASC, __name__ ASC): b == 2"
                + "; ordered; exact"
        ),
        (
            "where a == 1 or b == 2",
            "Fetch\n└─ Union\n   └─ IndexScan (a ASC, __name__ ASC): a == 1\n"
                + "   └─ IndexScan (b ASC, __name__ ASC): b == 2; ordered; exact"
        ),
        (
            "where a array-contains 1",
            "Fetch\n└─ IndexScan (a CONTAINS, __name__ ASC): a array-contains 1; ordered; exact"
        ),
        // No document ever had the field.
        ("where z == 1", "Nothing; ordered; exact"),
        ("where a == 1 and z == 1", "Nothing; ordered; exact"),
        ("where a == 1 or z == 1", "Fetch\n└─ IndexScan (a ASC, __name__ ASC): a == 1; ordered; exact"),
    ])
    func `Equalities are merged, whatever their numbers`(commands: String, expected: String) throws {
        try expectEqual(Self.choice(commands, Self.fields), expected)
    }

    @Test(arguments: [
        ("order a", "Fetch\n└─ IndexScan (a ASC, __name__ ASC); ordered"),
        ("order a desc", "Fetch\n└─ IndexScan (a DESC, __name__ DESC); ordered"),
        ("where a > 5", "Fetch\n└─ IndexScan (a ASC, __name__ ASC): a > 5; ordered"),
        ("where a > 5; order a desc", "Fetch\n└─ IndexScan (a DESC, __name__ DESC): a > 5; ordered"),
        ("order a; start-at 5; end-before 9; limit 3", "Fetch\n└─ IndexScan (a ASC, __name__ ASC); ordered"),
    ])
    func `One field's order is walked without counting`(commands: String, expected: String) throws {
        let source = try StatisticsSource(documents: 10_000, entries: Self.fields)
        try expectEqual(Self.choice(commands, source), expected)
        expectEqual(source.counted, 0)
    }

    /// With 10,000 documents and a limit of 10 the two break even at √(11 · 10,000) = 331 entries.
    @Test(arguments: [
        (10, 330, true), (10, 331, false), (0, 330, true), (10_000, 331, false),
    ])
    func `Between the order and the filter decides which is less work`(
        entriesOfOrder: Int, entriesOfFilter: Int, isFiltered: Bool
    ) throws {
        let entries = ["a": entriesOfOrder, "b": entriesOfFilter]
        let filtered = "Fetch\n└─ IndexScan (b ASC, __name__ ASC): b == 1"
        let ordered = "Fetch\n└─ IndexScan (a ASC, __name__ ASC); ordered"
        try expectEqual(Self.choice("where b == 1; order a; limit 10", entries), isFiltered ? filtered : ordered)
    }

    @Test
    func `The break-even grows with limit, offset and documents, and without limit is a quarter of the documents`()
        throws
    {
        let filtered = "Fetch\n└─ IndexScan (b ASC, __name__ ASC): b == 1"
        let ordered = "Fetch\n└─ IndexScan (a ASC, __name__ ASC); ordered"
        let cases: [(commands: String, documents: Int, breakEven: Int)] = [
            ("limit 1", 10_000, 141), ("limit 1; offset 9", 10_000, 331), ("limit 99", 10_000, 1_000),
            ("limit 1", 1_000_000, 1_414), ("limit 1", 10, 64), ("", 10_000, 2_500), ("", 100, 64),
            ("", 1_000_000, 100_000),
        ]
        for (commands, documents, breakEven) in cases {
            let query = "where b == 1; order a" + (commands.isEmpty ? "" : "; " + commands)
            try expectEqual(
                Self.choice(query, documents: documents, ["a": documents, "b": breakEven - 1]), filtered,
                "\(query), \(documents) documents, \(breakEven - 1) entries")
            try expectEqual(
                Self.choice(query, documents: documents, ["a": documents, "b": breakEven]), ordered,
                "\(query), \(documents) documents, \(breakEven) entries")
        }
    }

    @Test
    func `Of several ranges the smallest is taken, and none is counted further than needed`() throws {
        for (entries, expected) in [
            (["a": 5_000, "b": 50, "c": 400], "b"), (["a": 50, "b": 400, "c": 5_000], "a"),
            (["a": 400, "b": 300, "c": 20], "c"),
        ] {
            let source = try StatisticsSource(documents: 10_000, entries: entries)
            let text = try Self.choice("where a > 1 and b > 1 and c > 1; order a; limit 10", source)
            expectEqual(text, "Fetch\n└─ IndexScan (\(expected) ASC, __name__ ASC): \(expected) > 1")
            // Once for each field, and once more to compare with the order, never beyond break-even.
            expect(source.counted <= 4 * 331)
        }
    }

    @Test
    func `What no automatic index can answer is scanned`() throws {
        try expectEqual(Self.choice("", Self.fields), "scan")
        try expectEqual(Self.choice("order __name__ desc", Self.fields), "scan")
        try expectEqual(Self.choice("where __name__ == ref(c/x)", Self.fields), "scan")
        try expectEqual(Self.choice("where a == 1 or __name__ > ref(c/x)", Self.fields), "scan")
        let unknown = try StatisticsSource(documents: 10_000, entries: Self.fields, isKnown: false)
        try expectEqual(Self.choice("where a == 1", unknown), "scan")
    }

    @Test
    func `Counting reads no documents where the entries say it all`() throws {
        for condition in ["a == 1", "a > 1"] {
            let choice = try Self.choice("where \(condition); count", Self.fields)
            expectEqual(choice, "IndexOnly\n└─ IndexScan (a ASC, __name__ ASC): \(condition); exact; counts only")
        }
        try expectEqual(
            Self.choice("where a > 1 and b == 1; count", Self.fields),
            "Fetch\n└─ IndexScan (b ASC, __name__ ASC): b == 1")
        try expectEqual(
            Self.choice("where a == 1; count; sum b", Self.fields), "Fetch\n└─ IndexScan (a ASC, __name__ ASC): a == 1")
    }
}
