// Compiled expressions.

/// The place of a node in its ``ExpressionTree``.
package struct ExpressionID: Hashable, Sendable {
    package let index: Int32

    init(_ index: Int) { self.index = Int32(index) }
}

/// The nodes of all expressions of one program: of a set of rules, of a pipeline.
///
/// A node refers to other nodes by their places, so that a tree is one array, and that counters and positions are
/// arrays beside it. Made once, then read by any number of evaluations at the same time.
package struct ExpressionTree: Sendable {
    package private(set) var nodes: [ExpressionNode] = []

    package init() {}

    package var count: Int { nodes.count }

    /// Appends a node; its operands are in the tree already.
    package mutating func append(_ node: ExpressionNode) -> ExpressionID {
        precondition(nodes.count < Int32.max, "a tree has too many nodes")
        nodes.append(node)
        return ExpressionID(nodes.count - 1)
    }

    /// Replaces a node that was appended before what it refers to was known.
    package mutating func replace(_ id: ExpressionID, with node: ExpressionNode) {
        nodes[Int(id.index)] = node
    }

    package subscript(id: ExpressionID) -> ExpressionNode { nodes[Int(id.index)] }

    /// Every place in the tree.
    package var ids: some Sequence<ExpressionID> { nodes.indices.lazy.map { ExpressionID($0) } }
}

/// One operation of a compiled expression.
package enum ExpressionNode: Sendable {
    case constant(Operand)
    /// One of the operands that the caller supplies, by number: the document, the request.
    case input(Int)
    /// A variable of the innermost frame, by slot.
    case local(Int)
    /// A named part of an operand.
    case member(ExpressionID, String)
    /// A function of one operand.
    case unary(UnaryFunction, ExpressionID)
    /// A function of two operands.
    case binary(BinaryFunction, ExpressionID, ExpressionID)
    /// A function of any number of operands.
    case call(ExpressionFunction, [ExpressionID])
    /// An operation that evaluates those of its operands that it needs, and may take a failure as a result.
    case form(FormBody, [ExpressionID])
    /// True if all operands are. An operand that is false decides, whatever the others are and whether they fail.
    case conjunction([ExpressionID])
    /// True if one operand is. An operand that is true decides, whatever the others are and whether they fail.
    case disjunction([ExpressionID])
    /// The second operand if the first is true, else the third.
    case conditional(ExpressionID, ExpressionID, ExpressionID)
    case list([ExpressionID])
    /// Keys with their values.
    case map([(key: ExpressionID, value: ExpressionID)])
    /// The value of a program's function.
    case invoke(ProgramFunction, [ExpressionID])
    /// Fails with a message: something that the compiler found and that matters only when it is evaluated.
    case failure(String)
}

extension ExpressionNode {
    /// The nodes that the node refers to, in order; the body of a program's function is not one.
    package var operands: [ExpressionID] {
        switch self {
        case .constant, .input, .local, .failure: []
        case .member(let operand, _), .unary(_, let operand): [operand]
        case .binary(_, let left, let right): [left, right]
        case .call(_, let operands), .form(_, let operands), .conjunction(let operands), .disjunction(let operands),
            .list(let operands), .invoke(_, let operands):
            operands
        case .conditional(let condition, let first, let second): [condition, first, second]
        case .map(let entries): entries.flatMap { [$0.key, $0.value] }
        }
    }
}

/// A function that a program declares: parameters, variables, result.
///
/// A frame has a slot for each parameter and each variable. Both are evaluated when they are read for the first time.
package final class ProgramFunction: Sendable {
    package let name: String
    package let parameterCount: Int
    /// The expressions of the variables, in order; they fill the slots after the parameters.
    package let variables: [ExpressionID]
    package let result: ExpressionID

    package init(name: String, parameterCount: Int, variables: [ExpressionID], result: ExpressionID) {
        self.name = name
        self.parameterCount = parameterCount
        self.variables = variables
        self.result = result
    }
}
