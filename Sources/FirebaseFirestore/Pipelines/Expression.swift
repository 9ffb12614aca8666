// Expressions of pipelines: fields, constants, functions.

public import DocumentCoding

/// A value that a pipeline computes for each document. Made of ``Field``, ``Constant`` and the functions on them. Types
/// of programs do not conform.
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

    /// The expression with a name.
    public func `as`(_ name: String) -> AliasedExpression { AliasedExpression(named: NamedNode(name, node)) }

    /// The expression as a condition. A pipeline fails if its value is neither true, false nor null.
    public func asBoolean() -> any BooleanExpression { NodeCondition(expressionNode: node) }

    /// From small to large.
    public func ascending() -> Ordering { Ordering(expression: self, direction: .ascending) }

    /// From large to small.
    public func descending() -> Ordering { Ordering(expression: self, direction: .descending) }

    // The arguments are optional so that an array is one of them. Otherwise the compiler takes it for all arguments.

    /// A function of the server on this expression and other arguments, of which the last one may be left out.
    func function(
        _ name: String, _ arguments: (any Sendable)?..., optional last: (any Sendable)? = nil
    ) -> FunctionExpression {
        FunctionExpression(name, [node] + (last == nil ? arguments : arguments + [last]).map { PipelineNode($0) })
    }

    /// A function of the server on this expression and several arguments.
    func function(_ name: String, list arguments: [any Sendable]) -> FunctionExpression {
        FunctionExpression(name, [node] + arguments.map { PipelineNode($0) })
    }

    /// A function of the server on this expression and other arguments that is true or false.
    func condition(_ name: String, _ arguments: (any Sendable)?...) -> any BooleanExpression {
        NodeCondition(name, [node] + arguments.map { PipelineNode($0) })
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

/// A condition.
struct NodeCondition: BooleanExpression, NodeExpression {
    let expressionNode: PipelineNode
}

extension NodeCondition {
    init(_ name: String, _ arguments: [PipelineNode]) {
        self.init(expressionNode: .call(NodeCall(name: name, arguments: arguments)))
    }
}

/// A field of the documents.
public struct Field: Expression, NodeExpression, Selectable, NodeSelectable {
    /// The path, with dots between its names. Those that are not identifiers are in backticks: ``a.`level 1` ``.
    public let fieldName: String

    /// A field by its path: `"title"`, `"address.city"`.
    public init(_ name: String) { self.init(.ofDotted(name)) }

    /// A field by its path.
    public init(_ path: DocumentCoding.FieldPath) {
        fieldName =
            path.isDocumentID ? "__name__" : enforcing { () throws(RuleViolation) in try path.model().description }
    }

    var expressionNode: PipelineNode { .field(fieldName) }
    var named: NamedNode { NamedNode(fieldName, .field(fieldName)) }

    /// The distance to a place, in metres.
    public func geoDistance(_ location: GeoPoint) -> any Expression { function("geo_distance", location) }
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

/// An expression with a name.
public struct AliasedExpression: Selectable, NodeSelectable {
    let named: NamedNode
}

/// What documents are sorted by.
public struct Ordering: Sendable {
    /// The value that decides.
    public let expression: any Expression
    /// Whether small values come first.
    public let direction: Direction

    var node: PipelineNode {
        .map([NamedNode("direction", .value(direction.rawValue)), NamedNode("expression", expression.node)])
    }
}

/// Whether small or large values come first.
public struct Direction: Sendable, Hashable {
    /// `"ascending"` or `"descending"`.
    public let rawValue: String

    static let ascending = Direction(rawValue: "ascending")
    static let descending = Direction(rawValue: "descending")
}

/// How far vectors are from each other.
public struct DistanceMeasure: Sendable, Hashable {
    let name: String

    /// The Euclidean distance.
    public static let euclidean = DistanceMeasure(name: "euclidean")
    /// The cosine distance.
    public static let cosine = DistanceMeasure(name: "cosine")
    /// The dot product.
    public static let dotProduct = DistanceMeasure(name: "dot_product")
}
