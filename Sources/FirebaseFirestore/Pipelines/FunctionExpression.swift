// Functions of the server. They are classes as in the SDK, so that programs can name their types.

/// A function of the server. Immutable and thread-safe.
public class FunctionExpression: Expression, NodeExpression, @unchecked Sendable {
    let expressionNode: PipelineNode

    /// A function by the name that requests have, for those that this library has no method for.
    ///
    /// - Parameter options: values or expressions.
    public init(functionName: String, args: [any Expression], options: [String: any Sendable]? = nil) {
        expressionNode = .call(
            NodeCall(name: functionName, arguments: args.map(\.node), options: NamedNode.list(options ?? [:])))
    }

    init(_ name: String, _ arguments: [PipelineNode]) {
        expressionNode = .call(NodeCall(name: name, arguments: arguments))
    }
}

/// An array of values and expressions.
public final class ArrayExpression: FunctionExpression, @unchecked Sendable {
    /// An array of values and expressions.
    public init(_ elements: [any Sendable]) { super.init("array", elements.map { PipelineNode($0) }) }
}

/// A map of values and expressions.
public final class MapExpression: FunctionExpression, @unchecked Sendable {
    /// A map of values and expressions.
    public init(_ elements: [String: any Sendable]) { super.init("map", PipelineNode.entries(elements)) }
}

/// One of two values.
public final class ConditionalExpression: FunctionExpression, @unchecked Sendable {
    /// One value if the condition is true, else another.
    public init(
        _ expression: any BooleanExpression, then thenExpression: any Expression, else elseExpression: any Expression
    ) {
        super.init("conditional", [expression.node, thenExpression.node, elseExpression.node])
    }
}

/// The time at which the pipeline reads.
public final class CurrentTimestamp: FunctionExpression, @unchecked Sendable {
    /// The time at which the pipeline reads.
    public init() { super.init("current_timestamp", []) }
}

/// A failure.
public final class ErrorExpression: FunctionExpression, @unchecked Sendable {
    /// An expression that fails with a text.
    public init(_ errorMessage: String) { super.init("error", [.value(errorMessage)]) }
}

/// A random number, from 0 up to 1.
public final class RandomExpression: FunctionExpression, @unchecked Sendable {
    /// A random number, from 0 up to 1.
    public init() { super.init("rand", []) }
}

/// A random number, from 0 up to 1.
public func rand() -> RandomExpression { RandomExpression() }

/// The value of the first condition that is true.
///
/// - Parameter others: further conditions, each with its value after it; a last one without a value is the value if no
///   condition is true. Without that one the expression fails then.
public func switchOn(
    _ condition: any BooleanExpression, _ result: any Expression, _ others: any Expression...
) -> any Expression {
    FunctionExpression("switch_on", [condition.node, result.node] + others.map(\.node))
}

/// The score of a document in the stage `search`.
public struct Score: Expression, NodeExpression {
    /// The score of a document.
    public init() {}

    var expressionNode: PipelineNode { .call(NodeCall(name: "score")) }
}
