// The operators of one query. What explain prints is this tree.
//
//     streamed   Project ─ Limit ─ Filter ─ access path            the access path has the order of the query
//     sorted     Project ─ Limit ─ Sort ─ Filter ─ access path
//
// Between filter and access path a `Repeat` makes steps again that had to wait for storage; it is not printed. If the
// operators are measured, a `Measured` is above each of them.

import Basics
import DocumentModel

/// The operators of one query, from the top down.
enum QueryTree: QueryOperator {
    typealias Rows = RowFilter<Repeat<AccessPath>>
    typealias MeasuredRows = Measured<RowFilter<Measured<Repeat<AccessPath>>>>

    case streamed(Project<Limit<Rows>>)
    case sorted(Project<Limit<Sort<Rows>>>)
    case measuredStreamed(Measured<Project<Measured<Limit<MeasuredRows>>>>)
    case measuredSorted(Measured<Project<Measured<Limit<Measured<Sort<MeasuredRows>>>>>>)

    /// - Parameter access: the indexes to use; nil scans.
    init(_ plan: QueryPlan, _ access: IndexAccess?) {
        let path = access.map { AccessPath.indexes($0.operators(of: plan)) } ?? AccessPath(scanning: plan)
        let matcher = access?.countsOnly == true ? nil : plan.matcher
        switch plan.strategy {
        case .sort(let orders) where access?.isOrdered != true: self.init(plan, path, matcher, .orders(orders))
        case .nearest(let search): self.init(plan, path, matcher, .nearest(search))
        case .sort, .stream:
            // Without a limit there is no last row. In no order are only rows that come from indexes; a scan has the
            // order of names.
            let isOrderIrrelevant = plan.limit == nil || plan.isUnordered && access != nil
            self.init(streaming: plan, path, matcher, isOrderIrrelevant ? nil : plan.sortOrders)
        }
    }

    private init(streaming plan: QueryPlan, _ path: AccessPath, _ matcher: QueryMatcher?, _ orders: [Order]?) {
        if plan.options.measuresOperators {
            let limit = Limit(plan.measuredRows(path, matcher), offset: plan.offset, limit: plan.limit, orders: orders)
            self = .measuredStreamed(Measured(Project(Measured(limit), plan.selection)))
        } else {
            let limit = Limit(plan.rows(path, matcher), offset: plan.offset, limit: plan.limit, orders: orders)
            self = .streamed(Project(limit, plan.selection))
        }
    }

    private init(_ plan: QueryPlan, _ path: AccessPath, _ matcher: QueryMatcher?, _ ranking: Ranking) {
        let orders = plan.nearest == nil ? plan.sortOrders : nil
        let wanted = plan.limit.map { $0 + plan.offset } ?? .max
        if plan.options.measuresOperators {
            let sort = Measured(plan.sort(plan.measuredRows(path, matcher), by: ranking, wanted: wanted))
            let limit = Limit(sort, offset: plan.offset, limit: plan.limit, orders: orders)
            self = .measuredSorted(Measured(Project(Measured(limit), plan.selection)))
        } else {
            let sort = plan.sort(plan.rows(path, matcher), by: ranking, wanted: wanted)
            self = .sorted(Project(Limit(sort, offset: plan.offset, limit: plan.limit, orders: orders), plan.selection))
        }
    }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        // The operators have one owner while they change: a copy of them would copy all rows that a sort holds.
        switch consume self {
        case .streamed(var operators):
            defer { self = .streamed(operators) }
            try operators.next(from: source, &work, into: page)
        case .sorted(var operators):
            defer { self = .sorted(operators) }
            try operators.next(from: source, &work, into: page)
        case .measuredStreamed(var operators):
            defer { self = .measuredStreamed(operators) }
            try operators.next(from: source, &work, into: page)
        case .measuredSorted(var operators):
            defer { self = .measuredSorted(operators) }
            try operators.next(from: source, &work, into: page)
        }
    }

    /// If an index access could not keep the order of the query: replaces it by a sort of a scan, which continues
    /// after the last document. Figures begin again.
    mutating func sortIfOrderLost(_ plan: QueryPlan) {
        guard let after = indexes?.orderLostAfter else { return }
        let path = AccessPath(scanning: plan, .ascending)
        let start = after.isEmpty ? nil : after
        switch self {
        case .streamed(let streamed):
            let limit = streamed.input
            let rows = plan.rows(path, plan.matcher)
            let sort = plan.sort(rows, by: .orders(plan.sortOrders), wanted: limit.wanted, after: start)
            self = .sorted(Project(Limit(sort, continuing: limit), plan.selection))
        case .measuredStreamed(let streamed):
            let limit = streamed.input.input.input
            let rows = plan.measuredRows(path, plan.matcher)
            let sort = plan.sort(rows, by: .orders(plan.sortOrders), wanted: limit.wanted, after: start)
            self = .measuredSorted(
                Measured(Project(Measured(Limit(Measured(sort), continuing: limit)), plan.selection)))
        case .sorted, .measuredSorted: break
        }
    }

    private var operators: any QueryOperator {
        switch self {
        case .streamed(let operators): operators
        case .sorted(let operators): operators
        case .measuredStreamed(let operators): operators
        case .measuredSorted(let operators): operators
        }
    }

    var isFinished: Bool {
        switch self {
        case .streamed(let operators): operators.isFinished
        case .sorted(let operators): operators.isFinished
        case .measuredStreamed(let operators): operators.isFinished
        case .measuredSorted(let operators): operators.isFinished
        }
    }

    mutating func restart() {
        switch self {
        case .streamed(var operators):
            operators.restart()
            self = .streamed(operators)
        case .sorted(var operators):
            operators.restart()
            self = .sorted(operators)
        case .measuredStreamed(var operators):
            operators.restart()
            self = .measuredStreamed(operators)
        case .measuredSorted(var operators):
            operators.restart()
            self = .measuredSorted(operators)
        }
    }

    var tree: PlanTree { operators.tree }

    // MARK: Statistics

    /// Results skipped for the offset and results returned.
    var counts: (skipped: Int, returned: Int) {
        switch self {
        case .streamed(let operators): operators.input.counts
        case .sorted(let operators): operators.input.counts
        case .measuredStreamed(let operators): operators.input.input.input.counts
        case .measuredSorted(let operators): operators.input.input.input.counts
        }
    }

    /// The index access; nil if no index is used.
    var indexes: Append? {
        switch self {
        case .streamed(let operators): operators.input.input.indexes
        case .sorted(let operators): operators.input.input.input.indexes
        case .measuredStreamed(let operators): operators.input.input.input.input.indexes
        case .measuredSorted(let operators): operators.input.input.input.input.input.input.indexes
        }
    }
}

extension QueryTree.Rows {
    fileprivate var indexes: Append? { input.input.indexes }
}

extension QueryTree.MeasuredRows {
    fileprivate var indexes: Append? { input.input.input.input.indexes }
}

extension QueryPlan {
    /// - Parameter matcher: nil if every document of the access path is a result.
    fileprivate func rows(_ path: AccessPath, _ matcher: QueryMatcher?) -> QueryTree.Rows {
        RowFilter(Repeat(path), matcher, comparesCursors: comparesCursors)
    }

    fileprivate func measuredRows(_ path: AccessPath, _ matcher: QueryMatcher?) -> QueryTree.MeasuredRows {
        Measured(RowFilter(Measured(Repeat(path)), matcher, comparesCursors: comparesCursors))
    }

    fileprivate func sort<Input>(
        _ input: Input, by ranking: Ranking, wanted: Int, after start: [UInt8]? = nil
    ) -> Sort<Input> {
        Sort(
            input, by: ranking, wanted: wanted, keeping: selection, bytesMax: options.sortBufferBytes, after: start)
    }
}
