// What an evaluation may cost.

/// The limits of one evaluation, counted down while it runs.
package struct EvaluationBudget: Sendable {
    /// Expressions that may still be evaluated.
    package var expressions: Int
    /// Bytes that may still be read, compared, searched or built. Work that costs more than a copy counts several
    /// times.
    package var workBytes: Int
    /// Bytes of operands that may still be made.
    package var memoryBytes: Int

    package init(expressions: Int, workBytes: Int = 32 << 20, memoryBytes: Int = 32 << 20) {
        self.expressions = expressions
        self.workBytes = workBytes
        self.memoryBytes = memoryBytes
    }
}
