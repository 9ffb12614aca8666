// A tree of operators as text, for people, logs and tests. The source is at the bottom:
//
//     Project a
//     └─ Limit 10, offset 2
//        └─ TopK 12 by (a ASC, __name__ ASC)
//           └─ Filter a > 5 AND b == "x"
//              └─ CollectionScan users

import DocumentModel

/// An operator's line and the trees of its inputs.
struct PlanTree: Sendable, Equatable {
    var line: String
    var inputs: [PlanTree] = []
    /// Nil unless the operator was measured.
    var figures: OperatorFigures?

    /// Lines from the top down.
    ///
    /// - Parameter depth: of the first one.
    func lines(depth: Int = 0) -> [OperatorLine] {
        [OperatorLine(depth: depth, text: line, figures: figures)] + inputs.flatMap { $0.lines(depth: depth + 1) }
    }
}

extension PlanTree {
    /// Adds the figures of a tree of the same form; one of another form changes nothing.
    mutating func addFigures(of other: PlanTree) {
        if let more = other.figures { figures = (figures ?? OperatorFigures()) + more }
        guard inputs.count == other.inputs.count else { return }
        for input in inputs.indices { inputs[input].addFigures(of: other.inputs[input]) }
    }
}

/// An operator of a plan.
package struct OperatorLine: Sendable, Equatable {
    /// The number of operators above it.
    package let depth: Int
    package let text: String
    /// Nil unless the operator was measured.
    package let figures: OperatorFigures?

    package init(depth: Int, text: String, figures: OperatorFigures? = nil) {
        self.depth = depth
        self.text = text
        self.figures = figures
    }
}

extension [OperatorLine] {
    /// The operators as a tree of text.
    package var tree: String {
        map { line in
            line.depth == 0 ? line.text : String(repeating: "   ", count: line.depth - 1) + "└─ " + line.text
        }.joined(separator: "\n")
    }
}

extension PlanTree: CustomStringConvertible {
    var description: String { lines().tree }
}

extension Order: CustomStringConvertible {
    package var description: String { "\(field) \(direction == .ascending ? "ASC" : "DESC")" }
}

extension FieldSelection: CustomStringConvertible {
    package var description: String {
        paths.isEmpty ? "__name__" : paths.map(\.description).joined(separator: ", ")
    }
}

extension NameRange: CustomStringConvertible {
    package var description: String {
        var parts: [String] = []
        if let lower { parts.append("__name__ \(lower.isInclusive ? ">=" : ">") \(lower.position)") }
        if let upper { parts.append("__name__ \(upper.isInclusive ? "<=" : "<") \(upper.position)") }
        return parts.joined(separator: " and ")
    }
}

extension NamePosition: CustomStringConvertible {
    var description: String { String(decoding: path, as: UTF8.self) }
}
