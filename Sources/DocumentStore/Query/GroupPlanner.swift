// Collection groups without a declared index that serves: the automatic indexes of the group's collections.
//
//     where a == 1                  each collection's documents with a = 1, one collection after the other
//     where a == 1, by name         the same, united in the order of names
//     order by a limit 10           the entries of all collections, united in the order of values and names
//
// Each collection is planned as a query over it alone would be. A few of them are walked side by side where that gives the order
// of the query; of more the results are sorted; a group of very many is scanned.

import Basics
import DocumentModel

struct GroupPlanner {
    private let plan: QueryPlan
    private let planners: [AccessPlanner]

    /// Collections of a group that are looked at one by one.
    private static let collectionsMaximum = 1_000
    /// Runs that are walked side by side.
    private static let runsMaximum = 128

    /// - Returns: nil if nothing but names is asked for, if there are too many collections, or none has indexes.
    init?<Scanner: DocumentScanner & ~Copyable>(
        _ plan: QueryPlan, _ disjuncts: [Disjunct], _ scanner: inout Scanner
    ) throws(RequestError) {
        guard case .descendants(let parent, let id?) = plan.matcher.scope, parent.isEmpty,
            !disjuncts.allSatisfy(\.fieldTests.isEmpty) || !plan.matcher.requiredFields.isEmpty,
            let collections = try scanner.indexedCollections(ofGroup: id.byteSpan, atMost: Self.collectionsMaximum)
        else { return nil }
        let numbers = try AccessPlanner.numbers(of: plan, disjuncts, &scanner)
        self.plan = plan
        planners = collections.map {
            AccessPlanner(plan: plan, collection: $0, disjuncts: disjuncts, numbers: numbers)
        }
    }

    /// About how many documents the group holds.
    var documentCount: Int { planners.reduce(0) { $0 + $1.collection.documentCount } }

    /// Results must be read even when only their number is asked for.
    var mustReadDocuments: Bool { planners.contains(where: \.collection.mustReadDocuments) }

    /// Chooses; nil leaves it to a scan.
    func choose<Scanner: DocumentScanner & ~Copyable>(_ scanner: inout Scanner) throws(RequestError) -> IndexAccess? {
        switch plan.strategy {
        case .stream(let direction) where !plan.isUnordered: return united { $0.merge(direction) }
        case .stream, .nearest: return try filtered(&scanner)
        case .sort(let orders):
            let filtered = try filtered(&scanner)
            guard let ordered = united({ $0.ordered(orders) }) else { return filtered }
            guard let filtered, let first = planners.first, !first.hasOneField(orders[0].field) else { return ordered }
            let breakEven = AccessPlanner.entriesToBreakEven(plan, documents: documentCount)
            return try AccessPlanner.entries(of: filtered, atMost: breakEven, &scanner) < breakEven ? filtered : ordered
        }
    }

    /// What finds the documents of the filter, one collection after the other.
    private func filtered<Scanner: DocumentScanner & ~Copyable>(
        _ scanner: inout Scanner
    ) throws(RequestError) -> IndexAccess? {
        var all = IndexAccess(parts: [], direction: .ascending, isExact: true, collectionCount: planners.count)
        for planner in planners {
            guard let access = try planner.filtered(&scanner) else { return nil }
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
        var members: [MergeMember] = []
        var direction = SortDirection.ascending
        for planner in planners {
            guard let access = ordered(planner) else { return nil }
            direction = access.direction
            for part in access.parts {
                switch part.source {
                case .merge(let found):
                    members += found.map { MergeMember(runs: $0.runs, collection: planner.collection.inGroup) }
                case .intervals(let use, let intervals):
                    members += intervals.map { interval in
                        let run = ValueRun(use, values: [], rests: interval, condition: part.condition(on: use.field))
                        return MergeMember(runs: [run], collection: planner.collection.inGroup)
                    }
                }
            }
            if members.count > Self.runsMaximum { return nil }
        }
        let part = AccessPart(source: .merge(members), disjuncts: planners.first?.disjuncts ?? [])
        return IndexAccess(
            parts: members.isEmpty ? [] : [part], direction: direction, isOrdered: true, collectionCount: planners.count)
    }
}
