// The planner's choice of indexes, before it is made into operators.
//
// An access is a list of parts, read one after the other. A part reads either intervals of one index (a > 5) or a
// union of zigzag merges (a == 1 AND b == 2, or c == 3). In a collection group without a declared index each
// collection has separate parts, or, in the order of the query, members of one union.
//
// What is found is checked by the whole filter, on the document. So an access may find too much, never too little, and
// never a document twice: `FetchCheck` leaves out those that an earlier part has found.

import Basics
import DocumentModel

/// A part of an access.
struct AccessPart: Sendable {
    var entries: EntrySource
    /// The alternatives of the filter that the part answers.
    let disjuncts: [Disjunct]
    /// The collection that the entries are of, in a group whose collections are read one after the other.
    var collection: GroupCollection?

    /// Entries of one index in disjoint intervals.
    init(scanning index: IndexUse, _ intervals: [ByteInterval], _ direction: SortDirection, _ disjuncts: [Disjunct]) {
        let conditions = disjuncts.map { disjunct in
            disjunct.fieldTests.filter { $0.path == index.field }.map(\.description).joined(separator: " AND ")
        }
        let condition = conditions.contains("") ? "" : conditions.joined(separator: " OR ")
        entries = .scan(IndexScan(index, intervals: intervals, direction: direction, condition: condition))
        self.disjuncts = disjuncts
    }

    private init(_ union: Union, _ disjuncts: [Disjunct]) {
        entries = .union(union)
        self.disjuncts = disjuncts
    }

    /// One part with a union of the members; none without members.
    static func union(
        _ members: [ZigzagMerge], _ direction: SortDirection, _ disjuncts: [Disjunct], collectionCount: Int? = nil
    ) -> [AccessPart] {
        if members.isEmpty { return [] }
        return [AccessPart(Union(members, direction: direction, collectionCount: collectionCount), disjuncts)]
    }
}

/// How a query finds its documents through indexes.
struct IndexAccess: Sendable {
    var parts: [AccessPart]
    /// The direction in which the entries are read.
    var direction: SortDirection
    /// Documents come in the order of the query.
    var isOrdered = false
    /// Every document found is a result.
    var isExact = false
    /// Documents are not read: only their number is asked for.
    var countsOnly = false
    /// The collections of a group whose own indexes are used.
    var collectionCount: Int?

    /// About how many entries there are to be read, counted no further than `atMost`.
    func estimate<Source: QuerySource & ~Copyable>(
        in source: borrowing Source, atMost: Int
    ) throws(RequestError) -> Int {
        var total = 0
        for part in parts where total < atMost {
            total += try part.entries.estimate(in: source, atMost: atMost - total)
        }
        return total
    }

    /// The operators that read the entries and their documents.
    func operators(of plan: QueryPlan) -> Append {
        let inputs = parts.indices.map { position in
            Fetch(
                parts[position].entries.simplified(isOrdered: isOrdered, measures: plan.options.measuresOperators),
                in: parts[position].collection.map { .collection(path: $0.path) } ?? plan.matcher.scope,
                readsDocuments: !countsOnly, check(position, plan), orders: isOrdered ? plan.sortOrders : [],
                measures: plan.options.measuresOperators)
        }
        let shown = parts.prefix { collectionCount == nil || $0.collection == parts[0].collection }
        return Append(
            inputs, direction: direction, isOrdered: isOrdered, collectionCount: collectionCount,
            shownCount: shown.count, measures: plan.options.measuresOperators)
    }

    /// Several parts over one collection, which are adjacent, can find the same document: the first one gives it out.
    private func check(_ position: Int, _ plan: QueryPlan) -> FetchCheck {
        var first = position
        while first > 0, parts[first - 1].collection == parts[position].collection { first -= 1 }
        let hasNext = position + 1 < parts.count && parts[position + 1].collection == parts[position].collection
        if first == position, !hasNext { return FetchCheck(names: plan.names) }
        return FetchCheck(
            names: plan.names, alternatives: parts[position].disjuncts,
            earlier: parts[first..<position].flatMap(\.disjuncts))
    }
}

extension EntrySource {
    /// A union of a single range of an automatic index is a scan of that range.
    fileprivate func simplified(isOrdered: Bool, measures: Bool) -> EntrySource {
        switch self {
        case .scan(var scan):
            scan.isOrdered = isOrdered
            return .scan(scan)
        case .union(var union):
            if union.members.count == 1, union.members[0].collection == nil, let range = union.members[0].ranges.first,
                union.members[0].ranges.count == 1, !range.index.isDeclared
            {
                return EntrySource.scan(IndexScan(range, direction: union.direction))
                    .simplified(isOrdered: isOrdered, measures: measures)
            }
            union.isOrdered = isOrdered
            if measures { union.measure() }
            return .union(union)
        }
    }
}
