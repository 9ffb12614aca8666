// Pipelines that say what queries say.
//
//     whereField("n", isGreaterThan: 1).order(by: "n").limit(to: 3)     becomes
//     where(n > 1) | where(exists(n)) | sort(n, __name__) | limit(3)

import Basics
import DocumentModel

extension PipelineSource {
    /// A pipeline with the results of a query, in the query's order. Further stages may follow.
    ///
    /// As in the SDK, the conditions `isNotEqualTo` and `notIn` are those of pipelines: documents without the field,
    /// and with null, satisfy them. Queries leave those out.
    public func create(from query: Query) -> Pipeline {
        let definition = query.definition
        enforcing { () throws(RuleViolation) in try QueryRules.checkExecutable(definition) }
        let source =
            definition.isGroup
            ? collectionGroup(definition.collectionID)
            : collection(definition.collectionSegments.joined(separator: "/"))
        return Pipeline(firestore: firestore, stages: source.stages + QueryStages(definition).stages)
    }
}

/// The stages after the source that have the results of a query.
private struct QueryStages {
    private let query: QueryDescription

    init(_ query: QueryDescription) { self.query = query }

    var stages: [NodeCall] {
        var stages = query.filters.map { stage("where", [Self.condition($0)]) }
        // A query leaves out documents without the fields that it sorts by.
        let sorted = query.orders.filter { !$0.field.isDocumentName }
        stages += sorted.map { stage("where", [Self.call("exists", [Self.node($0.field)])]) }
        if let start = query.startAt { stages.append(stage("where", [within(start, isStart: true)])) }
        if let end = query.endAt { stages.append(stage("where", [within(end, isStart: false)])) }
        let orders = query.effectiveOrders
        guard let limit = query.limit else { return stages + [sort(orders)] }
        let bound = stage("limit", [.value(Int64(limit.count))])
        guard limit.side == .last else { return stages + [sort(orders), bound] }
        return stages + [sort(orders.map(\.reversed)), bound, sort(orders)]
    }

    private func stage(_ name: String, _ arguments: [PipelineNode]) -> NodeCall {
        NodeCall(name: name, arguments: arguments)
    }

    private func sort(_ orders: [DocumentModel.Order]) -> NodeCall {
        stage(
            "sort",
            orders.map { order in
                let direction = order.direction == .ascending ? "ascending" : "descending"
                return .map([
                    NamedNode("direction", .value(direction)), NamedNode("expression", Self.node(order.field)),
                ])
            })
    }

    private static func call(_ name: String, _ arguments: [PipelineNode]) -> PipelineNode {
        .call(NodeCall(name: name, arguments: arguments))
    }

    private static func node(_ field: DocumentModel.FieldPath) -> PipelineNode { .field(field.description) }

    // MARK: Filters

    private static func condition(_ filter: DocumentModel.Filter) -> PipelineNode {
        switch filter {
        case .and(let parts): call("and", parts.map(condition))
        case .or(let parts): call("or", parts.map(condition))
        case .unary(let path, let test): condition(node(path), test)
        case .field(let path, let operation, let operand): condition(node(path), operation, operand)
        }
    }

    private static func condition(_ field: PipelineNode, _ test: UnaryOperator) -> PipelineNode {
        switch test {
        case .isNull: call("equal", [field, .value(nil)])
        case .isNaN: call("equal", [field, .value(Double.nan)])
        case .isNotNull: call("not_equal", [field, .value(nil)])
        case .isNotNaN: call("not_equal", [field, .value(Double.nan)])
        }
    }

    private static let never = call("equal", [.value(Int64(0)), .value(Int64(1))])

    private static let functions: [FieldOperator: String] = [
        .lessThan: "less_than", .lessThanOrEqual: "less_than_or_equal", .greaterThan: "greater_than",
        .greaterThanOrEqual: "greater_than_or_equal", .equal: "equal", .arrayContains: "array_contains",
        .isIn: "equal_any", .arrayContainsAny: "array_contains_any", .notEqual: "not_equal", .notIn: "not_equal_any",
    ]

    private static func condition(
        _ field: PipelineNode, _ operation: FieldOperator, _ operand: EncodedValue
    ) -> PipelineNode {
        guard let name = functions[operation] else { return never }
        var operand = PipelineNode.encoded(operand.bytes)
        switch operation {
        case .isIn, .arrayContainsAny:
            // Null and NaN in a list match nothing.
            let members = elements(operand).filter { !isNull($0) && !isNaN($0) }
            if members.isEmpty { return never }
            operand = .list(members.map { .encoded($0.wireBytes) })
        case .equal, .notEqual, .notIn: break
        default:
            let value = value(operand)
            if isNull(value) || isNaN(value) { return never }
        }
        return call(name, [field, operand])
    }

    private static func value(_ node: PipelineNode) -> Value {
        guard case .encoded(let bytes) = node else { return .null }
        return (try? Value(wire: bytes.byteSpan)) ?? .null
    }

    private static func elements(_ node: PipelineNode) -> [Value] {
        if case .array(let elements) = value(node) { elements } else { [] }
    }

    private static func isNull(_ value: Value) -> Bool {
        if case .null = value { true } else { false }
    }

    private static func isNaN(_ value: Value) -> Bool {
        if case .double(let number) = value { number.isNaN } else { false }
    }

    // MARK: Cursors

    /// Whether a document lies on the wanted side of a cursor. The first field with another value than the cursor's
    /// decides.
    private func within(_ cursor: DocumentModel.Cursor, isStart: Bool) -> PipelineNode {
        var cases: [PipelineNode] = []
        var equal: [PipelineNode] = []
        for (order, operand) in zip(query.effectiveOrders, cursor.values) {
            let (field, value) = (Self.node(order.field), PipelineNode.encoded(operand.bytes))
            let isAfter = (order.direction == .ascending) == isStart
            cases.append(Self.all(equal + [Self.differs(field, from: value, isAfter: isAfter)]))
            equal.append(Self.call("equal", [field, value]))
        }
        // A start before the values and an end after them include the document that has them.
        if cursor.before == isStart { cases.append(Self.all(equal)) }
        return cases.count == 1 ? cases[0] : Self.call("or", cases)
    }

    private static func all(_ conditions: [PipelineNode]) -> PipelineNode {
        conditions.count == 1 ? conditions[0] : call("and", conditions)
    }

    /// Whether a field lies after or before a value in the order of all values, of which null is the first.
    private static func differs(_ field: PipelineNode, from value: PipelineNode, isAfter: Bool) -> PipelineNode {
        let isNull = isNull(self.value(value))
        if isNull { return isAfter ? call("not_equal", [field, value]) : never }
        let comparison = call("equal", [call("cmp", [field, value]), .value(Int64(isAfter ? 1 : -1))])
        return isAfter ? comparison : call("or", [call("equal", [field, .value(nil)]), comparison])
    }
}
