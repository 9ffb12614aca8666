// What explain says about the execution of a query.

import DocumentModel

/// A plan and the indexes that were chosen for it.
package struct QueryExplanation {
    let plan: QueryPlan
    /// Nil before indexes are chosen, and if none is used.
    let indexes: Append?

    /// The indexes in use, as explain names them: scope and properties. A scan uses the order of names.
    package var indexesUsed: [(queryScope: String, properties: String)] {
        var scope = "Collection"
        // A group may be put together from the indexes of its collections.
        if plan.matcher.scope.isOfCollections, indexes?.collectionCount == nil { scope = "Collection group" }
        guard let indexes, !indexes.indexes.isEmpty else {
            var direction = "ASC"
            if case .stream(.descending) = plan.strategy { direction = "DESC" }
            return [(scope, "(__name__ \(direction))")]
        }
        return indexes.indexes.map { (scope, $0.properties(indexes.direction)) }
    }

    /// An index that would make the query cheaper, as an entry of `firestore.indexes.json`; nil if there is none.
    package var adviceJSON: String? {
        if isServed { return nil }
        return IndexNeed.all(of: plan).lazy.compactMap(\.shape).first?.json
    }

    /// Whether only results are read, except for conditions that the index does not contain.
    private var isServed: Bool {
        if plan.points != nil { return true }
        switch plan.strategy {
        case .stream:
            return plan.matcher.filter.fieldTests.isEmpty && plan.matcher.filter.alternatives.isEmpty || indexes != nil
        case .sort:
            guard let indexes, indexes.isOrdered else { return false }
            return plan.matcher.filter.fieldTests.count <= 1 || indexes.indexes.contains { $0.isDeclared }
        case .nearest:
            // Without a filter nearly all of a collection is measured anyway.
            if plan.matcher.filter.isEmpty, case .collection = plan.matcher.scope { return true }
            return indexes != nil
        }
    }
}
