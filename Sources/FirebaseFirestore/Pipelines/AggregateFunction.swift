// Totals over documents.

/// A total over documents. Immutable and thread-safe.
public class AggregateFunction: @unchecked Sendable {
    let call: NodeCall

    /// A function by the name that requests have, for those that this library has no method for.
    public init(functionName: String, args: [any Expression]) {
        call = NodeCall(name: functionName, arguments: args.map(\.node))
    }

    init(_ name: String, _ arguments: [PipelineNode]) { call = NodeCall(name: name, arguments: arguments) }

    /// The total with the name that results have.
    public func `as`(_ name: String) -> AliasedAggregate { AliasedAggregate(named: NamedNode(name, .call(call))) }
}

/// The number of documents.
public final class CountAll: AggregateFunction, @unchecked Sendable {
    /// The number of documents.
    public init() { super.init("count", []) }
}

/// A total with a name.
public struct AliasedAggregate: Sendable {
    let named: NamedNode
}

extension Expression {
    private func total(_ name: String) -> AggregateFunction { AggregateFunction(name, [node]) }

    /// The sum of the numbers.
    public func sum() -> AggregateFunction { total("sum") }

    /// The mean of the numbers.
    public func average() -> AggregateFunction { total("average") }

    /// The least value.
    public func minimum() -> AggregateFunction { total("minimum") }

    /// The greatest value.
    public func maximum() -> AggregateFunction { total("maximum") }

    /// How many documents have a value that is not null.
    public func count() -> AggregateFunction { total("count") }

    /// The number of different values.
    public func countDistinct() -> AggregateFunction { total("count_distinct") }

    /// The value of the first document.
    public func first() -> AggregateFunction { total("first") }

    /// The value of the last document.
    public func last() -> AggregateFunction { total("last") }

    /// All values.
    public func arrayAgg() -> AggregateFunction { total("array_agg") }

    /// All different values.
    public func arrayAggDistinct() -> AggregateFunction { total("array_agg_distinct") }
}
