// Conditions that are made of conditions.

/// Whether both are true.
public func && (
    left: any BooleanExpression, right: @autoclosure () throws -> any BooleanExpression
) rethrows -> any BooleanExpression {
    NodeCondition("and", [left.node, try right().node])
}

/// Whether one of them is true.
public func || (
    left: any BooleanExpression, right: @autoclosure () throws -> any BooleanExpression
) rethrows -> any BooleanExpression {
    NodeCondition("or", [left.node, try right().node])
}

/// Whether one of them is true, and the other is not.
public func ^ (
    left: any BooleanExpression, right: @autoclosure () throws -> any BooleanExpression
) rethrows -> any BooleanExpression {
    NodeCondition("xor", [left.node, try right().node])
}

/// Whether a condition is not true.
public prefix func ! (condition: any BooleanExpression) -> any BooleanExpression {
    NodeCondition("not", [condition.node])
}

/// Whether no condition is true.
public func nor(
    _ condition: any BooleanExpression, _ conditions: any BooleanExpression...
) -> any BooleanExpression {
    nor([condition] + conditions)
}

/// Whether no condition is true.
public func nor(_ conditions: [any BooleanExpression]) -> any BooleanExpression {
    NodeCondition("nor", conditions.map(\.node))
}

extension BooleanExpression {
    /// How many documents the condition is true on.
    public func countIf() -> AggregateFunction { AggregateFunction("count_if", [node]) }
}

/// Whether a document has the words of a text query, in the stage `search`.
public struct DocumentMatches: BooleanExpression, NodeExpression {
    let expressionNode: PipelineNode

    /// A condition by its text query: `"red foxes -house"`.
    public init(_ query: String) {
        expressionNode = .call(NodeCall(name: "document_matches", arguments: [.value(query)]))
    }
}
