// Operators that yield index entries. `Fetch` reads the documents that the entries name.

import Basics
import DocumentModel

/// An index entry, lent until the call returns.
struct IndexEntry: ~Escapable {
    /// The id segment as in document keys; in a collection group the segments of the path.
    let segment: RawSpan
    /// The document's key, if the entry contains it because its path was cut or because it is of one of several
    /// collections; else empty.
    let documentKey: RawSpan

    @_lifetime(copy segment, copy documentKey)
    init(segment: RawSpan, documentKey: RawSpan) {
        self.segment = segment
        self.documentKey = documentKey
    }
}

/// The work with index entries in one step.
struct EntryWork {
    /// Entries looked at.
    var scanned = 0
    /// Entries that may be looked at without yielding one; then a merge stops.
    let limit: Int
    /// Deleted entries that a scan may still pass; then it stops.
    var deletions: Int

    /// The work of a part of a step.
    init(_ step: StepWork) {
        limit = max(step.budget, 1)
        deletions = step.deletionsMax
    }
}

/// How a call for entries ended.
enum EntryStep {
    /// The consumer stopped, or the step's budget is spent.
    case paused
    case finished
    /// The next entries are not in the order of their documents, because ids or values were cut: those of an interval
    /// of keys, or with nil all that follow.
    case unordered(ByteInterval?)
}

/// An operator that yields index entries.
enum EntrySource: Sendable {
    case scan(IndexScan)
    case union(Union)

    mutating func next<Source: QuerySource & ~Copyable>(
        from source: borrowing Source, _ work: inout EntryWork,
        into consume: (borrowing IndexEntry) throws(RequestError) -> PageControl
    ) throws(RequestError) -> EntryStep {
        switch self {
        case .scan(var scan):
            defer { self = .scan(scan) }
            return try scan.next(from: source, &work, into: consume)
        case .union(var union):
            defer { self = .union(union) }
            return try union.next(from: source, &work, into: consume)
        }
    }

    mutating func restart() {
        switch self {
        case .scan(var scan):
            scan.restart()
            self = .scan(scan)
        case .union(var union):
            union.restart()
            self = .union(union)
        }
    }

    /// The number of entries to be read, counted no further than `atMost`.
    func estimate<Source: QuerySource & ~Copyable>(
        in source: borrowing Source, atMost: Int
    ) throws(RequestError) -> Int {
        switch self {
        case .scan(let scan): try scan.estimate(in: source, atMost: atMost)
        case .union(let union): try union.estimate(in: source, atMost: atMost)
        }
    }

    var tree: PlanTree {
        switch self {
        case .scan(let scan): scan.tree
        case .union(let union): union.tree
        }
    }

    /// The indexes in use, each once, in the order of the tree.
    var indexes: [IndexUse] {
        switch self {
        case .scan(let scan): [scan.index]
        case .union(let union): union.indexes
        }
    }
}
