// Collection groups without a declared index that serves: the automatic indexes of the group's collections.
//
//     where a == 1                  each collection's documents with a = 1, one collection after the other
//     where a == 1, by name         the same, united in the order of names
//     order by a limit 10           the entries of all collections, united in the order of values and names
//
// Each collection is planned as a query over it alone would be. A few of them are united where that gives the order of
// the query; of more the results are sorted; a group of very many is scanned.

import Basics
import DocumentModel

struct GroupPlanner {
    private let plan: QueryPlan
    private let planners: [AccessPlanner]

    /// Collections of a group that are looked at one by one.
    private static let collectionsMax = 1_000
    /// Members of a union.
    private static let membersMax = 128

    /// - Returns: nil if nothing but names is asked for, if there are too many collections, or none has indexes.
    init?<Source: QuerySource & ~Copyable>(
        _ plan: QueryPlan, _ disjuncts: [Disjunct], _ source: borrowing Source
    ) throws(RequestError) {
        guard case .descendants(let parent, let id?) = plan.matcher.scope, parent.isEmpty,
            !disjuncts.allSatisfy(\.fieldTests.isEmpty) || !plan.matcher.requiredFields.isEmpty,
            source.hasCatalogue || source.indexedFields(of: id.byteSpan).areSome,
            let collections = try source.indexedCollections(ofGroup: id, atMost: Self.collectionsMax)
        else { return nil }
        let numbers = try AccessPlanner.numbers(of: plan, disjuncts, source)
        self.plan = plan
        planners = collections.map {
            AccessPlanner(plan: plan, collection: $0, disjuncts: disjuncts, numbers: numbers)
        }
    }

    /// About how many documents the group holds.
    var documentCount: Int { planners.reduce(0) { $0 + $1.collection.documentCount } }

    /// Chooses; nil leaves it to a scan.
    func choose<Source: QuerySource & ~Copyable>(_ source: borrowing Source) throws(RequestError) -> IndexAccess? {
        switch plan.strategy {
        case .stream(let direction) where !plan.isUnordered: return united { $0.merge(direction) }
        case .stream, .nearest: return try filtered(source)
        case .sort(let orders):
            let filtered = try filtered(source)
            guard let ordered = united({ $0.ordered(orders) }) else { return filtered }
            guard let filtered, let first = planners.first, !first.hasOneField(orders[0].field) else { return ordered }
            let breakEven = AccessPlanner.entriesToBreakEven(plan, documents: documentCount)
            return try filtered.estimate(in: source, atMost: breakEven) < breakEven ? filtered : ordered
        }
    }

    /// What finds the documents of the filter, one collection after the other.
    private func filtered<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) -> IndexAccess? {
        var all = IndexAccess(parts: [], direction: .ascending, isExact: true, collectionCount: planners.count)
        for planner in planners {
            guard let access = try planner.filtered(source) else { return nil }
            all.parts += access.parts.map { part in
                var part = part
                part.collection = planner.collection.inGroup
                return part
            }
            if !access.isExact { all.isExact = false }
        }
        return all
    }

    /// The ordered accesses of all collections side by side; nil if one has none, or there are too many.
    private func united(_ ordered: (AccessPlanner) -> IndexAccess?) -> IndexAccess? {
        var members: [ZigzagMerge] = []
        var direction = SortDirection.ascending
        for planner in planners {
            guard let access = ordered(planner) else { return nil }
            direction = access.direction
            for part in access.parts {
                switch part.entries {
                case .union(let union):
                    members += union.members.map {
                        ZigzagMerge(ranges: $0.ranges, collection: planner.collection.inGroup)
                    }
                case .scan(let scan):
                    members += scan.ranges.map { ZigzagMerge(ranges: [$0], collection: planner.collection.inGroup) }
                }
            }
            if members.count > Self.membersMax { return nil }
        }
        return IndexAccess(
            parts: AccessPart.union(
                members, direction, planners.first?.disjuncts ?? [], collectionCount: planners.count),
            direction: direction, isOrdered: true, collectionCount: planners.count)
    }
}
