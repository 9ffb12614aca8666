// The operators of one query. What explain prints is this tree.
//
//     streamed   Project ─ Limit ─ Filter ─ access path            the access path has the order of the query
//     sorted     Project ─ Limit ─ Sort ─ Filter ─ access path
//
// Between filter and access path a `Repeat` makes steps again that had to wait for storage; it is not printed.

import Basics
import DocumentModel

/// The operators of one query, from the top down.
enum QueryTree: QueryOperator {
    case streamed(Project<Limit<RowFilter<Repeat<AccessPath>>>>)
    case sorted(Project<Limit<Sort<RowFilter<Repeat<AccessPath>>>>>)
    /// The operators are at work.
    case taken

    /// - Parameter access: the indexes to use; nil scans.
    init(_ plan: QueryPlan, _ access: IndexAccess?) {
        let path = access.map { AccessPath.indexes($0.operators(of: plan)) } ?? AccessPath(scanning: plan)
        let isIndexOnly = access?.countsOnly ?? false
        let filter = RowFilter(Repeat(path), isIndexOnly ? nil : plan.matcher, comparesCursors: plan.comparesCursors)
        switch plan.strategy {
        case .sort(let orders) where access?.isOrdered != true: self.init(plan, filter, .orders(orders))
        case .nearest(let search): self.init(plan, filter, .nearest(search))
        case .sort, .stream:
            // Without a limit there is no last row. In no order are only rows that come from indexes; a scan has the
            // order of names.
            let isOrderIrrelevant = plan.limit == nil || plan.isUnordered && access != nil
            let orders = isOrderIrrelevant ? nil : plan.sortOrders
            let limit = Limit(filter, offset: plan.offset, limit: plan.limit, orders: orders)
            self = .streamed(Project(limit, plan.selection))
        }
    }

    private init(_ plan: QueryPlan, _ filter: RowFilter<Repeat<AccessPath>>, _ ranking: Ranking) {
        let sort = Sort(
            filter, by: ranking, wanted: plan.limit.map { $0 + plan.offset } ?? .max, keeping: plan.selection,
            bytesMax: plan.options.sortBufferBytes)
        let orders = plan.nearest == nil ? plan.sortOrders : nil
        self = .sorted(Project(Limit(sort, offset: plan.offset, limit: plan.limit, orders: orders), plan.selection))
    }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        let operators = self
        self = .taken
        switch operators {
        case .streamed(var operators):
            defer { self = .streamed(operators) }
            try operators.next(from: source, &work, into: page)
        case .sorted(var operators):
            defer { self = .sorted(operators) }
            try operators.next(from: source, &work, into: page)
        case .taken: preconditionFailure("a query is run by one caller at a time")
        }
    }

    /// If an index access could not keep the order of the query: replaces it by a sort of a scan, which continues
    /// after the last document.
    mutating func sortIfOrderLost(_ plan: QueryPlan) {
        guard case .streamed(let streamed) = self, let after = streamed.input.input.input.input.indexes?.orderLostAfter
        else {
            return
        }
        let limit = streamed.input
        let filter = RowFilter(
            Repeat(AccessPath(scanning: plan, .ascending)), plan.matcher, comparesCursors: plan.comparesCursors)
        let sort = Sort(
            filter, by: .orders(plan.sortOrders), wanted: limit.wanted, keeping: plan.selection,
            bytesMax: plan.options.sortBufferBytes, after: after.isEmpty ? nil : after)
        self = .sorted(Project(Limit(sort, continuing: limit), plan.selection))
    }

    var isFinished: Bool {
        switch self {
        case .streamed(let operators): operators.isFinished
        case .sorted(let operators): operators.isFinished
        case .taken: false
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
        case .taken: break
        }
    }

    var tree: PlanTree {
        switch self {
        case .streamed(let operators): operators.tree
        case .sorted(let operators): operators.tree
        case .taken: PlanTree(line: "")
        }
    }

    // MARK: Statistics

    /// Results skipped for the offset and results returned.
    var counts: (skipped: Int, returned: Int) {
        switch self {
        case .streamed(let operators): (operators.input.skipped, operators.input.returned)
        case .sorted(let operators): (operators.input.skipped, operators.input.returned)
        case .taken: (0, 0)
        }
    }

    /// The index access; nil if no index is used.
    var indexes: Append? {
        switch self {
        case .streamed(let operators): operators.input.input.input.input.indexes
        case .sorted(let operators): operators.input.input.input.input.input.indexes
        case .taken: nil
        }
    }
}
