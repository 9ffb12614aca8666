// How often each expression had which outcome.

/// Counts the outcomes of the expressions of one tree. Used by one thread at a time.
package final class ExpressionCoverage {
    /// What became of an expression.
    package enum Outcome: Sendable {
        case value(Operand)
        /// The message of the failure.
        case failed(String)
    }

    /// An outcome and how often it occurred.
    package struct Count: Sendable {
        package let outcome: Outcome
        package fileprivate(set) var count: Int
    }

    /// Different outcomes of one expression that are kept; further ones are counted with the last.
    package static let outcomesMax = 10

    private var counts: [[Count]]

    /// - Parameter count: the number of nodes of the tree.
    package init(expressions count: Int) {
        counts = Array(repeating: [], count: count)
    }

    /// The outcomes of an expression, the first one first.
    package func outcomes(of id: ExpressionID) -> [Count] { counts[Int(id.index)] }

    /// How often an expression was evaluated.
    package func evaluations(of id: ExpressionID) -> Int { outcomes(of: id).reduce(0) { $0 + $1.count } }

    func record(_ id: ExpressionID, _ outcome: Outcome) {
        let index = Int(id.index)
        if let known = counts[index].firstIndex(where: { Self.isSame($0.outcome, outcome) }) {
            counts[index][known].count += 1
        } else if counts[index].count < Self.outcomesMax {
            counts[index].append(Count(outcome: outcome, count: 1))
        } else {
            counts[index][Self.outcomesMax - 1].count += 1
        }
    }

    /// Whether two outcomes are counted together. Lists, maps and the values of languages are, by their type.
    private static func isSame(_ left: Outcome, _ right: Outcome) -> Bool {
        switch (left, right) {
        case (.failed(let left), .failed(let right)): left == right
        case (.value(let left), .value(let right)):
            switch (left, right) {
            case (.boolean(let left), .boolean(let right)): left == right
            case (.integer(let left), .integer(let right)): left == right
            case (.double(let left), .double(let right)): left.bitPattern == right.bitPattern
            case (.string(let left), .string(let right)): left == right
            default: left.types == right.types && left.types.isDisjoint(with: [.boolean, .number, .string])
            }
        default: false
        }
    }
}
