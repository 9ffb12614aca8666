// Judges documents by the condition of the query.

import Basics
import DocumentModel

/// The rows of the input that match the query: its filter, the fields that its order needs, its cursors.
struct RowFilter<Input: QueryOperator>: RowByRowOperator {
    var input: Input
    /// Nil if every row of the input matches.
    private let matcher: QueryMatcher?
    private let comparesCursors: Bool

    /// - Parameters:
    ///   - matcher: nil if every row of the input matches.
    ///   - comparesCursors: whether the input can contain documents outside the cursors.
    init(_ input: Input, _ matcher: QueryMatcher?, comparesCursors: Bool) {
        self.input = input
        self.matcher = matcher
        self.comparesCursors = comparesCursors
    }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        guard let matcher else { return try input.next(from: source, &work, into: page) }
        let comparesCursors = comparesCursors
        if source.locksDocuments { return try nextLocking(matcher, source, &work, page) }
        try input.next(from: source, &work) { (row) throws(RequestError) in
            guard matcher.accepts(row, comparesCursors: comparesCursors) else { return .more }
            return try page(row)
        }
    }

    /// The same for a transaction that locks what it reads.
    private mutating func nextLocking<Source: QuerySource & ~Copyable>(
        _ matcher: QueryMatcher, _ source: borrowing Source, _ work: inout StepWork,
        _ page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        let comparesCursors = comparesCursors
        var matching: [[UInt8]] = []
        defer { source.lock(matching) }
        try input.next(from: source, &work) { (row) throws(RequestError) in
            guard matcher.accepts(row, comparesCursors: comparesCursors) else { return .more }
            matching.append([UInt8](copying: row.path))
            return try page(row)
        }
    }

    var tree: PlanTree {
        guard let matcher else { return input.tree }
        var conditions = matcher.filter.isEmpty ? [] : [matcher.filter.description]
        conditions += matcher.requiredFields.map { "\($0) exists" }
        if comparesCursors { conditions.append("between cursors on \(matcher.order)") }
        if conditions.isEmpty { return input.tree }
        return PlanTree(line: "Filter \(conditions.joined(separator: " AND "))", inputs: [input.tree])
    }
}

extension QueryMatcher {
    /// Whether a document of the query's scope is a result.
    fileprivate func accepts(_ row: borrowing QueryRow, comparesCursors: Bool) -> Bool {
        guard matchesInScope(path: row.path, fields: row.fields) else { return false }
        return !comparesCursors || isBetweenCursors(path: row.path, fields: row.fields)
    }
}
