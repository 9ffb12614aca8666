// What each operator of an analyzed query did.
//
// The operators of an analyzed query stand between `Measured` operators, which read the clock when a step begins and
// ends and when a row goes up. Other queries have a tree without them, of other types, so they pay nothing. What
// operators keep for themselves (inputs of an `Append`, entries of a `Fetch`, ranges of a merge) is measured if
// `QueryOptions.measuresOperators` is set, which they ask once a step or a seek.
//
// Two reads of the clock for each row and operator take some 100 ns, which the times contain.

import Basics

/// What one operator did.
package struct OperatorFigures: Sendable, Equatable {
    /// Rows or index entries given out.
    package var rows = 0
    /// Index entries that were looked at; 0 for operators that read none themselves.
    package var entries = 0
    /// The time in the operator and its inputs, without the operators above it, and without waits for storage.
    package var nanoseconds: UInt64 = 0

    package init() {}

    /// Adds a part of the work that began at a reading of the clock.
    mutating func add(rows: Int, entries: Int, since start: UInt64) {
        self.rows += rows
        self.entries += entries
        nanoseconds += SystemClock.monotonicNanoseconds() - start
    }

    static func + (left: OperatorFigures, right: OperatorFigures) -> OperatorFigures {
        var sum = left
        sum.rows += right.rows
        sum.entries += right.entries
        sum.nanoseconds += right.nanoseconds
        return sum
    }

    /// Runs a step of an operator and adds what it did.
    mutating func measure<Input: QueryOperator, Source: QuerySource & ~Copyable>(
        _ input: inout Input, from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        let start = SystemClock.monotonicNanoseconds()
        var (rows, above) = (0, UInt64(0))
        defer { add(rows: rows, entries: 0, since: start + above) }
        try input.next(from: source, &work) { (row) throws(RequestError) in
            rows += 1
            let given = SystemClock.monotonicNanoseconds()
            defer { above += SystemClock.monotonicNanoseconds() - given }
            return try page(row)
        }
    }

    /// Runs a step of an operator that yields index entries and adds what it did.
    mutating func measure<Source: QuerySource & ~Copyable>(
        _ entries: inout EntrySource, from source: borrowing Source, _ work: inout EntryWork,
        into consume: (borrowing IndexEntry) throws(RequestError) -> PageControl
    ) throws(RequestError) -> EntryStep {
        let (start, before) = (SystemClock.monotonicNanoseconds(), work.scanned)
        var (rows, above) = (0, UInt64(0))
        defer { add(rows: rows, entries: work.scanned - before, since: start + above) }
        return try entries.next(from: source, &work) { (entry) throws(RequestError) in
            rows += 1
            let given = SystemClock.monotonicNanoseconds()
            defer { above += SystemClock.monotonicNanoseconds() - given }
            return try consume(entry)
        }
    }
}

/// The rows of the input, counted and timed.
struct Measured<Input: QueryOperator>: RowByRowOperator {
    var input: Input
    private var figures = OperatorFigures()

    init(_ input: Input) { self.input = input }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        try figures.measure(&input, from: source, &work, into: page)
    }

    /// The input with its figures. An operator that changes nothing is not in the tree; the one below it has then the
    /// figures of both, which have the same rows.
    var tree: PlanTree {
        var tree = input.tree
        tree.figures = figures
        return tree
    }
}
