// A pipeline that says what a query says returns the same documents in the same order, whether its head is given to the
// planner or not.

import Basics
import DocumentModel
import FirestoreMessages
import QueryEngine
import ServiceTestSupport
import StoreTestSupport
import TestSupport
import Testing

/// The conditions of queries as those of pipelines.
private enum QueryTranslation {
    static let never = Expression.call("equal", 1, 2)

    static func condition(_ filter: Filter) throws -> Expression {
        switch filter {
        case .and(let parts): .call("and", try parts.map(condition))
        case .or(let parts): .call("or", try parts.map(condition))
        case .unary(let path, let operation): unary(.field(path.description), operation)
        case .field(let path, let operation, let operand):
            try comparison(.field(path.description), operation, try Value(wire: operand.span))
        }
    }

    private static func unary(_ field: Expression, _ operation: UnaryOperator) -> Expression {
        switch operation {
        case .isNull: .call("equal", field, nil)
        case .isNaN: .call("equal", field, .value(.double(.nan)))
        case .isNotNull: .call("and", isPresent(field))
        case .isNotNaN: .call("and", isPresent(field) + [.call("not_equal", field, .value(.double(.nan)))])
        }
    }

    /// A query leaves out null where it compares for being different.
    private static func isPresent(_ field: Expression) -> [Expression] {
        [.call("exists", field), .call("not_equal", field, nil)]
    }

    private static func isNullOrNaN(_ value: Value) -> Bool {
        if case .double(let number) = value { number.isNaN } else { value == .null }
    }

    private static let names: [FieldOperator: String] = [
        .lessThan: "less_than", .lessThanOrEqual: "less_than_or_equal", .greaterThan: "greater_than",
        .greaterThanOrEqual: "greater_than_or_equal", .equal: "equal", .arrayContains: "array_contains",
        .isIn: "equal_any", .arrayContainsAny: "array_contains_any",
    ]

    private static func comparison(
        _ field: Expression, _ operation: FieldOperator, _ operand: Value
    ) throws -> Expression {
        switch operation {
        case .notEqual: return .call("and", isPresent(field) + [.call("not_equal", field, .value(operand))])
        case .notIn:
            guard case .array(let members) = operand, !members.contains(.null) else { return never }
            return .call("and", isPresent(field) + [.call("not_equal_any", field, list(members))])
        case .isIn, .arrayContainsAny:
            guard case .array(let members) = operand else { return never }
            let usable = members.filter { !isNullOrNaN($0) }
            return usable.isEmpty ? never : call(operation, field, list(usable))
        case .arrayContains: return isNullOrNaN(operand) ? never : call(operation, field, .value(operand))
        case .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
            return isNullOrNaN(operand) ? never : call(operation, field, .value(operand))
        case .equal: return call(operation, field, .value(operand))
        }
    }

    private static func call(_ operation: FieldOperator, _ field: Expression, _ operand: Expression) -> Expression {
        .call(names[operation] ?? "", field, operand)
    }

    private static func list(_ members: [Value]) -> Expression { .list(members.map { .value($0) }) }

    /// Whether a filter compares names: their values are checked by other rules.
    static func comparesNames(_ filter: Filter) -> Bool {
        switch filter {
        case .and(let parts), .or(let parts): parts.contains(where: comparesNames)
        case .field(let path, _, _), .unary(let path, _): path.isDocumentName
        }
    }
}

@Suite(.timeLimit(.minutes(20)))
struct QueryAgreementTests {
    /// The stages after the source that say what a query says.
    private func stages(_ query: StructuredQuery, _ order: EffectiveOrder, isOrdered: Bool) throws -> [Stage] {
        var stages: [Stage] = []
        if let filter = query.filter { stages.append(.where(try QueryTranslation.condition(filter))) }
        let fields = order.components.filter { !$0.field.isDocumentName }
            .map { Expression.call("exists", .field($0.field.description)) }
        if !fields.isEmpty { stages.append(.where(.call("and", fields))) }
        if isOrdered {
            stages.append(
                .sort(order.components.map { (.field($0.field.description), $0.direction == .descending) }))
            if query.offset > 0 { stages.append(.offset(Int64(query.offset))) }
            if let limit = query.limit { stages.append(.limit(Int64(limit))) }
        }
        return stages
    }

    private func paths(_ harness: Harness, _ query: StructuredQuery) throws -> [String] {
        try harness.messages(
            .runQuery, RunQueryRequest(parent: Harness.root, query: query), as: RunQueryResponse.self
        ).compactMap { $0.document?.name.split(separator: "/").dropFirst(5).joined(separator: "/") }
    }

    @Test(arguments: 0..<12 as Range<UInt64>)
    func `Random queries and the pipelines that say the same return the same documents`(seed: UInt64) throws {
        let harness = try Harness()
        var queries = RandomQueries(seed: 1_000 + seed)
        let documents = queries.documents()
        for document in documents {
            var writes = try harness.emptyWrites()
            // Some have references that cannot be written.
            let isWritable: Void? = Harness.name(document.path).withUTF8Span {
                try? writes.update($0, fields: document.fields.documentBytes.byteSpan)
            }
            if isWritable != nil { try harness.commit(writes) }
        }
        var compared = 0
        for _ in 0..<120 {
            var (query, parent) = queries.query()
            guard parent.isEmpty, let selector = query.from.first, !selector.collectionID.isEmpty,
                !(query.filter.map(QueryTranslation.comparesNames) ?? false)
            else { continue }
            (query.startAt, query.endAt, query.select) = (nil, nil, nil)
            let order = try Harness.root.withUTF8Span { try QueryPlan(query, parent: $0).order }
            let source =
                selector.allDescendants
                ? Stage(
                    "collection_group", [.value(.reference("")), .value(.string(selector.collectionID))])
                : Stage.collection(selector.collectionID)
            let expected = try paths(harness, query)
            let same = try harness.execute(
                structuredPipeline([source] + stages(query, order, isOrdered: true)))
            expectEqual(same.paths.map { $0 ?? "" }, expected, "\(query)")
            // A stage that changes nothing keeps the rest from the planner.
            let unplanned = try harness.execute(
                structuredPipeline(
                    [source, Stage("remove_fields", [.field("no_such")])] + stages(query, order, isOrdered: true)))
            expectEqual(unplanned.paths.map { $0 ?? "" }, expected, "\(query)")
            (query.offset, query.limit) = (0, nil)
            let all = Set(try paths(harness, query))
            let unordered = try harness.execute(structuredPipeline([source] + stages(query, order, isOrdered: false)))
            expect(Set(unordered.paths.map { $0 ?? "" }) == all && unordered.paths.count == all.count, "\(query)")
            let some = try harness.execute(
                structuredPipeline([source] + stages(query, order, isOrdered: false) + [.limit(2)]))
            expect(
                some.paths.count == min(2, all.count) && some.paths.allSatisfy { all.contains($0 ?? "") }, "\(query)")
            compared += 1
        }
        expect(compared > 30)
    }

    @Test
    func `Totals of a pipeline are those of an aggregation query`() throws {
        let harness = try Harness()
        var writes = try harness.emptyWrites()
        for index in 0..<50 {
            let value: Value = index % 7 == 0 ? .string("x") : index % 3 == 0 ? .double(Double(index) / 4) : .integer(3)
            try Harness.name("c/\(index)").withUTF8Span {
                try writes.update($0, fields: Harness.fields(["n": value]).byteSpan)
            }
        }
        try harness.commit(writes)
        let path = try FieldPath("n")
        let query = StructuredAggregationQuery(
            query: StructuredQuery(from: [CollectionSelector(collectionID: "c")]),
            aggregations: [
                Aggregation(.count(upTo: nil), alias: "a"), Aggregation(.sum(path), alias: "b"),
                Aggregation(.average(path), alias: "c"),
            ])
        let totals = try harness.messages(
            .runAggregationQuery, RunAggregationQueryRequest(parent: Harness.root, query: query),
            as: RunAggregationQueryResponse.self)[0].totals
        let row = try harness.execute(
            .collection("c"),
            .aggregate([
                ("a", .call("count", [])), ("b", .call("sum", .field("n"))), ("c", .call("average", .field("n"))),
            ])
        ).rows[0]
        for total in totals {
            let value = try Value(wire: total.value.span)
            expectEqual(row[total.alias].map { ValueOrder.equal($0, value) }, true, "\(total.alias)")
        }
    }
}
