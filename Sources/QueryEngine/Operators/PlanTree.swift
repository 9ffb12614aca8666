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

    /// Lines from the top down, each with its depth.
    private func lines(depth: Int) -> [(depth: Int, text: String)] {
        [(depth, line)] + inputs.flatMap { $0.lines(depth: depth + 1) }
    }
}

extension PlanTree: CustomStringConvertible {
    var description: String {
        lines(depth: 0).map { depth, text in
            depth == 0 ? text : String(repeating: "   ", count: depth - 1) + "└─ " + text
        }.joined(separator: "\n")
    }
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
