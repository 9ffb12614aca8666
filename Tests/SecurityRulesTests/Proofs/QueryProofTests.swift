// What can be proven of a query, and what cannot.

import DocumentModel
import Expressions
import TestSupport
import Testing

@testable import SecurityRules

@Suite(.timeLimit(.minutes(20)))
struct QueryProofTests {
    /// A filter from a text: `n > 1`, `s in ["a"]`, joined by ` and ` or by ` or `.
    private func query(_ text: String) throws -> StructuredQuery {
        let separator = text.contains(" or ") ? " or " : " and "
        let parts = try text.split(separator: separator).map { part in
            try RulesTestFile("allow list a where \(part)").cases[0].request.query?.filter
        }
        let filters = parts.compactMap { $0 }
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "a")])
        if !filters.isEmpty { query.filter = separator == " or " ? .or(filters) : .and(filters) }
        return query
    }

    /// A query of thousands of cases with rules of a thousand expressions would take seconds.
    @Test func `The cases of all alternatives of a query share a limit of work`() throws {
        // Zero has three spellings, so each alternative has 243 cases.
        let zeros = try #require(try query("a == 0 and b == 0 and c == 0 and d == 0 and e == 0").filter)
        let numbers = Array(repeating: "1", count: 100).joined(separator: ", ")
        let reads = ["a", "b", "c", "d", "e"].map { "resource.data.\($0) == 0" }.joined(separator: " && ")
        let ruleset = try Ruleset(rules("\(reads) && [\(numbers)].size() == 100"))
        func verdict(_ alternatives: Int) -> Verdict {
            var query = StructuredQuery(from: [CollectionSelector(collectionID: "a")])
            query.filter = .or(Array(repeating: zeros, count: alternatives))
            return ruleset.judge(request(.list, path: ["a"], query: query))
        }
        expect(verdict(1).isAllowed)
        expect(!verdict(20).isAllowed)
        expect(verdict(20).work < 2 * RulesLimits.proofWork)
    }

    /// Each zero has three spellings.
    @Test(arguments: [("true", 1), ("resource.data.f7 == 0", 3), ("resource.data.f2 == resource.data.f1", 9)])
    func `Spellings of numbers that no rule reads make no cases`(condition: String, cases: Int) throws {
        let filter = (0..<40).map { "f\($0) == 0" }.joined(separator: " and ")
        let ruleset = try Ruleset(rules(condition))
        let texts = "f1 == \"a\" and f2 == \"a\" and f7 == \"a\""
        let one = ruleset.judge(request(.list, path: ["a"], query: try query(texts)))
        let verdict = ruleset.judge(request(.list, path: ["a"], query: try query(filter)))
        expect(verdict.isAllowed)
        expectEqual(verdict.work / one.work, cases)
    }

    private func isAllowed(_ filter: String, _ condition: String) throws -> Bool {
        try Ruleset(rules(condition)).judge(request(.list, path: ["a"], query: try query(filter))).isAllowed
    }

    @Test(arguments: [
        ("s == \"a\"", "resource.data.s == 'a'"), ("s == \"a\"", "'a' == resource.data['s']"),
        ("s == \"a\"", "resource.data.s.size() == 1 && resource.data.s.matches('[a-c]')"),
        ("s == \"a\"", "'s' in resource.data && resource.data.get('s', 'b') == 'a'"),
        ("s == \"alice\"", "resource.data.s == request.auth.uid"),
        ("s == \"alice\"", "request.auth.uid in [resource.data.s, 'bob']"),
        ("s >= \"a\" and s <= \"a\"", "resource.data.s == 'a'"), ("n >= 1 and n <= 1", "resource.data.n == 1"),
        ("n == 1", "resource.data.n + 1 == 2 && resource.data.n is number"), ("n > 1", "resource.data.n > 0"),
        ("n > 1", "resource.data.n >= 1 && resource.data.n != 1 && !(resource.data.n < 1)"),
        ("n >= 1 and n < 5", "resource.data.n > 0 && resource.data.n <= 5"), ("n > 1", "0 < resource.data.n"),
        ("n > 1", "resource.data.n != null && resource.data.n is number && !(resource.data.n is string)"),
        ("s in [\"a\", \"b\"]", "resource.data.s in ['a', 'b', 'c']"), ("n in [1, 2]", "resource.data.n < 3"),
        ("n == 1 or n == 2", "resource.data.n == 1 || resource.data.n == 2"),
        ("n == 1 or s == \"a\"", "resource.data.n == 1 || resource.data.s == 'a'"),
        ("n != 5", "resource.data.n != 5 && resource.data.n != null"),
        ("n not-in [1, 2]", "!(resource.data.n in [1, 2])"),
        ("t array-contains \"a\"", "'a' in resource.data.t && resource.data.t is list"),
        ("t array-contains \"a\"", "resource.data.t.hasAny(['z', 'a']) && resource.data.t.hasAll(['a'])"),
        ("t array-contains-any [\"a\", \"b\"]", "resource.data.t.hasAny(['a', 'b'])"),
        ("m.x == \"a\"", "resource.data.m.x == 'a' && resource.data.m is map && 'x' in resource.data.m"),
        ("s > \"a\"", "resource.data.s is string && resource.data.s >= 'a'"), ("b == true", "resource.data.b"),
        ("s == \"a\"", "resource.data.s == 'a' || resource.data.zz == 1"), ("s == \"a\"", "resource != null"),
        ("s == \"a\"", "request.query.limit == null && request.method == 'list'"),
        ("s == \"a\"", "exists(/databases/$(database)/documents/b/$(resource.data.s))"),
        // Alternatives that the rest of the filter contradicts have no documents.
        ("b in [true, false] and b == true", "resource.data.b == true"),
        ("n in [1, 2, 7] and n < 3", "resource.data.n < 3"), ("n in [1, 2] and n != 1", "resource.data.n == 2"),
        ("n in [1, 2] and n not-in [1, 5]", "resource.data.n == 2"),
        ("n in [0, 1] and n == 0.0", "resource.data.n == 0"),
        ("n in [1, \"a\"] and n > 0", "resource.data.n is number"),
        ("m in [1, 2] and m.x == 1 and s == \"a\"", "true"), ("s > \"b\" and s < \"a\"", "true"),
        ("m in [1, null] and m == 1", "resource.data.m == 1"),
    ])
    func `Provable`(filter: String, condition: String) throws {
        let ruleset = try Ruleset(rules(condition))
        let request = request(.list, path: ["a"], query: try query(filter))
        let verdict = ruleset.judge(request, ["b/a": [:]])
        expect(verdict.isAllowed, "\(ruleset.explanation(of: verdict))")
    }

    @Test(arguments: [
        ("s == \"b\"", "resource.data.s == 'a'"), ("s == \"a\"", "resource.data.t == 'a'"),
        // A document may have the integer or the double.
        ("n == 1", "resource.data.n is int"), ("n == 0", "resource.data.n/ 1 is float"),
        ("n > 1", "resource.data.n >= 2"), ("n > 1", "resource.data.n is int"), ("n > 1", "resource.data.n == 2"),
        ("n > 1", "resource.data.n < 5"), ("n > 1", "resource.data.n + 1 > 1"),
        ("n > 1", "resource.data.n == resource.data.n"),
        ("n in [1, 7]", "resource.data.n in [1, 2]"), ("n == 1 or s == \"a\"", "resource.data.n == 1"),
        ("n != 5", "resource.data.n != 6"), ("n != 5", "resource.data.n is number"),
        // The strict equality of lists distinguishes 1 from 1.0, and the query does not.
        ("t array-contains 1", "1 in resource.data.t"), ("n in [1, 2]", "resource.data.n in [1, 2]"),
        ("t array-contains \"a\"", "resource.data.t == ['a']"),
        ("t array-contains \"a\"", "resource.data.t.hasOnly(['a'])"),
        ("t array-contains-any [\"a\", \"b\"]", "'a' in resource.data.t"),
        // What a query says nothing about may be there or not.
        ("s == \"a\"", "!('n' in resource.data)"), ("s == \"a\"", "resource.data.get('n', 5) == 5"),
        ("s == \"a\"", "resource.data.keys() == ['s']"), ("s == \"a\"", "resource.data.size() > 0"),
        ("s == \"a\"", "id == 'x'"), ("s == \"a\"", "resource.id == 'x' || resource.__name__ == /a"),
        ("s == \"a\"", "resource == null"), ("n > 1", "resource.data.n > 'a'"),
        ("n > 1", "[resource.data.n].toSet().size() == 1"),
        ("n > 1", "{'a': resource.data.n} == {'a': 2}"), ("m.x == 1", "resource.data.m == {'x': 1}"),
        // Where the order of strings by UTF-8 differs from that by UTF-16.
        ("s > \"\u{FFFF}\"", "resource.data.s > '\u{FFFF}'"), ("s < \"😀\"", "resource.data.s < '😀'"),
        ("s == \"a\"", "resource.data.s.size() == 2 || request.query.limit == 1"),
        // Contradictions leave out what they contradict, and nothing else.
        ("b in [true, false] and b == true", "resource.data.b == false"),
        ("b in [true, false] and n == 1", "resource.data.b == true"),
        ("n in [1, 2] and n >= 1", "resource.data.n == 2"), ("n in [1, 2] and n <= 2", "resource.data.n == 1"),
        ("n in [0, 1] and n == 0", "resource.data.n is int"), ("n in [1, 2] and n != 2.5", "resource.data.n == 1"),
        ("n not-in [1, 2] and n in [1, 3, 4]", "resource.data.n == 3"),
        // A query of which nothing is left is judged by what it says.
        ("b == true and b == false", "resource.data.b == resource.data.n"),
    ])
    func `Not provable`(filter: String, condition: String) throws {
        try expect(!isAllowed(filter, condition))
    }

    @Test
    func `Negations of what is not provable are not provable either`() throws {
        for condition in [
            "'s' in resource.data", "resource.data.n == 2", "resource.data.n < 5", "id == 'x'",
            "resource.data.t.hasAny(['a'])",
        ] {
            try expect(!isAllowed("n > 1", condition) && !isAllowed("n > 1", "!(\(condition))"), "\(condition)")
        }
    }

    @Test
    func `Tests of null and of not-a-number`() throws {
        func allowed(_ operation: DocumentModel.UnaryOperator, _ condition: String) throws -> Bool {
            var query = StructuredQuery(from: [CollectionSelector(collectionID: "a")])
            query.filter = .unary(try FieldPath("n"), operation)
            return try Ruleset(rules(condition)).judge(request(.list, path: ["a"], query: query)).isAllowed
        }
        try expect(allowed(.isNull, "resource.data.n == null"))
        try expect(allowed(.isNotNull, "resource.data.n != null"))
        try expect(allowed(.isNaN, "math.isNaN(resource.data.n) && resource.data.n is float"))
        try expect(allowed(.isNotNaN, "resource.data.n != null"))
        try expect(!allowed(.isNotNaN, "resource.data.n is number"))
    }

    @Test
    func `A field to sort by exists`() throws {
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "a")], limit: 5)
        query.orderBy = [Order(field: try FieldPath("n"), direction: .descending)]
        let ruleset = try Ruleset(
            rules("'n' in resource.data && request.query.orderBy.n == 'DESC' && request.query.limit == 5"))
        expect(ruleset.judge(request(.list, path: ["a"], query: query)).isAllowed)
        let other = try Ruleset(rules("resource.data.n != null"))
        expect(!other.judge(request(.list, path: ["a"], query: query)).isAllowed)
    }

    @Test
    func `Names and times that contradict each other are left out`() throws {
        func name(_ id: String) -> Value { .reference("projects/p/databases/(default)/documents/a/\(id)") }
        func isAllowed(_ filters: [Filter], _ condition: String) throws -> Bool {
            var query = StructuredQuery(from: [CollectionSelector(collectionID: "a")])
            query.filter = .and(filters)
            let documents: [String: MapValue] = ["a/x": ["n": 1], "a/y": ["n": 2]]
            return try Ruleset(rules(condition)).judge(request(.list, path: ["a"], query: query), documents).isAllowed
        }
        let names = Filter.field(.documentName, .isIn, EncodedValue(.array([name("x"), name("y")])))
        let one = Filter.field(.documentName, .equal, EncodedValue(name("x")))
        try expect(isAllowed([names, one], "resource.data.n == 1"))
        try expect(!isAllowed([names, one], "resource.data.n == 2"))
        func time(_ nanoseconds: Int32) -> Value {
            .timestamp(TimestampValue(seconds: 1_700_000_000, nanoseconds: nanoseconds))
        }
        let path = try FieldPath("t")
        let times = Filter.field(path, .isIn, EncodedValue(.array([time(1_000), time(2_000)])))
        let first = "resource.data.t.nanos() == 1000"
        try expect(isAllowed([times, .field(path, .equal, EncodedValue(time(1_000)))], first))
        try expect(!isAllowed([times, .field(path, .lessThan, EncodedValue(time(3_000)))], first))
    }

    @Test
    func `A query that names its document reads it, and has the values of wildcards`() throws {
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "a")])
        query.filter = .field(
            .documentName, .isIn,
            EncodedValue(.array(["x", "y"].map { .reference("projects/p/databases/(default)/documents/a/\($0)") })))
        let listed = request(.list, path: ["a"], query: query)
        let documents: [String: MapValue] = ["a/x": ["n": 1], "a/y": ["n": 2]]
        try expect(Ruleset(rules("id in ['x', 'y'] && resource.id == id")).judge(listed, documents).isAllowed)
        try expect(Ruleset(rules("resource.data.n > 0")).judge(listed, documents).isAllowed)
        try expect(!Ruleset(rules("resource.data.n > 1")).judge(listed, documents).isAllowed)
        try expect(!Ruleset(rules("resource.data.n > 0")).judge(listed, ["a/x": ["n": 1]]).isAllowed)
        let verdict = try Ruleset(rules("resource.data.n > 0")).judge(listed, documents)
        expectEqual(verdict.reads.count, 2)
    }

    @Test
    func `A group needs a rule for every depth`() throws {
        func isAllowed(_ pattern: String, group: Bool, _ condition: String = "true", version: Int = 2) throws -> Bool {
            let text = """
                rules_version = '\(version)';
                service cloud.firestore { match /databases/{database}/documents {
                  match \(pattern) { allow list: if \(condition); }
                } }
                """
            let query = StructuredQuery(from: [CollectionSelector(collectionID: "a", allDescendants: group)])
            return try Ruleset(text).judge(request(.list, path: ["a"], query: query)).isAllowed
        }
        try expect(isAllowed("/{path=**}/a/{id}", group: true))
        try expect(isAllowed("/{path=**}/a/{id}", group: false))
        try expect(isAllowed("/{path=**}", group: true, version: 1))
        try expect(!isAllowed("/a/{id}", group: true))
        try expect(isAllowed("/a/{id}", group: false))
        try expect(!isAllowed("/{path=**}/b/{id}", group: true))
        try expect(!isAllowed("/{b}/{c}/a/{id}", group: true))
        try expect(!isAllowed("/{path=**}/a/{id}", group: true, "path == /b"))
        try expect(isAllowed("/{path=**}/a/{id}", group: true, "path is path && id is string"))
    }

    @Test
    func `Filters with very many cases are denied in bounded time`() throws {
        let part = Filter.field(try FieldPath("n"), .isIn, EncodedValue(.array((0..<30).map { .integer($0) })))
        let parts = try (0..<4).map { index in
            Filter.field(try FieldPath("f\(index)"), .isIn, EncodedValue(.array((0..<30).map { .integer($0) })))
        }
        var query = StructuredQuery(from: [CollectionSelector(collectionID: "a")])
        query.filter = part
        try expect(Ruleset(rules("resource.data.n >= 0")).judge(request(.list, path: ["a"], query: query)).isAllowed)
        query.filter = .and(parts)
        try expect(!Ruleset(rules("true")).judge(request(.list, path: ["a"], query: query)).isAllowed)
    }
}
