// Random rules and queries over random documents: a query that is allowed returns no document that its rule refuses.

import DocumentModel
import StoreTestSupport
import TestSupport
import Testing

@testable import SecurityRules

/// Random conditions on the fields of random queries, with values that meet those of filters.
struct RandomConditions {
    var queries: RandomQueries
    /// Values that occur in the filter.
    var values: [Value] = []

    static let fields = ["a", "b", "m.x", "m.y", "t"]

    private mutating func pick<Element>(_ elements: [Element]) -> Element { queries.random.generator.pick(elements) }

    /// The text of a value in the rules language; nil if it has none.
    static func literal(_ value: Value) -> String? {
        switch value {
        case .null: return "null"
        case .boolean(let value): return "\(value)"
        case .integer(let value): return "\(value)"
        case .double(let value):
            if value.isNaN { return "(0.0/ 0.0)" }
            let text = "\(value)"
            return text.contains("e") || value.isInfinite ? nil : text
        case .string(let text):
            let units = text.utf16.map { unit in
                let digits = String(unit, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
            return "'\(units.joined())'"
        case .array(let elements):
            let texts = elements.compactMap(literal)
            return texts.count == elements.count ? "[\(texts.joined(separator: ", "))]" : nil
        case .map(let map):
            let texts = map.entries.compactMap { entry in literal(entry.value).map { "'\(entry.key)': \($0)" } }
            return texts.count == map.count ? "{\(texts.joined(separator: ", "))}" : nil
        default: return nil
        }
    }

    /// A literal, more often than not of a value of the filter or of a number beside it.
    private mutating func literal() -> String {
        if !values.isEmpty, !queries.random.generator.oneIn(3) {
            let value = pick(values)
            if case .integer(let number) = value, queries.random.generator.oneIn(3) {
                return Self.literal(.integer(number &+ pick([-1, 1]))) ?? "0"
            }
            if let text = Self.literal(value) { return text }
        }
        return Self.literal(queries.value()) ?? "1"
    }

    mutating func condition(_ depth: Int) -> String {
        if depth > 0, !queries.random.generator.oneIn(3) {
            let (left, right) = (condition(depth - 1), condition(depth - 1))
            switch queries.random.generator.below(7) {
            case 0: return "!(\(left))"
            case 1: return "(\(left) ? \(right) : \(condition(depth - 1)))"
            case 2, 3: return "(\(left) && \(right))"
            default: return "(\(left) || \(right))"
            }
        }
        let field = "resource.data.\(pick(Self.fields))"
        let name = pick(["a", "b", "m", "t", "x"])
        switch queries.random.generator.below(16) {
        case 0, 1, 2: return "\(field) == \(literal())"
        case 3: return "\(literal()) != \(field)"
        case 4, 5, 6: return "\(field) \(pick(["<", "<=", ">", ">="])) \(literal())"
        case 7: return "\(literal()) \(pick(["<", "<=", ">", ">="])) \(field)"
        case 8: return "\(field) in [\(literal()), \(literal())]"
        case 9: return "\(literal()) in \(field)"
        case 10: return "\(field).\(pick(["hasAny", "hasAll", "hasOnly"]))([\(literal()), \(literal())])"
        case 11:
            return
                "\(field) is \(pick(["int", "float", "number", "string", "list", "map", "bool", "timestamp", "path"]))"
        case 12: return "'\(name)' in resource.data"
        case 13: return "resource.data.get('\(name)', \(literal())) == \(literal())"
        case 14: return "\(literal()) in [\(field), resource.data.\(pick(Self.fields))]"
        default: return "\(field) \(pick(["+", "-", "*"])) 1 \(pick(["==", "<", ">="])) \(literal())"
        }
    }
}

@Suite(.timeLimit(.minutes(20)))
struct SoundnessTests {
    /// The operands of a filter.
    private static func values(of filter: Filter) -> [Value] {
        switch filter {
        case .and(let parts), .or(let parts): return parts.flatMap(values)
        case .unary: return []
        case .field(_, _, let operand):
            guard let value = try? Value(wire: operand.span) else { return [] }
            if case .array(let elements) = value { return [value] + elements }
            return [value]
        }
    }

    /// Other spellings of a value, which queries do not tell apart.
    private static func respelled(_ value: Value, _ random: inout RandomDocuments) -> Value {
        switch value {
        case .integer(let number): random.generator.oneIn(2) ? .double(Double(number)) : value
        case .double(let number) where number == 0: random.generator.pick([.double(-0.0), .double(0), .integer(0)])
        case .double(let number): Int64(exactly: number).map { .integer($0) } ?? value
        case .array(let elements): .array(elements.map { respelled($0, &random) })
        default: value
        }
    }

    /// Random fields, of which some have values of the filter.
    private static func fields(_ queries: inout RandomQueries, _ values: [Value]) -> MapValue {
        func value(_ queries: inout RandomQueries) -> Value {
            if values.isEmpty || queries.random.generator.oneIn(3) { return queries.value() }
            let value = respelled(queries.random.generator.pick(values), &queries.random)
            return queries.random.generator.oneIn(4) ? .array([value]) : value
        }
        var fields: MapValue = [:]
        for name in ["a", "b", "t"] where !queries.random.generator.oneIn(5) { fields[name] = value(&queries) }
        if !queries.random.generator.oneIn(5) {
            fields["m"] =
                queries.random.generator.oneIn(5)
                ? value(&queries) : .map(["x": value(&queries), "y": value(&queries)])
        }
        return fields
    }

    @Test
    func `A query that is allowed returns no document that the rule refuses`() throws {
        var (allowed, returned) = (0, 0)
        let seeds = CaseShare.of(0..<40_000, 5_000)
        for seed in seeds {
            var queries = RandomQueries(seed: UInt64(seed))
            let filter = queries.filter(namesOnly: false)
            let values = Self.values(of: filter)
            var conditions = RandomConditions(queries: queries, values: values)
            let condition = conditions.condition(2)
            guard let ruleset = try? Ruleset(rules(condition)) else {
                Issue.record("seed \(seed): \(condition) is not valid")
                continue
            }
            var query = StructuredQuery(from: [CollectionSelector(collectionID: "a")])
            query.filter = filter
            guard ruleset.judge(request(.list, path: ["a"], query: query)).isAllowed else { continue }
            allowed += 1
            for _ in 0..<100 {
                let fields = Self.fields(&queries, values)
                guard NaiveQuery.holds(filter, TestDocument(path: "a/x", fields: fields)) else { continue }
                returned += 1
                let verdict = ruleset.judge(request(resource: fields))
                expect(verdict.isAllowed, "seed \(seed): \(condition)\n\(filter)\n\(fields)")
            }
        }
        // The test is about something.
        expect(allowed > seeds.count / 50 && returned > seeds.count / 10, "\(allowed) queries, \(returned) documents")
    }
}
