// A plan as a tree, for people, logs and tests: what the results pass through, the source at the bottom.

import DocumentModel

extension QueryPlan: CustomStringConvertible {
    /// The plan with a scan as its source.
    package var description: String { tree(nil) }

    /// The plan with the access that was chosen as its source; nil is a scan.
    package func tree(_ access: IndexAccess?) -> String {
        var stages: [String] = []
        if let selection { stages.append("project \(selection)") }
        var window: [String] = []
        if offset > 0 { window.append("offset \(offset)") }
        if let limit { window.append("limit \(limit)") }
        if !window.isEmpty { stages.append(window.joined(separator: ", ")) }
        if case .nearest(let search) = strategy { stages.append("nearest \(search)") }
        if case .sort(let orders) = strategy, access?.isOrdered != true {
            let names = orders.map(\.description).joined(separator: ", ")
            let bound = limit.map { ", first \(offset + $0)" } ?? ""
            stages.append("sort (\(names))\(bound)")
        }
        if comparesCursors { stages.append("between cursors on \(order)") }
        let existing = matcher.requiredFields
        if !existing.isEmpty { stages.append("exists \(existing.map(\.description).joined(separator: ", "))") }
        if !matcher.filter.isEmpty { stages.append("filter \(matcher.filter)") }
        var lines = stages.enumerated().map { QueryPlan.line($1, depth: $0) }
        for (depth, text) in access?.tree ?? [(0, source)] {
            let count = access?.countsOnly == true && depth == 0 ? "count entries of " : ""
            lines.append(QueryPlan.line(count + text, depth: stages.count + depth))
        }
        return lines.joined(separator: "\n")
    }

    /// What a scan goes over.
    private var source: String {
        var source = points.map { "look up \($0.count) of \(matcher.scope)" } ?? "scan \(matcher.scope)"
        if case .stream(.descending) = strategy { source += ", descending" }
        if names != .all, points == nil { source += ", \(names)" }
        return source
    }

    private static func line(_ text: String, depth: Int) -> String {
        depth == 0 ? text : String(repeating: "   ", count: depth - 1) + "└─ " + text
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
    var description: String {
        var parts: [String] = []
        if let lower { parts.append("__name__ \(lower.isInclusive ? ">=" : ">") \(lower.position)") }
        if let upper { parts.append("__name__ \(upper.isInclusive ? "<=" : "<") \(upper.position)") }
        return parts.joined(separator: " and ")
    }
}

extension NamePosition: CustomStringConvertible {
    var description: String {
        switch self {
        case .beforeAll: "another database"
        case .at(let path): String(decoding: path, as: UTF8.self)
        case .afterAll: "another database"
        }
    }
}
