// What all operators have in common.
//
// An operator is a value: its settings, and its position, which is all that is kept between two pages. `next` opens
// cursors on the source, gives the page rows until it is full, and stores the new position. A row points into the
// source's memory, so it is passed up through closures and never returned:
//
//     Project ─ next(into: page)
//        └─ Limit ─ next(into: { counts the row, then calls Project's closure })
//              └─ Filter ─ next(into: { checks the row, then calls Limit's closure })
//                    └─ CollectionScan ─ next(into: { ... })    runs the loop

internal import Basics
internal import DocumentModel

/// One operator of a query.
protocol QueryOperator: Sendable {
    /// Gives `page` the next rows, until it is full, the step's budget is spent or no row is left.
    ///
    /// - Parameters:
    ///   - source: the same state in every call.
    ///   - work: the budget of this step and the counters of the query.
    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError)

    /// Whether every row has been given out.
    var isFinished: Bool { get }

    /// Goes back to before the first row.
    mutating func restart()

    /// The operator and its inputs as explain shows them.
    var tree: PlanTree { get }
}

/// An operator whose position is that of its one input.
protocol RowByRowOperator: QueryOperator {
    associatedtype Input: QueryOperator
    var input: Input { get set }
}

extension RowByRowOperator {
    var isFinished: Bool { input.isFinished }

    mutating func restart() { input.restart() }
}

/// A document on its way through a query, lent until the call returns.
package struct QueryRow: ~Escapable {
    /// The document's path below `documents`, UTF-8. Empty if only the number of rows is asked for.
    package let path: RawSpan
    /// Microseconds since 1970.
    package let createMicroseconds: UInt64
    /// Microseconds since 1970.
    package let updateMicroseconds: UInt64
    /// Canonical field entries.
    package let fields: RawSpan
    /// The key that `Sort` ordered the row by; empty for rows that were not sorted.
    let sortKey: RawSpan

    @_lifetime(copy path, copy fields)
    init(path: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64, fields: RawSpan) {
        self.path = path
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
        self.fields = fields
        sortKey = path.extracting(0..<0)
    }

    @_lifetime(copy path, copy fields, copy sortKey)
    init(
        path: RawSpan, createMicroseconds: UInt64, updateMicroseconds: UInt64, fields: RawSpan, sortKey: RawSpan
    ) {
        self.path = path
        self.createMicroseconds = createMicroseconds
        self.updateMicroseconds = updateMicroseconds
        self.fields = fields
        self.sortKey = sortKey
    }
}

/// Whether a page has room for more rows after the one it was just given.
package enum PageControl: Sendable {
    case more
    case full
}

/// The work of a query: what it has read so far, and what the present step may still read.
package struct StepWork: Sendable {
    /// Documents that the step may still look at; large ones count as several, and more so if the query walks each
    /// several times. A step stops when it is spent.
    var budget = 0
    /// How often a document's fields are walked to judge and order it; see ``QueryMatcher/walks``.
    var walks = 0
    /// See ``QueryMatcher/conditionCost``.
    var conditionCost = 0
    /// Documents looked at so far, in all passes.
    package var documents = 0
    /// Index entries looked at so far.
    var entries = 0

    /// Deleted entries that take as long as a look at a document, or less.
    private static let deletionsPerDocument = 4

    package init(budget: Int = 0, walks: Int = 0) {
        self.budget = budget
        self.walks = walks
    }

    /// Deleted entries that the step may pass one after the other. When it has, it has done its work.
    package var deletionsMax: Int {
        let (count, isMore) = max(budget, 1).multipliedReportingOverflow(by: Self.deletionsPerDocument)
        return isMore ? .max : count
    }

    /// Whether the step has done its work.
    package var isSpent: Bool { budget <= 0 }

    /// Adds what a step has done with index entries.
    mutating func note(_ work: EntryWork) {
        entries += work.scanned
        if work.deletions <= 0 { budget = 0 }
    }

    /// Counts a document that was looked at.
    /// - Returns: whether the step may continue.
    mutating func countDocument(byteCount: Int) -> Bool {
        documents += 1
        return spend(byteCount: byteCount)
    }

    /// Spends what a look at a document costs: reading it, and walking it.
    /// - Returns: whether the step may continue.
    @discardableResult
    package mutating func spend(byteCount: Int) -> Bool {
        budget -= 1 + conditionCost + byteCount >> 11 + (walks * byteCount) >> 12
        return !isSpent
    }
}
