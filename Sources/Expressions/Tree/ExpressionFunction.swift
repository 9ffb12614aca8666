// Functions that languages provide to their expressions.

/// The implementation of a function of one operand.
package typealias UnaryFunction =
    @Sendable (Evaluation, Operand) throws(ExpressionError) -> Operand
/// The implementation of a function of two operands.
package typealias BinaryFunction =
    @Sendable (Evaluation, Operand, Operand) throws(ExpressionError) -> Operand
/// The implementation of a function of any number of operands, whose number and types were checked.
package typealias FunctionBody =
    @Sendable (Evaluation, [Operand]) throws(ExpressionError) -> Operand

/// The implementation of a form: it evaluates those of its operands that it needs, and may absorb their failures.
package typealias FormBody =
    @Sendable (Evaluation, [ExpressionID]) throws(ExpressionError) -> Operand

/// A function with a name and a body for each combination of operand types.
package final class ExpressionFunction: Sendable {
    /// One signature with its implementation.
    package struct Overload: Sendable {
        /// The types that each operand may have.
        package let parameters: [OperandTypes]
        package let body: FunctionBody

        package init(_ parameters: [OperandTypes], _ body: @escaping FunctionBody) {
            self.parameters = parameters
            self.body = body
        }

        /// Whether operands fit the signature.
        func accepts(_ operands: [Operand]) -> Bool {
            guard operands.count == parameters.count else { return false }
            for index in operands.indices where parameters[index].isDisjoint(with: operands[index].types) {
                return false
            }
            return true
        }
    }

    /// Makes the error for operands that fit no signature.
    package typealias Mismatch = @Sendable (_ function: ExpressionFunction, _ operands: [Operand]) -> ExpressionError

    package let name: String
    package let overloads: [Overload]
    private let mismatch: Mismatch

    package init(_ name: String, _ overloads: [Overload], mismatch: @escaping Mismatch) {
        self.name = name
        self.overloads = overloads
        self.mismatch = mismatch
    }

    /// Calls the body of the first signature that the operands fit.
    package func call(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        for overload in overloads where overload.accepts(operands) {
            return try overload.body(evaluation, operands)
        }
        throw mismatch(self, operands)
    }
}

/// The functions of a language by their names.
package struct FunctionTable: Sendable {
    private let functions: [String: ExpressionFunction]

    /// Takes functions with distinct names.
    package init(_ functions: [ExpressionFunction]) {
        self.functions = Dictionary(uniqueKeysWithValues: functions.map { ($0.name, $0) })
    }

    package subscript(name: String) -> ExpressionFunction? { functions[name] }

    /// The names, sorted.
    package var names: [String] { functions.keys.sorted() }
}
