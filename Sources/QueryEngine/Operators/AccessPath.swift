// The leaf of a query's tree: how its documents are found.

import Basics
import DocumentModel

/// One of the operators that read documents from the source.
enum AccessPath: QueryOperator {
    case collection(CollectionScan)
    case subtree(SubtreeScan)
    case points(PointLookup)
    case indexes(Append)
    /// There is nothing to read.
    case nothing

    /// What the plan says, if no index is used.
    init(scanning plan: QueryPlan) {
        if let points = plan.points {
            self = .points(
                PointLookup(plan.direction == .ascending ? points : points.reversed(), in: plan.matcher.scope))
        } else {
            self.init(scanning: plan, plan.direction)
        }
    }

    /// All documents of the scope, as far as their names can be results.
    ///
    /// - Parameter direction: descending is for a single collection only.
    init(scanning plan: QueryPlan, _ direction: SortDirection) {
        guard case .collection(let path) = plan.matcher.scope else {
            precondition(direction == .ascending, "several collections are scanned in ascending order only")
            self = .subtree(SubtreeScan(plan.matcher.scope, names: plan.names))
            return
        }
        guard let ids = plan.names.ids(in: path) else {
            self = .nothing
            return
        }
        self = .collection(CollectionScan(path, ids: ids, names: plan.names, direction: direction))
    }

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout StepWork,
        into page: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) {
        // The operator has one owner while it changes.
        switch consume self {
        case .collection(var scan):
            defer { self = .collection(scan) }
            try scan.next(from: source, &work, into: page)
        case .subtree(var scan):
            defer { self = .subtree(scan) }
            try scan.next(from: source, &work, into: page)
        case .points(var lookup):
            defer { self = .points(lookup) }
            try lookup.next(from: source, &work, into: page)
        case .indexes(var append):
            defer { self = .indexes(append) }
            try append.next(from: source, &work, into: page)
        case .nothing: self = .nothing
        }
    }

    var isFinished: Bool {
        switch self {
        case .collection(let scan): scan.isFinished
        case .subtree(let scan): scan.isFinished
        case .points(let lookup): lookup.isFinished
        case .indexes(let append): append.isFinished
        case .nothing: true
        }
    }

    mutating func restart() {
        switch self {
        case .collection(var scan):
            scan.restart()
            self = .collection(scan)
        case .subtree(var scan):
            scan.restart()
            self = .subtree(scan)
        case .points(var lookup):
            lookup.restart()
            self = .points(lookup)
        case .indexes(var append):
            append.restart()
            self = .indexes(append)
        case .nothing: break
        }
    }

    /// The index access; nil if no index is used.
    var indexes: Append? { if case .indexes(let append) = self { append } else { nil } }

    var tree: PlanTree {
        switch self {
        case .collection(let scan): scan.tree
        case .subtree(let scan): scan.tree
        case .points(let lookup): lookup.tree
        case .indexes(let append): append.tree
        case .nothing: PlanTree(line: "Nothing")
        }
    }
}
