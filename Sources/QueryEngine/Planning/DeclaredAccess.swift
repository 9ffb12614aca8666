// Choosing declared indexes: those over several fields, and those over collection groups.
//
//     where a == 1, order by b desc     (a ASC, b DESC)    one range: entries with a = 1, in the order of b, name
//     where a in [1, 2], order by b     (a ASC, b ASC)     two ranges, united by b and the name
//     where a == 1, c == 2, order by b  (a, b) and (c, b)  two ranges, intersected by b and the name
//     order by a, b desc                (a ASC, b DESC)    the whole index
//     where a == 1, nearest to v        (a ASC, v VECTOR)  one range: the documents with a = 1 and such a vector
//
// An index fits if its last fields are those of the order, all in its directions or all against them (then it is walked
// backwards), and every field before them is held to one value.

internal import Basics
import DocumentModel
internal import Indexing
internal import StoreFormat

/// The declared indexes that one query could use.
struct DeclaredAccess {
    private let plan: QueryPlan
    private let indexes: [DeclaredIndex]
    /// The collection's number; 0 for a group.
    private let collection: UInt64
    private let disjuncts: [Disjunct]

    /// - Parameter all: the indexes of the query's collection group.
    /// - Returns: nil if there are none.
    init?(_ plan: QueryPlan, _ all: [DeclaredIndex], collection: UInt64, disjuncts: [Disjunct]) {
        let isGroup: Bool
        switch plan.matcher.scope {
        case .collection: isGroup = false
        case .descendants(let parent, .some) where parent.isEmpty: isGroup = true
        case .children, .descendants: return nil
        }
        let indexes = all.filter { index in
            index.shape.isGroup == isGroup
                && (index.shape.vector == nil || index.shape.vector == plan.nearest?.part)
        }
        if indexes.isEmpty { return nil }
        self.plan = plan
        // Those that leave out documents without the vector come first.
        self.indexes = indexes.filter { $0.shape.vector != nil } + indexes.filter { $0.shape.vector == nil }
        self.collection = collection
        self.disjuncts = disjuncts
    }

    /// An index and how it fits one alternative of the filter.
    private struct Fit {
        let index: DeclaredIndex
        /// Conditions that the fields before the order's are held by, in the index's order; positions in the
        /// alternative's.
        let tests: [Int]
        /// Walked forwards it has the order's directions.
        let isForward: Bool
    }

    /// A merge that comes in this order, which ends with the name; nil if no indexes fit every alternative.
    func ordered(by orders: [Order], bounds: [ByteInterval]) -> IndexAccess? {
        guard let name = orders.last, name.field.isDocumentName else { return nil }
        let fields = Array(orders.dropLast())
        if fields.contains(where: { $0.field.isDocumentName }) { return nil }
        var members: [ZigzagMerge] = []
        var isForward: Bool?
        var isExact =
            plan.names == .all && plan.matcher.cursors.isEverything
            && plan.matcher.requiredFields.allSatisfy { path in fields.contains { $0.field == path } }
        for disjunct in disjuncts {
            let tests = disjunct.fieldTests
            // A field of the order that is held to one value would be missing from the suffixes.
            if tests.contains(where: { test in
                test.isEquality && test.condition.isOfValue && fields.contains { $0.field == test.path }
            }) {
                return nil
            }
            var covered: Set<Int> = []
            var ranges: [IndexRange] = []
            while let fit = best(for: tests, fields, nameDirection: name.direction, covered: covered, isForward),
                ranges.isEmpty || !covered.isSuperset(of: fit.tests)
            {
                isForward = fit.isForward
                covered.formUnion(fit.tests)
                guard let range = range(of: fit, tests: tests, fields: fields, disjunct: disjunct, bounds: bounds)
                else { break }
                ranges.append(range)
            }
            if ranges.isEmpty { return nil }
            if covered.count < tests.count || !disjunct.nameTests.isEmpty || ranges.contains(where: \.isCut) {
                isExact = false
            }
            members.append(ZigzagMerge(ranges: ranges))
        }
        let direction = isForward ?? true ? SortDirection.ascending : .descending
        return IndexAccess(
            parts: AccessPart.union(members, direction, disjuncts), direction: direction, isOrdered: true,
            isExact: isExact)
    }

    /// The index that covers the most conditions that are not covered yet.
    private func best(
        for tests: [FieldTest], _ fields: [Order], nameDirection: SortDirection, covered: Set<Int>, _ isForward: Bool?
    ) -> Fit? {
        var best: Fit?
        var most = covered.isEmpty ? -1 : 0
        for index in indexes {
            guard let fit = fit(index, tests, fields, nameDirection), isForward == nil || isForward == fit.isForward
            else {
                continue
            }
            let new = fit.tests.count { !covered.contains($0) }
            if new > most { (best, most) = (fit, new) }
        }
        return best
    }

    private func fit(
        _ index: DeclaredIndex, _ tests: [FieldTest], _ fields: [Order], _ nameDirection: SortDirection
    ) -> Fit? {
        let parts = index.shape.parts
        guard parts.count >= fields.count else { return nil }
        let (held, ordered) = (parts.prefix(parts.count - fields.count), parts.suffix(fields.count))
        var isForward: Bool?
        for (part, order) in zip(ordered, fields) {
            guard part.field == order.field, part.kind != .contains else { return nil }
            let agrees = (part.kind == .ascending) == (order.direction == .ascending)
            if let known = isForward, known != agrees { return nil }
            isForward = agrees
        }
        var used: [Int] = []
        for part in held {
            let position = tests.indices.first { position in
                let test = tests[position]
                return !used.contains(position) && test.path == part.field && test.isEquality
                    && test.condition.isOfValue == (part.kind != .contains)
            }
            guard let position else { return nil }
            used.append(position)
        }
        let byName = index.shape.isNameDescending == (nameDirection == .descending)
        if let isForward, isForward != byName { return nil }
        return Fit(index: index, tests: used, isForward: byName)
    }

    /// The range of an index that fits; nil if its values leave no room for the suffix.
    private func range(
        of fit: Fit, tests: [FieldTest], fields: [Order], disjunct: Disjunct, bounds: [ByteInterval]
    ) -> IndexRange? {
        var values = ByteBuffer(capacity: 64)
        for (position, part) in zip(fit.tests, fit.index.shape.parts) {
            let key = tests[position].points[0]
            if values.count + key.bytes.count >= IndexKey.valueBytesMax { return nil }
            let start = values.count
            values.append(key.bytes)
            if part.kind == .descending { values.invertBits(from: start) }
        }
        var prefix = ByteBuffer(capacity: 16)
        fit.index.writePrefix(collection: collection, into: &prefix)
        let use = IndexUse(
            kind: .declared(
                properties: fit.index.shape.properties, isGroup: fit.index.shape.isGroup,
                invertsSuffix: fit.index.invertsSuffix),
            field: fit.index.shape.firstField, prefix: prefix.copyBytes())
        let conditions = fit.tests.map { tests[$0].description }
        return IndexRange(
            use, values: values.copyBytes(),
            suffixes: suffixes(fit, fields, disjunct, bounds, valueBytes: values.count),
            condition: conditions.joined(separator: " AND "))
    }

    /// What conditions on the first field of the order, and cursors, leave of the suffixes: the hull of it.
    private func suffixes(
        _ fit: Fit, _ fields: [Order], _ disjunct: Disjunct, _ bounds: [ByteInterval], valueBytes: Int
    ) -> ByteInterval {
        guard let first = fields.first else { return .all }
        let intervals = disjunct.intervals(of: first.field).intervals
        guard let lowest = intervals.first, let highest = intervals.last else {
            return ByteInterval(lower: [KeyLayout.afterEverything], upper: [])
        }
        var hull = ByteInterval(lower: lowest.lower, upper: highest.upper)
        for bound in bounds {
            guard let narrower = hull.intersection(bound) else {
                return ByteInterval(lower: [KeyLayout.afterEverything], upper: [])
            }
            hull = narrower
        }
        // A key has room for so much of the first field: longer bounds are cut, and then keep what they cut.
        let room = IndexKey.valueBytesMax - valueBytes
        if hull.lower.count > room { hull.lower = Array(hull.lower.prefix(room)) }
        if hull.upper.count > room { hull.upper = Array(hull.upper.prefix(room)) + [KeyLayout.afterEverything] }
        let part = fit.index.shape.parts[fit.tests.count]
        if part.kind != .descending { return hull }
        return hull.inverted
    }
}
