// Which indexes a query uses, if any.
//
//     by name        every alternative names values of some fields      merge
//     sorted         the index of the first order has the order         intervals, ordered
//                    or: few documents meet the filter                  what finds them, then sorted
//     unordered      an access that finds the documents of the filter, or if there is none those that have the field
//                    that is totalled
//     nearest        the declared index with the vector, or what finds the documents of the filter
//     a group        its declared index, or the ways of its collections side by side (`GroupPlanner`)
//     nothing of it  the collection, or the names that the filter leaves, is scanned
//
// Where an order and a filter ask for different indexes, it comes down to numbers. With N documents of which n meet the
// filter, finding and sorting them costs n; walking the order until L results are found costs about L·N/n. They break
// even at n = √(L·N), so the entries of the filter are counted up to there, which costs no more than either.

import Basics
import DocumentModel
internal import Indexing
internal import StoreFormat

struct AccessPlanner {
    let plan: QueryPlan
    let collection: IndexedCollection
    let disjuncts: [Disjunct]
    /// The numbers of the fields that the query names; none for a field that no document ever had.
    let numbers: [FieldPath: UInt64]

    /// Chooses; nil leaves it to a scan.
    ///
    /// - Throws: `INVALID_ARGUMENT` if the plan is held to an index that does not serve it.
    static func choose<Source: QuerySource & ~Copyable>(
        _ plan: QueryPlan, _ source: borrowing Source
    ) throws(RequestError) -> IndexAccess? {
        if case .only(let identifier) = plan.options.indexes { return try forced(identifier, plan, source) }
        if plan.points != nil || plan.options.indexes == .names { return nil }
        let disjuncts = Disjunct.all(of: plan.matcher.filter)
        guard case .collection(let path) = plan.matcher.scope else { return try group(plan, disjuncts, source) }
        guard let collection = try source.indexedCollection(path) else { return nil }
        let planner = AccessPlanner(
            plan: plan, collection: collection, disjuncts: disjuncts,
            numbers: try numbers(of: plan, disjuncts, source))
        let declared = DeclaredAccess(
            plan, source.declaredIndexes(of: plan.matcher.scope.collectionID), collection: collection.number,
            disjuncts: disjuncts)
        var access: IndexAccess?
        switch plan.strategy {
        case .sort(let orders) where declared != nil:
            access = declared?.ordered(by: orders, bounds: planner.cursorBounds(orders[0].direction))
            if access == nil { access = try planner.sorted(orders, source) }
        case .stream(let direction):
            access = plan.isUnordered ? try planner.filtered(source) : planner.merge(direction)
        case .sort(let orders):
            access = try planner.sorted(orders, source)
        case .nearest:
            access = try planner.filtered(source)
            if var vectors = declared?.ordered(by: [Order(field: .documentName)], bounds: []) {
                // Distances are sorted, not names.
                vectors.isOrdered = false
                access = try smaller(vectors, access, atMost: planner.entriesToBreakEven, source)
            }
        }
        guard var access else { return nil }
        access.countsOnly = plan.isCount && access.isExact && plan.nearest == nil && !source.locksDocuments
        return access
    }

    /// The access by one declared index alone.
    private static func forced<Source: QuerySource & ~Copyable>(
        _ identifier: String, _ plan: QueryPlan, _ source: borrowing Source
    ) throws(RequestError) -> IndexAccess {
        let disjuncts = Disjunct.all(of: plan.matcher.filter)
        var collection: IndexedCollection? = .group
        if case .collection(let path) = plan.matcher.scope { collection = try source.indexedCollection(path) }
        let indexes = source.declaredIndexes(of: plan.matcher.scope.collectionID).filter {
            $0.shape.identifier == identifier
        }
        guard let index = indexes.first,
            let declared = DeclaredAccess(plan, indexes, collection: collection?.number ?? 0, disjuncts: disjuncts)
        else {
            throw .invalidArgument(
                "Invalid index \"\(identifier)\": no index with this id is built for \(plan.matcher.scope).")
        }
        // Nothing is read in a collection that never had a document.
        let planner = AccessPlanner(
            plan: plan, collection: collection ?? .group, disjuncts: disjuncts, numbers: [:])
        guard var access = planner.access(by: declared, sorting: true) else {
            throw .invalidArgument(
                "Invalid index \"\(identifier)\": the index \(index.shape.properties) serves neither the conditions "
                    + "nor the order of the query.")
        }
        if collection == nil { access.parts = [] }
        access.countsOnly = plan.isCount && access.isExact && plan.nearest == nil && !source.locksDocuments
        return access
    }

    /// A collection group goes through its declared indexes, or if these do not serve through those of its collections.
    private static func group<Source: QuerySource & ~Copyable>(
        _ plan: QueryPlan, _ disjuncts: [Disjunct], _ source: borrowing Source
    ) throws(RequestError) -> IndexAccess? {
        let declared = try declaredGroup(plan, disjuncts, source)
        if declared != nil, plan.nearest == nil { return declared }
        guard let planner = try GroupPlanner(plan, disjuncts, source), var access = try planner.choose(source) else {
            return declared
        }
        // An index that ends with the vector may hold no field of the filter.
        if let declared {
            return try smaller(
                declared, access, atMost: entriesToBreakEven(plan, documents: planner.documentCount), source)
        }
        access.countsOnly = plan.isCount && access.isExact && plan.nearest == nil && !source.locksDocuments
        return access
    }

    private static func declaredGroup<Source: QuerySource & ~Copyable>(
        _ plan: QueryPlan, _ disjuncts: [Disjunct], _ source: borrowing Source
    ) throws(RequestError) -> IndexAccess? {
        let indexes = source.declaredIndexes(of: plan.matcher.scope.collectionID)
        guard let declared = DeclaredAccess(plan, indexes, collection: 0, disjuncts: disjuncts) else { return nil }
        let planner = AccessPlanner(plan: plan, collection: .group, disjuncts: disjuncts, numbers: [:])
        return planner.access(by: declared, sorting: false)
    }

    /// The access by declared indexes: in the order of the query, or if that does not matter in any.
    ///
    /// - Parameter sorting: whether results may be sorted that the indexes have in another order.
    private func access(by declared: DeclaredAccess, sorting: Bool) -> IndexAccess? {
        switch plan.strategy {
        case .sort(let orders):
            let ordered = declared.ordered(by: orders, bounds: cursorBounds(orders[0].direction))
            if ordered != nil || !sorting { return ordered }
        case .stream(let direction) where !plan.isUnordered:
            return declared.ordered(by: [Order(field: .documentName, direction: direction)], bounds: [])
        case .stream, .nearest: break
        }
        // By values alone, or by a range of one field.
        let name = Order(field: .documentName)
        var access = declared.ordered(by: [name], bounds: [])
        if access == nil, let field = FilterRanges.onlyField(of: disjuncts) {
            access = declared.ordered(by: [Order(field: field), name], bounds: [])
        }
        access?.isOrdered = false
        return access
    }

    /// The numbers of all fields that the query names.
    static func numbers<Source: QuerySource & ~Copyable>(
        of plan: QueryPlan, _ disjuncts: [Disjunct], _ source: borrowing Source
    ) throws(RequestError) -> [FieldPath: UInt64] {
        var numbers: [FieldPath: UInt64] = [:]
        let fields =
            disjuncts.flatMap { $0.fieldTests.map(\.path) } + plan.matcher.order.fields + plan.matcher.requiredFields
        for field in fields where numbers[field] == nil { numbers[field] = try source.fieldNumber(of: field) }
        return numbers
    }

    // MARK: Access paths

    /// A union of zigzag merges, if every alternative of the filter names values.
    func merge(_ direction: SortDirection) -> IndexAccess? {
        var members: [ZigzagMerge] = []
        var isExact = plan.matcher.requiredFields.isEmpty && plan.names == .all && plan.matcher.cursors.isEverything
        for disjunct in disjuncts {
            let tests = disjunct.fieldTests.filter(isIndexedEquality)
            if tests.isEmpty { return nil }
            if tests.count < disjunct.fieldTests.count || !disjunct.nameTests.isEmpty { isExact = false }
            guard let ranges = ranges(of: tests) else { continue }
            if ranges.contains(where: \.isCut) { isExact = false }
            members.append(ZigzagMerge(ranges: ranges))
        }
        return IndexAccess(
            parts: AccessPart.union(members, direction, disjuncts), direction: direction, isOrdered: true,
            isExact: isExact)
    }

    /// What the range of names leaves of the suffixes of ranges, which are ids; nil if nothing.
    private var suffixesOfNames: ByteInterval? {
        guard case .collection(let path) = plan.matcher.scope, plan.names != .all else { return .all }
        guard let ids = plan.names.ids(in: path) else { return nil }
        var suffixes = ByteInterval.all
        if let lower = ids.lower, let segment = AccessPlanner.segment(of: lower.id) {
            suffixes.lower = segment + (lower.isInclusive ? [] : [KeyLayout.afterEverything])
        }
        if let upper = ids.upper, let segment = AccessPlanner.segment(of: upper.id) {
            suffixes.upper = segment + (upper.isInclusive ? [KeyLayout.afterEverything] : [])
        }
        return suffixes.isEmpty ? nil : suffixes
    }

    /// The segment of an id; nil if it is cut.
    private static func segment(of id: [UInt8]) -> [UInt8]? {
        var segment = ByteBuffer(capacity: 64)
        DocumentKey.appendID(id.byteSpan, into: &segment)
        return segment.count > KeyLayout.plainBytesMax ? nil : Array(segment.copyBytes().dropFirst())
    }

    /// The ranges of entries with the values of the tests; nil if nothing is in them all, because no document ever had
    /// one of the fields or no name is left.
    private func ranges(of tests: [FieldTest]) -> [IndexRange]? {
        guard let suffixes = suffixesOfNames else { return nil }
        var ranges: [IndexRange] = []
        for test in tests {
            guard let use = use(of: test.path, isOfElements: !test.condition.isOfValue) else { return nil }
            var range = IndexRange(use, value: test.points[0], condition: test.description)
            range.suffixes = suffixes
            if !ranges.contains(range) { ranges.append(range) }
        }
        return ranges
    }

    /// Whatever finds the documents of the filter with the least entries.
    func filtered<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) -> IndexAccess? {
        if var access = merge(.ascending) {
            access.isOrdered = false
            return access
        }
        // Alternatives by equal values make one part, those by intervals one for each index.
        var equal: [Disjunct] = []
        var ranged: [(field: FieldPath, disjuncts: [Disjunct])] = []
        for disjunct in disjuncts {
            if disjunct.fieldTests.contains(where: isIndexedEquality) {
                equal.append(disjunct)
            } else if let field = try bestRange(of: disjunct, source) {
                if let known = ranged.firstIndex(where: { $0.field == field }) {
                    ranged[known].disjuncts.append(disjunct)
                } else {
                    ranged.append((field, [disjunct]))
                }
            } else {
                return nil
            }
        }
        var parts: [AccessPart] = []
        var isExact = equal.isEmpty && ranged.count == 1 && plan.names == .all && plan.matcher.cursors.isEverything
        if !equal.isEmpty {
            let planner = AccessPlanner(plan: plan, collection: collection, disjuncts: equal, numbers: numbers)
            if let merged = planner.merge(.ascending) { parts += merged.parts }
        }
        for (field, disjuncts) in ranged {
            let intervals = intervals(of: field, in: disjuncts)
            if !intervals.isExact || !isExpressed(disjuncts, by: field) { isExact = false }
            guard let use = use(of: field, isOfElements: false), !intervals.intervals.isEmpty else { continue }
            parts.append(AccessPart(scanning: use, intervals.intervals, .ascending, disjuncts))
        }
        if let field = ranged.first?.field, plan.matcher.requiredFields.contains(where: { $0 != field }) {
            isExact = false
        }
        return IndexAccess(parts: parts, direction: .ascending, isExact: isExact)
    }

    /// The index whose order is the query's, or what finds the documents of the filter, whichever is less work.
    private func sorted<Source: QuerySource & ~Copyable>(
        _ orders: [Order], _ source: borrowing Source
    ) throws(RequestError) -> IndexAccess? {
        let filtered = try filtered(source)
        guard let ordered = ordered(orders) else { return filtered }
        guard let filtered, !hasOneField(orders[0].field) else { return ordered }
        let breakEven = entriesToBreakEven
        return try filtered.estimate(in: source, atMost: breakEven) < breakEven ? filtered : ordered
    }

    /// The index of the first order, if its entries lie in the order of the query.
    func ordered(_ orders: [Order]) -> IndexAccess? {
        guard orders.count == 2, !orders[0].field.isDocumentName, orders[1].field.isDocumentName,
            orders[0].direction == orders[1].direction
        else { return nil }
        let field = orders[0].field
        guard collection.fields.has(.values, of: field) else { return nil }
        var intervals = intervals(of: field, in: disjuncts)
        for bound in cursorBounds(orders[0].direction) {
            intervals = intervals.intersection(ValueIntervals(intervals: [bound]))
        }
        guard let use = use(of: field, isOfElements: false), !intervals.intervals.isEmpty else {
            return IndexAccess(parts: [], direction: orders[0].direction, isOrdered: true)
        }
        let part = AccessPart(scanning: use, intervals.intervals, orders[0].direction, disjuncts)
        return IndexAccess(parts: [part], direction: orders[0].direction, isOrdered: true)
    }

    // MARK: Helpers

    /// Whether the condition names values and they have entries.
    private func isIndexedEquality(_ test: FieldTest) -> Bool {
        test.isEquality && collection.fields.has(test.condition.isOfValue ? .values : .elements, of: test.path)
    }

    /// Whether all conditions are on the values of one field.
    func hasOneField(_ field: FieldPath) -> Bool {
        disjuncts.allSatisfy { disjunct in
            disjunct.fieldTests.allSatisfy { $0.path == field && $0.condition.isOfValue }
        }
    }

    /// An automatic index of the collection; nil if no document ever had the field.
    private func use(of field: FieldPath, isOfElements: Bool) -> IndexUse? {
        guard let number = numbers[field] else { return nil }
        var prefix = ByteBuffer(capacity: 16)
        IndexKey.begin(isOfElements ? .elements : .values, collection: collection.number, field: number, into: &prefix)
        return IndexUse(kind: isOfElements ? .elements : .values, field: field, prefix: prefix.copyBytes())
    }

    private func intervals(of field: FieldPath, in disjuncts: [Disjunct]) -> ValueIntervals {
        disjuncts.reduce(ValueIntervals(intervals: [])) { $0.union($1.intervals(of: field)) }
    }

    private func isExpressed(_ disjuncts: [Disjunct], by field: FieldPath) -> Bool {
        disjuncts.allSatisfy { disjunct in
            disjunct.nameTests.isEmpty && disjunct.fieldTests.allSatisfy { $0.path == field && $0.condition.isOfValue }
        }
    }

    /// The field whose conditions leave the least entries; nil if there is no condition on an indexed field.
    private func bestRange<Source: QuerySource & ~Copyable>(
        of disjunct: Disjunct, _ source: borrowing Source
    ) throws(RequestError) -> FieldPath? {
        var best: FieldPath?
        var least = Int.max
        if disjunct.fieldTests.isEmpty { return try rareField(source) }
        let fields = Set(disjunct.fieldTests.map(\.path)).filter { collection.fields.has(.values, of: $0) }.sorted()
        for field in fields {
            if fields.count == 1 { return field }
            guard let use = use(of: field, isOfElements: false) else { return field }
            let part = AccessPart(scanning: use, disjunct.intervals(of: field).intervals, .ascending, [disjunct])
            let count = try part.entries.estimate(in: source, atMost: min(least, entriesToBreakEven))
            if count < least { (best, least) = (field, count) }
        }
        return best
    }

    /// A field that results must have without a condition on it, if few documents have it: sums and orders ask for
    /// such.
    private func rareField<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source
    ) throws(RequestError) -> FieldPath? {
        let breakEven = entriesToBreakEven
        // The order's first field needs no counting: its index holds no other documents.
        let walked = plan.isUnordered ? nil : plan.matcher.order.components.first?.field
        for field in plan.matcher.requiredFields where field != walked && collection.fields.has(.values, of: field) {
            guard let use = use(of: field, isOfElements: false) else { return field }
            let part = AccessPart(scanning: use, [.all], .ascending, disjuncts)
            if try part.entries.estimate(in: source, atMost: breakEven) < breakEven { return field }
        }
        return nil
    }

    /// Entries up to which finding and sorting is less work than walking the order.
    private var entriesToBreakEven: Int {
        AccessPlanner.entriesToBreakEven(plan, documents: collection.documentCount)
    }

    static func entriesToBreakEven(_ plan: QueryPlan, documents: Int) -> Int {
        // A search for neighbours goes through all that it finds, whatever its limit.
        guard let limit = plan.limit, plan.nearest == nil else { return max(64, min(documents / 4, 100_000)) }
        return max(64, Int((Double(limit + plan.offset + 1) * Double(max(documents, 1))).squareRoot()))
    }

    /// The access with fewer entries, counted up to `atMost`; the first of two that are alike.
    private static func smaller<Source: QuerySource & ~Copyable>(
        _ first: IndexAccess, _ second: IndexAccess?, atMost: Int, _ source: borrowing Source
    ) throws(RequestError) -> IndexAccess {
        guard let second else { return first }
        let most = try first.estimate(in: source, atMost: atMost)
        return try second.estimate(in: source, atMost: most) < most ? second : first
    }

    /// What the cursors leave of the index of the first order.
    fileprivate func cursorBounds(_ direction: SortDirection) -> [ByteInterval] {
        var bounds: [ByteInterval] = []
        if let start = plan.startAt, !start.values.isEmpty {
            bounds.append(bound(at: start, isStart: true, isForward: direction == .ascending))
        }
        if let end = plan.endAt, !end.values.isEmpty {
            bounds.append(bound(at: end, isStart: false, isForward: direction == .ascending))
        }
        return bounds
    }

    /// One cursor's bound, equal values included where the cursor continues with names: the cursors are
    /// compared as wholes with every candidate anyway.
    private func bound(at cursor: Cursor, isStart: Bool, isForward: Bool) -> ByteInterval {
        let key = IndexedKey(cursor.values[0])
        let isLower = isStart == isForward
        let isInclusive = isStart == cursor.before
        let keepsEqual = isInclusive || cursor.values.count > 1 || key.isCut
        var position = isLower == keepsEqual ? key.bytes : key.end
        if cursor.values.count > 1, isNameNext, !key.isCut, let segment = idSegment(at: cursor.values[1]) {
            position = key.bytes + segment + (isLower ? [] : [KeyLayout.afterEverything])
        }
        return isLower
            ? ByteInterval(lower: position, upper: [KeyLayout.afterEverything])
            : ByteInterval(lower: [], upper: position)
    }

    /// Whether names follow the first order, and in its direction: then bytes of ids follow those of values.
    private var isNameNext: Bool {
        let orders = plan.matcher.order.components
        return orders[1].field.isDocumentName && orders[1].direction == orders[0].direction
    }

    /// The segment of the id of a name cursor, if that is a document of the collection and is not cut.
    private func idSegment(at value: EncodedValue) -> [UInt8]? {
        guard case .collection(let collection) = plan.matcher.scope,
            let position = try? NamePosition(cursorValue: value, database: plan.database),
            case .at(let id) = NameRange.Bound(position: position, isInclusive: true).place(in: collection)
        else { return nil }
        return AccessPlanner.segment(of: id)
    }
}

extension IndexedCollection {
    /// Stands for all collections of a group, whose declared indexes are not apart by collection.
    fileprivate static let group = IndexedCollection(number: 0, documentCount: 0)
}

/// What the conditions of a filter have in common.
private enum FilterRanges {
    /// The one field that all conditions of all alternatives are about. None if an alternative has no condition on a
    /// field: documents without the field can meet it.
    static func onlyField(of disjuncts: [Disjunct]) -> FieldPath? {
        if disjuncts.contains(where: \.fieldTests.isEmpty) { return nil }
        let fields = Set(disjuncts.flatMap { $0.fieldTests.map(\.path) })
        return fields.count == 1 ? fields.first : nil
    }
}
