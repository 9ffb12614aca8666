// Random databases and random legal queries over them, made so that queries meet documents: few fields, few values.

package import DocumentModel
package import TestSupport

package struct RandomQueries {
    package var random: RandomDocuments

    package init(seed: UInt64) {
        random = RandomDocuments(seed: seed)
        random.database = testDatabase
    }

    /// Values and ids too long for a key are among them.
    package var isLong = false

    package static let longText = String(repeating: "long ", count: 44)
    package static let longIDs = ["a", "b", "c"].map { String(repeating: "i", count: 220) + $0 }

    /// The last one leads into vectors, which have no fields, and into maps.
    package static let fields = ["a", "b", "m.x", "m.y", "t", "a.value"].map { try! FieldPath($0) }

    /// A value that is likely to occur again.
    package mutating func value() -> Value {
        if isLong, random.generator.oneIn(3) {
            let text = Self.longText + random.generator.pick(["", "a", "b", "c", "d"])
            return random.generator.oneIn(4) ? .array([.string(text), scalar()]) : .string(text)
        }
        return switch random.generator.below(12) {
        case 0: .null
        case 1: .double(.nan)
        case 2: .integer(Int64(random.generator.below(4)))
        case 3: .double(Double(random.generator.below(4)))
        case 4: .double(-0.0)
        case 5: .string(random.generator.pick(["", "x", "é", "xx"]))
        case 6: .array((0..<random.generator.below(3)).map { _ in scalar() })
        case 7: .map(["x": scalar()])
        case 8: .vector([1, Double(random.generator.below(2))])
        case 9: .boolean(random.generator.oneIn(2))
        case 10: .integer(random.generator.pick([1 << 53, 1 << 53 + 1]))
        default: random.value(depth: 1)
        }
    }

    package mutating func scalar() -> Value {
        switch random.generator.below(5) {
        case 0: .null
        case 1: .double(.nan)
        case 2: .string(random.generator.pick(["x", "y"]))
        case 3: .double(Double(random.generator.below(3)))
        default: .integer(Int64(random.generator.below(3)))
        }
    }

    package static let collections = ["c", "d", "c/1/c", "c/1/d", "c/__id5__/c", "c/1/c/2/c", "d/z/c"]
    package static let ids = ["1", "2", "10", "__id5__", "__id-3__", "a", "b", "é", "z", "a\u{0}"]

    /// A database of documents with distinct paths.
    package mutating func documents() -> [TestDocument] {
        var paths: Set<String> = []
        for _ in 0..<random.generator.below(40) {
            let ids = isLong && random.generator.oneIn(4) ? Self.longIDs : Self.ids
            paths.insert("\(random.generator.pick(Self.collections))/\(random.generator.pick(ids))")
        }
        return paths.sorted().map { path in
            var fields = MapValue()
            for name in ["a", "b", "t"] where !random.generator.oneIn(4) { fields[name] = value() }
            if !random.generator.oneIn(3) {
                var map = MapValue()
                for name in ["x", "y"] where !random.generator.oneIn(3) { map[name] = value() }
                fields["m"] = .map(map)
            }
            return TestDocument(
                path: path, fields: fields, createMicroseconds: UInt64(random.generator.below(1000)),
                updateMicroseconds: UInt64(random.generator.below(1000)))
        }
    }

    package mutating func name() -> Value {
        switch random.generator.below(8) {
        case 0, 1: .reference("\(testRoot)/c/1")
        case 2: .reference("\(testRoot)/c/__id-9223372036854775808__")
        case 3: .reference("\(testRoot)/\(random.generator.pick(Self.collections))\u{0}/__id-9223372036854775808__")
        case 4 where isLong:
            .reference("\(testRoot)/\(random.generator.pick(Self.collections))/\(random.generator.pick(Self.longIDs))")
        default:
            .reference("\(testRoot)/\(random.generator.pick(Self.collections))/\(random.generator.pick(Self.ids))")
        }
    }

    /// A condition; exclusions are given out once, as the rules ask.
    package mutating func condition(_ exclusions: inout Int, namesOnly: Bool) -> Filter {
        let range: [FieldOperator] = [.lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual]
        if namesOnly || random.generator.oneIn(8) {
            switch random.generator.below(5) {
            case 0: return .field(.documentName, .equal, EncodedValue(name()))
            case 1: return .field(.documentName, .isIn, EncodedValue(.array([name(), name()])))
            default: return .field(.documentName, random.generator.pick(range), EncodedValue(name()))
            }
        }
        let path = random.generator.pick(Self.fields)
        switch random.generator.below(10) {
        case 0: return .unary(path, random.generator.pick([.isNull, .isNaN]))
        case 1 where exclusions > 0:
            exclusions -= 1
            return .unary(path, random.generator.pick([.isNotNull, .isNotNaN]))
        case 2 where exclusions > 0:
            exclusions -= 1
            return .field(path, .notEqual, EncodedValue(value()))
        case 3: return .field(path, .isIn, EncodedValue(.array([value(), value()])))
        case 4, 5:
            return .field(path, random.generator.pick(range), EncodedValue(value()))
        default: return .field(path, .equal, EncodedValue(value()))
        }
    }

    package mutating func filter(namesOnly: Bool) -> Filter {
        if !namesOnly, random.generator.oneIn(2) { return nestedFilter() }
        var exclusions = 1
        // Lists that the rules allow once in a disjunction come alone.
        if !namesOnly, random.generator.oneIn(6) {
            let path = random.generator.pick(Self.fields)
            let operand = Value.array((0..<1 + random.generator.below(3)).map { _ in value() })
            switch random.generator.below(3) {
            case 0: return .field(path, .notIn, EncodedValue(operand))
            case 1: return .field(path, .arrayContainsAny, EncodedValue(operand))
            default: return .field(path, .arrayContains, EncodedValue(scalar()))
            }
        }
        switch random.generator.below(4) {
        case 0: return condition(&exclusions, namesOnly: namesOnly)
        case 1:
            return .and([condition(&exclusions, namesOnly: namesOnly), condition(&exclusions, namesOnly: namesOnly)])
        case 2:
            return .or([condition(&exclusions, namesOnly: namesOnly), condition(&exclusions, namesOnly: namesOnly)])
        default:
            return .and([
                condition(&exclusions, namesOnly: namesOnly),
                .or([
                    condition(&exclusions, namesOnly: namesOnly),
                    .and([
                        condition(&exclusions, namesOnly: namesOnly), condition(&exclusions, namesOnly: namesOnly),
                    ]),
                ]),
            ])
        }
    }

    /// A filter of up to three levels, in which lists and conditions on elements stand beside others.
    private mutating func nestedFilter() -> Filter {
        while true {
            var (exclusions, contains, mayHaveLists) = (1, 1, true)
            if random.generator.oneIn(3) { mayHaveLists = false }
            let filter = nestedFilter(3, &exclusions, &contains, mayHaveLists)
            if Self.disjunctions(filter) <= 30, Self.conditions(filter) <= 90 { return filter }
        }
    }

    private mutating func nestedFilter(
        _ levels: Int, _ exclusions: inout Int, _ contains: inout Int, _ mayHaveLists: Bool
    ) -> Filter {
        if levels == 0 || random.generator.oneIn(4) {
            let path = random.generator.pick(Self.fields)
            switch random.generator.below(6) {
            case 0 where contains > 0:
                contains -= 1
                return .field(path, .arrayContains, EncodedValue(scalar()))
            case 1 where contains > 0 && mayHaveLists:
                contains -= 1
                return .field(path, .arrayContainsAny, EncodedValue(.array([scalar(), scalar(), value()])))
            case 2 where exclusions > 0 && !mayHaveLists:
                exclusions -= 1
                return .field(path, .notIn, EncodedValue(.array([value(), value()])))
            default:
                while true {
                    let condition = condition(&exclusions, namesOnly: false)
                    if case .field(_, .isIn, _) = condition, !mayHaveLists { continue }
                    return condition
                }
            }
        }
        let parts = (0..<1 + random.generator.below(3)).map { _ in
            nestedFilter(levels - 1, &exclusions, &contains, mayHaveLists)
        }
        return random.generator.oneIn(2) ? .and(parts) : .or(parts)
    }

    private static func disjunctions(_ filter: Filter) -> Int {
        switch filter {
        case .and(let parts): parts.reduce(1) { $0 * disjunctions($1) }
        case .or(let parts): parts.reduce(0) { $0 + disjunctions($1) }
        case .field(_, .isIn, _): 2
        case .field(_, .arrayContainsAny, _): 3
        default: 1
        }
    }

    /// Conditions of the disjunctive normal form.
    private static func conditions(_ filter: Filter) -> Int {
        switch filter {
        case .and(let parts):
            parts.reduce((1, 0)) { both, part in
                (both.0 * disjunctions(part), both.1 * disjunctions(part) + conditions(part) * both.0)
            }.1
        case .or(let parts): parts.reduce(0) { $0 + conditions($1) }
        default: disjunctions(filter)
        }
    }

    /// A legal query and the document (or root, empty) that it starts from.
    package mutating func query() -> (query: StructuredQuery, parent: String) {
        let parent = random.generator.oneIn(4) ? random.generator.pick(["c/1", "d/z", "c/__id5__"]) : ""
        let isGroup = random.generator.oneIn(3)
        let isKindless = random.generator.oneIn(isGroup ? 3 : 8)
        let namesOnly = isKindless || (isGroup && !parent.isEmpty)
        var query = StructuredQuery(
            from: [
                CollectionSelector(
                    collectionID: isKindless ? "" : random.generator.pick(["c", "d"]), allDescendants: isGroup)
            ])
        if isKindless, !isGroup, random.generator.oneIn(2) { query.from = [] }
        if !random.generator.oneIn(4) { query.filter = filter(namesOnly: namesOnly) }
        if namesOnly {
            if random.generator.oneIn(2) { query.orderBy = [Order(field: .documentName)] }
        } else {
            for path in Self.fields.shuffled(using: &random.generator).prefix(random.generator.below(3)) {
                query.orderBy.append(
                    Order(field: path, direction: random.generator.oneIn(2) ? .ascending : .descending))
            }
            // Nothing may follow the name, implied orders included.
            if random.generator.oneIn(4), NaiveQuery.effectiveOrder(query).count == query.orderBy.count + 1 {
                query.orderBy.append(
                    Order(field: .documentName, direction: random.generator.oneIn(2) ? .ascending : .descending))
            }
        }
        // Cursors have values for written orders only.
        if random.generator.oneIn(2) { query.orderBy = NaiveQuery.effectiveOrder(query) }
        if random.generator.oneIn(3) { query.startAt = cursor(query.orderBy) }
        if random.generator.oneIn(3) { query.endAt = cursor(query.orderBy) }
        if random.generator.oneIn(4) { query.offset = Int32(random.generator.below(4)) }
        if random.generator.oneIn(3) { query.limit = Int32(random.generator.below(6)) }
        if random.generator.oneIn(4) {
            query.select = Projection(
                fields: [.documentName]
                    + Self.fields.shuffled(using: &random.generator).prefix(random.generator.below(3)))
        }
        return (query, parent)
    }

    private mutating func cursor(_ order: [Order]) -> Cursor {
        let count = random.generator.oneIn(12) ? 0 : min(order.count, 1 + random.generator.below(max(1, order.count)))
        let values = order.prefix(count).map { EncodedValue($0.field.isDocumentName ? name() : value()) }
        return Cursor(values: values, before: random.generator.oneIn(2))
    }
}
