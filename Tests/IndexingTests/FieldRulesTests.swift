// Which entries of which fields are kept: the tree of overrides against the rule looked up path by path.

import Basics
import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import Indexing

@Suite(.timeLimit(.minutes(20))) struct FieldRulesTests {
    private static func override(_ path: String?, _ modes: FieldOverride.Modes?) throws -> FieldOverride {
        FieldOverride(collectionID: "c", field: try path.map { try FieldPath($0) }, indexes: modes)
    }

    private static func place(of path: String, in rules: FieldRules) throws -> FieldRules.Place {
        try FieldPath(path).utf8Segments.reduce(FieldRules.root) { rules.field($1.byteSpan, in: $0) }
    }

    /// The drawing in FieldRules.swift.
    private static func drawing() throws -> [FieldOverride] {
        [try override(nil, []), try override("a", .ascending), try override("b.c", [.ascending, .contains])]
    }

    @Test(
        arguments: [
            ("a", EntryKinds.values), ("a.x", .values), ("a.x.y", .values), ("b", []), ("b.d", []), ("b.c", .all),
            ("b.c.d", .all),
            ("other", []), ("c", []), ("other.a", []),
        ] as [(String, EntryKinds)])
    func `The overrides of the drawing hold for a field and what is inside it`(path: String, kept: EntryKinds) throws {
        let rules = FieldRules(try Self.drawing(), previous: [])
        expectEqual(rules.kinds(of: try FieldPath(path), isSettled: true), kept)
        expectEqual(rules.kinds(of: try FieldPath(path), isSettled: false), kept)
        let place = try Self.place(of: path, in: rules)
        expect(rules.puts(place, .write) == kept && rules.removals(place, .write) == kept)
        expect(!rules.changeAnything)
    }

    @Test
    func `A walk stops where nothing is or was kept, and continues above what is kept`() throws {
        let rules = FieldRules(try Self.drawing(), previous: [])
        for (path, hasEntries) in [("a", true), ("b", true), ("b.c", true), ("b.d", false), ("other", false)] {
            expectEqual(rules.hasEntries(try Self.place(of: path, in: rules)), hasEntries, "\(path)")
        }
        expect(rules.hasEntries(FieldRules.root))
        let none = FieldRules([try Self.override(nil, [])], previous: [])
        expect(!none.hasEntries(FieldRules.root))
    }

    @Test
    func `Without overrides every entry is kept`() throws {
        let rules = FieldRules([], previous: [])
        expectEqual(rules.kinds(of: try FieldPath("a.b"), isSettled: true), .all)
        expect(!rules.changeAnything)
    }

    @Test
    func `While overrides are applied each purpose has its own entries`() throws {
        // `a` lost its entries, `b` gained them, `c` keeps its values and gains those of elements.
        let before = [try Self.override("b", []), try Self.override("c", .ascending)]
        let after = [try Self.override("a", [])]
        let rules = FieldRules(after, previous: [before])
        expect(rules.changeAnything)
        let expected: [(String, FieldRules.Purpose, puts: EntryKinds, removals: EntryKinds)] = [
            ("a", .write, [], []), ("a", .writeDuringChange, [], .all), ("a", .removed, [], .all),
            ("a", .added, [], []),
            ("a", .certain, [], []), ("a", .uncertain, .all, []),
            ("b", .write, .all, .all), ("b", .writeDuringChange, .all, .all), ("b", .removed, [], []),
            ("b", .added, .all, []),
            ("b", .certain, [], []), ("b", .uncertain, .all, []),
            ("c", .write, .all, .all), ("c", .writeDuringChange, .all, .all), ("c", .added, .elements, []),
            ("c", .certain, .values, []), ("c", .uncertain, .elements, []), ("c", .removed, [], []),
            ("d", .added, [], []), ("d", .certain, .all, []), ("d", .uncertain, [], []),
        ]
        for (path, purpose, puts, removals) in expected {
            let place = try Self.place(of: path, in: rules)
            expectEqual(rules.puts(place, purpose), puts, "\(path), \(purpose): puts")
            expectEqual(rules.removals(place, purpose), removals, "\(path), \(purpose): removals")
        }
        expectEqual(rules.kinds(of: try FieldPath("b"), isSettled: false), [])
        expectEqual(rules.kinds(of: try FieldPath("c"), isSettled: false), .values)
        expectEqual(rules.kinds(of: try FieldPath("c"), isSettled: true), .all)
    }

    @Test
    func `The tree of very many fields is made without a search in all of them for each`() throws {
        // Each field compared with each other one would be 100,000 million comparisons.
        let count = 200_000
        let before = try (0..<count).map { try Self.override("m\($0 % 10).f\($0)", []) }
        let after = try (0..<count).map { try Self.override("m\($0 % 10).f\($0)", .ascending) }
        let rules = FieldRules(after, previous: [before])
        for number in stride(from: 0, to: count, by: 1_001) {
            let field = try FieldPath("m\(number % 10).f\(number)")
            expectEqual(rules.kinds(of: field, isSettled: true), .values)
            expectEqual(rules.kinds(of: field, isSettled: false), [])
        }
        expectEqual(rules.kinds(of: try FieldPath("m1.other"), isSettled: false), .all)
        expect(rules.changeAnything)
    }

    @Test(arguments: [UInt64.random(in: 0 ... .max), 1, 2, 3])
    func `The tree says what the rule says, path by path`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let names = ["a", "b", "a.a", "a.b", "b.a", "a.b.a", "a.b.c", "b.b.b"]
        let modes: [FieldOverride.Modes] = [[], .ascending, .descending, .contains, [.ascending, .contains]]
        func overrides() throws -> [FieldOverride] {
            try ([nil] + names).filter { _ in random.oneIn(3) }.map { try Self.override($0, random.pick(modes)) }
        }
        for _ in 0..<200 {
            let (wanted, earlier, earliest) = (try overrides(), try overrides(), try overrides())
            let rules = FieldRules(wanted, previous: [earlier, earliest])
            for name in names + ["c", "a.c", "a.b.c.d", "b.b"] {
                let path = try FieldPath(name)
                let kinds = [wanted, earlier, earliest].map {
                    EntryKinds(FieldOverride.modes(of: path.utf8Segments, by: $0))
                }
                let changed = kinds[0].symmetricDifference(kinds[1]).union(kinds[0].symmetricDifference(kinds[2]))
                expectEqual(rules.kinds(of: path, isSettled: true), kinds[0], "seed \(seed): \(name)")
                let certain = kinds[0].subtracting(changed)
                expectEqual(rules.kinds(of: path, isSettled: false), certain, "seed \(seed): \(name)")
                let place = try Self.place(of: name, in: rules)
                // What was there and is not certain is removed by a write amid the change.
                expectEqual(rules.removals(place, .writeDuringChange), kinds[0].union(changed), "seed \(seed): \(name)")
                if !kinds[0].union(changed).isEmpty { expect(rules.hasEntries(place), "seed \(seed): \(name)") }
            }
        }
    }
}
