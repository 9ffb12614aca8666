// Expressions of pipelines: fields, constants, functions.

public import DocumentCoding

/// A value that a pipeline computes for each document. Made of ``Field``, ``Constant`` and the functions on them.
public protocol Expression: Sendable {}

/// An expression that is true or false.
public protocol BooleanExpression: Expression {}

/// An expression with a name, for stages that take fields.
public protocol Selectable: Sendable {}

/// What expressions of this library are made of.
protocol NodeExpression: Expression {
    var expressionNode: PipelineNode { get }
}

/// What selectable expressions of this library are made of.
protocol NodeSelectable: Selectable {
    var named: NamedNode { get }
}

extension Expression {
    var node: PipelineNode {
        guard let expression = self as? any NodeExpression else {
            programmingError("\(Swift.type(of: self)) is not an expression of this library.")
        }
        return expression.expressionNode
    }
}

extension Selectable {
    var namedNode: NamedNode {
        guard let expression = self as? any NodeSelectable else {
            programmingError("\(Swift.type(of: self)) is not an expression of this library.")
        }
        return expression.named
    }
}

/// A field of the documents.
public struct Field: Expression, NodeExpression, Selectable, NodeSelectable {
    /// The path, with dots between its names.
    public let fieldName: String

    /// A field by its path: `"title"`, `"address.city"`.
    public init(_ name: String) { fieldName = name }

    /// A field by its path.
    public init(_ path: DocumentCoding.FieldPath) {
        fieldName =
            path.isDocumentID ? "__name__" : enforcing { () throws(RuleViolation) in try path.model().description }
    }

    var expressionNode: PipelineNode { .field(fieldName) }
    var named: NamedNode { NamedNode(fieldName, .field(fieldName)) }
}

/// A value that is the same for all documents.
public struct Constant: Expression, NodeExpression {
    let expressionNode: PipelineNode

    /// Null.
    public static let `nil` = Constant(optional: nil)

    /// A value that documents can have: a number, a string, a `Timestamp`, a `VectorValue` and so on.
    public init(_ value: any Sendable) { self.init(optional: value) }

    private init(optional value: (any Sendable)?) { expressionNode = .value(value) }
}

/// A variable: of ``Pipeline/define(_:)``, or the element of an array.
public struct Variable: Expression, NodeExpression {
    let expressionNode: PipelineNode

    /// A variable by its name.
    public init(_ name: String) { expressionNode = .variable(name) }
}

/// The fields of the present document, as a map.
public struct CurrentDocument: Expression, NodeExpression {
    /// The present document.
    public init() {}

    var expressionNode: PipelineNode { .call(NodeCall(name: "current_document")) }
}

/// An array of values and expressions.
public struct ArrayExpression: Expression, NodeExpression {
    let expressionNode: PipelineNode

    /// An array of values and expressions.
    public init(_ elements: [any Sendable]) {
        expressionNode = .call(NodeCall(name: "array", arguments: elements.map { PipelineNode($0) }))
    }
}

/// A map of values and expressions.
public struct MapExpression: Expression, NodeExpression {
    let expressionNode: PipelineNode

    /// A map of values and expressions.
    public init(_ elements: [String: any Sendable]) {
        let entries = elements.sorted { $0.key < $1.key }
        expressionNode = .call(
            NodeCall(name: "map", arguments: entries.flatMap { [.value($0.key), PipelineNode($0.value)] }))
    }
}

/// A function of the server.
public struct FunctionExpression: Expression, NodeExpression {
    let expressionNode: PipelineNode

    /// A function by the name that requests have, for those that this library has no method for.
    public init(functionName: String, args: [any Expression]) {
        expressionNode = .call(NodeCall(name: functionName, arguments: args.map(\.node)))
    }

    init(_ name: String, _ arguments: [PipelineNode]) {
        expressionNode = .call(NodeCall(name: name, arguments: arguments))
    }
}

/// A function of the server that is true or false.
public struct BooleanFunctionExpression: BooleanExpression, NodeExpression {
    let expressionNode: PipelineNode

    /// A function by the name that requests have, for those that this library has no method for.
    public init(functionName: String, args: [any Expression]) {
        expressionNode = .call(NodeCall(name: functionName, arguments: args.map(\.node)))
    }

    init(_ name: String, _ arguments: [PipelineNode]) {
        expressionNode = .call(NodeCall(name: name, arguments: arguments))
    }
}

/// An expression with a name.
public struct AliasedExpression: Selectable, NodeSelectable {
    let named: NamedNode
}

/// A total over documents.
public struct AggregateFunction: Sendable {
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
public struct CountAll: Sendable {
    /// The number of documents.
    public init() {}

    /// The number with the name that results have.
    public func `as`(_ name: String) -> AliasedAggregate {
        AliasedAggregate(named: NamedNode(name, .call(NodeCall(name: "count"))))
    }
}

/// A total with a name.
public struct AliasedAggregate: Sendable {
    let named: NamedNode
}

/// What documents are sorted by.
public struct Ordering: Sendable {
    let node: PipelineNode

    init(_ expression: PipelineNode, _ direction: String) {
        node = .map([NamedNode("direction", .value(direction)), NamedNode("expression", expression)])
    }
}

/// How far vectors are from each other.
public enum DistanceMeasure: String, Sendable {
    case euclidean
    case cosine
    case dotProduct = "dot_product"
}

/// A length of time.
public enum TimeUnit: String, Sendable {
    case microsecond, millisecond, second, minute, hour, day
}
