// Values of which a query determines only a part.

internal import Expressions

/// A value that differs between the documents that a query can return.
///
/// An operation on it has a result only if the result is the same for all of these documents. Otherwise it throws
/// ``Expressions/ExpressionError/unproven``, which is an error like any other: `||` and `&&` may absorb it, and what
/// does
/// not depend on it stays provable. Since no expression turns an error into a value, what is proven true is true for
/// each document.
protocol UnprovenValue: LanguageValue {
    /// `value.name`.
    func member(_ name: String) throws(ExpressionError) -> Operand
    /// Equality, by one of the equalities of the language.
    func equals(_ other: Operand, _ mode: RulesEquality.Mode) throws(ExpressionError) -> Bool
    /// `element in value`.
    func contains(_ element: Operand) throws(ExpressionError) -> Bool
    /// `value < other` and so on.
    func isOrdered(_ operation: BinaryOperator, to other: Operand) throws(ExpressionError) -> Bool
    /// `value is TYPE`.
    func isOfType(_ type: RulesType) throws(ExpressionError) -> Bool
}

extension UnprovenValue {
    var operandTypes: OperandTypes { .constraint }

    func member(_ name: String) throws(ExpressionError) -> Operand { throw .unproven }
    func equals(_ other: Operand, _ mode: RulesEquality.Mode) throws(ExpressionError) -> Bool { throw .unproven }
    func contains(_ element: Operand) throws(ExpressionError) -> Bool { throw .unproven }
    func isOrdered(_ operation: BinaryOperator, to other: Operand) throws(ExpressionError) -> Bool { throw .unproven }
    func isOfType(_ type: RulesType) throws(ExpressionError) -> Bool { throw .unproven }

    /// Whether the value equals an element of a list: true if it is proven for one, false if it is refuted for all.
    func isEqual(toOneOf elements: [Operand], _ mode: RulesEquality.Mode) throws(ExpressionError) -> Bool {
        var failure: ExpressionError?
        for element in elements {
            do {
                if try equals(element, mode) { return true }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return false
    }
}

extension Operand {
    /// The operand as a value that differs between documents, if it is one.
    var unproven: (any UnprovenValue)? {
        guard case .object(let object) = self, object.operandTypes == .constraint else { return nil }
        return object as? any UnprovenValue
    }
}

/// A list literal with elements that differ between documents: `[resource.data.owner, 'admin']`.
final class UnprovenList: UnprovenValue {
    let elements: [Operand]

    init(_ elements: [Operand]) { self.elements = elements }

    func contains(_ element: Operand) throws(ExpressionError) -> Bool {
        var failure: ExpressionError?
        for candidate in elements {
            do {
                if try isEqual(candidate, element) { return true }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return false
    }

    private func isEqual(_ left: Operand, _ right: Operand) throws(ExpressionError) -> Bool {
        if let unproven = left.unproven { return try unproven.equals(right, .contained) }
        if let unproven = right.unproven { return try unproven.equals(left, .contained) }
        return RulesEquality.equal(left, right, .contained)
    }

    func isOfType(_ type: RulesType) throws(ExpressionError) -> Bool { type == .list }
}
