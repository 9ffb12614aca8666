// What a run can tell of how it is answered: explain's contents.

import DocumentModel

extension QueryRun {
    /// The indexes in use, as explain names them: scope and properties. A scan uses the order of names.
    package var indexesUsed: [(queryScope: String, properties: String)] {
        var scope = "Collection"
        // A group may be put together from the indexes of its collections.
        if plan.matcher.scope.isOfCollections, access?.collectionCount == nil { scope = "Collection group" }
        guard let access, !access.indexes.isEmpty else {
            var direction = "ASC"
            if case .stream(.descending) = plan.strategy { direction = "DESC" }
            return [(scope, "(__name__ \(direction))")]
        }
        return access.indexes.map { (scope, $0.properties(access.direction)) }
    }

    /// An index that would make the query cheaper, as an entry of `firestore.indexes.json`; nil if there is none.
    package var adviceJSON: String? {
        if isServed { return nil }
        return IndexNeed.all(of: plan).lazy.compactMap(\.shape).first?.json
    }

    /// Whether what is read is what is returned, but for conditions beside the index.
    private var isServed: Bool {
        if plan.points != nil { return true }
        switch plan.strategy {
        case .stream: return plan.matcher.filter.fieldTests.isEmpty && plan.matcher.filter.alternatives.isEmpty || access != nil
        case .sort:
            guard let access, access.isOrdered else { return false }
            return plan.matcher.filter.fieldTests.count <= 1 || access.indexes.contains { $0.isDeclared }
        case .nearest:
            // Without a filter nearly all of a collection is measured anyway.
            if plan.matcher.filter.isEmpty, case .collection = plan.matcher.scope { return true }
            return access != nil
        }
    }
}
