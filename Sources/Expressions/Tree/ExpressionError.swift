// Why an expression has no value.

/// The failure of an expression.
package struct ExpressionError: Error, Sendable {
    /// What a failure means for the expressions around it.
    package enum Kind: Sendable {
        /// The operation cannot be done on these operands. Logic operators may absorb it.
        case failed
        /// The operation needs something that the caller has not supplied yet. Logic operators may absorb it; if the
        /// result depends on it, the caller supplies it and evaluates again.
        case pending
        /// The evaluation has used up its budget. Nothing absorbs it.
        case exhausted
    }

    package let kind: Kind
    /// For people: what was found and what was expected.
    package let message: String
    /// The innermost expression that failed, if it is known.
    package var expression: ExpressionID?

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    package static func failed(_ message: String) -> ExpressionError { ExpressionError(.failed, message) }
    package static func exhausted(_ message: String) -> ExpressionError { ExpressionError(.exhausted, message) }
}
