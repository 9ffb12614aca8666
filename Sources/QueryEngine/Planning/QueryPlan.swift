// What a query asks for: checked against Firestore's rules, its order completed, its strategy chosen. No storage is
// read.
//
//     SELECT a WHERE a > 5 AND b == "x" ORDER BY a LIMIT 10 OFFSET 2      without indexes becomes
//
//     Project a
//     └─ Limit 10, offset 2
//        └─ TopK 12 by (a ASC, __name__ ASC)
//           └─ Filter a > 5 AND b == "x"
//              └─ CollectionScan users
//
// A query in name order streams: its results come in the order of the scan. Any other is sorted, by its orders or by
// the distance from a vector, unless an index has its order.

package import Basics
package import DocumentModel

/// Which indexes a query may use.
package enum IndexChoice: Sendable, Equatable {
    /// Those that the planner chooses.
    case any
    /// None: documents are found by their names alone.
    case names
    /// The declared one with this ``IndexShape/identifier``. A query that it does not serve fails with
    /// `INVALID_ARGUMENT`.
    case only(String)
}

/// Bounds on the work and memory of one query.
package struct QueryOptions: Sendable {
    /// Bytes that a query may hold to sort results. A sorted query whose results need more is executed in several
    /// passes over its scope, each of which gives out the next run of results that fits.
    package var sortBufferBytes = 32 << 20

    /// Documents looked at before `QueryExecution.next` returns, with or without results, so that an event loop can
    /// serve other calls. One of more than two kilobytes counts as several.
    package var candidatesPerStep = 4096

    /// Queries that the cloud would refuse because there is no index are refused; otherwise every query runs.
    package var requiresIndexes = false

    /// The indexes by which documents may be found.
    package var indexes = IndexChoice.any

    /// Each operator is to be counted and timed.
    package var measuresOperators = false

    package init() {}
}

/// A query that passed every rule, ready to run. Immutable; may be run many times and from any thread.
package struct QueryPlan: Sendable {
    enum Strategy: Sendable, Equatable {
        /// Results in the order of the scan.
        case stream(SortDirection)
        /// Results sorted by these orders.
        case sort([Order])
        /// Results sorted by their distance from a vector.
        case nearest(NearestSearch)
    }

    /// The database queried.
    package let database: DatabaseName

    /// The documents that the query would return without offset and limit.
    package let matcher: QueryMatcher

    package let options: QueryOptions

    /// The order in which results come; unspecified for totals over all results.
    package var order: EffectiveOrder { matcher.order }

    /// Results to skip.
    package let offset: Int

    /// The most results to return; nil is unlimited.
    package let limit: Int?

    /// The fields to return; nil returns all.
    package let selection: FieldSelection?
    let strategy: Strategy
    /// The order of candidates does not matter: totals over everything that matches.
    let isUnordered: Bool
    /// Only the number of results is asked for.
    let isCount: Bool
    /// The cursors as the client wrote them.
    let startAt: Cursor?
    let endAt: Cursor?
    /// The names that the scan visits.
    let names: NameRange

    /// The paths of the only documents that can be results, in the order of the scan, when the filter names them: these
    /// are looked up instead of scanned for.
    let points: [[UInt8]]?

    /// The search for neighbours that comes last, if there is one.
    var nearest: NearestSearch? {
        if case .nearest(let search) = strategy { search } else { nil }
    }

    /// The direction of a scan that streams.
    var direction: SortDirection {
        if case .stream(let direction) = strategy { direction } else { .ascending }
    }

    /// The orders that tell results apart, the name last unless it comes earlier.
    var sortOrders: [Order] {
        switch strategy {
        case .sort(let orders): orders
        case .stream(let direction): [Order(field: .documentName, direction: direction)]
        case .nearest: []
        }
    }

    /// Whether documents must be compared with the cursors one by one, because `names` does not say it all.
    var comparesCursors: Bool {
        !matcher.cursors.isEverything && (order.directionByNameAlone == nil || order.components.count > 1)
    }

    /// Plans a query.
    ///
    /// - Parameters:
    ///   - parent: full resource name of the documents root or of a document.
    ///   - condition: what results must meet besides the filter.
    /// - Throws: `INVALID_ARGUMENT` with the rule that the query breaks.
    package init(
        _ query: StructuredQuery, parent: RawSpan, options: QueryOptions = QueryOptions(),
        condition: (any DocumentCondition)? = nil
    ) throws(RequestError) {
        try self.init(query, parent: parent, options: options, totalling: nil, condition: condition)
    }

    /// Plans a query whose results may come in any order: no field need exist because the filter compares it.
    ///
    /// - Parameter query: without orders, cursors and a search for neighbours.
    package init(
        unordered query: StructuredQuery, parent: RawSpan, options: QueryOptions = QueryOptions()
    ) throws(RequestError) {
        try self.init(query, parent: parent, options: options, totalling: nil, isUnordered: true)
    }

    /// Plans the count of the results of a query as ``init(unordered:parent:options:)`` takes it: rows may lack fields.
    package init(
        counting query: StructuredQuery, parent: RawSpan, options: QueryOptions = QueryOptions()
    ) throws(RequestError) {
        try self.init(query, parent: parent, options: options, totalling: [], isUnordered: true)
    }

    /// Plans look-ups of documents by their paths below `documents`. Those that do not exist give nothing.
    package init(documents paths: [[UInt8]], in database: DatabaseName, options: QueryOptions = QueryOptions()) {
        let order = EffectiveOrder.byName
        let scope = QueryScope.descendants(parent: [], collectionID: nil)
        self.init(
            database: database, matcher: QueryMatcher(scope: scope, filter: .all, order: order, cursors: .everything),
            StructuredQuery(), nil, options: options, totalling: nil, isUnordered: true, points: paths)
    }

    /// Plans a query for its results or for totals over them.
    ///
    /// - Parameter totalling: the fields that sums and averages need, or nil for a query that returns documents.
    init(
        _ query: StructuredQuery, parent: RawSpan, options: QueryOptions, totalling: [FieldPath]?,
        isUnordered: Bool = false, condition further: (any DocumentCondition)? = nil
    ) throws(RequestError) {
        let parent = try ResourceNameView(resource: parent)
        let database = DatabaseName(of: parent)
        if query.offset < 0 { throw .invalidArgument("offset is negative") }
        if let limit = query.limit, limit < 0 { throw .invalidArgument("limit is negative") }
        let scope = try QueryScope(query.from, parent: parent)
        if let filter = query.filter { try FilterRules.checkWritten(filter) }
        let condition = query.filter?.withoutRepeats
        if let condition, let written = query.filter { try FilterRules.check(condition, written: written) }
        try FilterRules.checkParts(condition, orders: query.orderBy.count, isBelowDocument: parent.isDocument)
        try QueryPlan.checkNameOnly(query, scope)
        let filter = try condition.map { (filter) throws(RequestError) in
            try CompiledFilter(filter, database: database)
        }
        let order = try EffectiveOrder(
            explicit: query.orderBy,
            inequalityFields: isUnordered ? [] : condition?.inequalityFields ?? [],
            totalled: totalling ?? [],
            isByName: scope.isBelowDocument || (condition.map(FilterRules.usesName) ?? false))
        let nearest = try query.findNearest.map { (stage) throws(RequestError) in
            try NearestSearch(stage, of: query, in: order)
        }
        let cursors = try CursorRange(startAt: query.startAt, endAt: query.endAt, order: order, database: database)
        self.init(
            database: database,
            matcher: QueryMatcher(
                scope: scope, filter: filter ?? .all, order: order, cursors: cursors, condition: further),
            query, nearest, options: options, totalling: totalling, isUnordered: isUnordered)
    }

    private init(
        database: DatabaseName, matcher: QueryMatcher, _ query: StructuredQuery, _ nearest: NearestSearch?,
        options: QueryOptions, totalling: [FieldPath]?, isUnordered: Bool, points: [[UInt8]]? = nil
    ) {
        self.database = database
        self.matcher = matcher
        self.options = options
        offset = Int(query.offset)
        limit = nearest?.limit ?? query.limit.map(Int.init)
        selection = FieldSelection(query.select)
        // A count does not depend on the order, nor does any total over everything that matches.
        let isOrderIrrelevant = totalling.map { $0.isEmpty || (query.offset == 0 && query.limit == nil) } ?? isUnordered
        self.isUnordered = isOrderIrrelevant
        isCount = totalling?.isEmpty ?? false
        startAt = query.startAt
        endAt = query.endAt
        strategy = nearest.map(Strategy.nearest) ?? QueryPlan.strategy(matcher, isUnordered: isOrderIrrelevant)
        names = QueryPlan.names(matcher, query, database)
        self.points = points ?? QueryPlan.points(matcher, names)
    }

    /// Queries over collections of any id, and over descendants of a document, can look at names only; those over any
    /// id only forwards.
    private static func checkNameOnly(_ query: StructuredQuery, _ scope: QueryScope) throws(RequestError) {
        let isOfAnyID = scope.collectionID.isEmpty
        guard isOfAnyID || scope.isBelowDocument else { return }
        if let field = query.filter.flatMap(FilterRules.firstField) {
            throw .invalidArgument(
                scope.isBelowDocument
                    ? "collection group queries are only allowed at the root parent"
                    : "kind is required for filter: \(field)")
        }
        if query.orderBy.contains(where: { !$0.field.isDocumentName || isOfAnyID && $0.direction == .descending }) {
            throw .invalidArgument(
                !scope.isBelowDocument || query.orderBy.allSatisfy(\.field.isDocumentName)
                    ? "kind is required for all orders except __key__ ascending"
                    : "collection group queries are only allowed at the root parent")
        }
    }

    private static func strategy(_ matcher: QueryMatcher, isUnordered: Bool) -> Strategy {
        if isUnordered { return .stream(.ascending) }
        var orders = matcher.order.components
        if matcher.cursors.isEverything {
            // A field that the filter holds to one value does not tell results apart.
            let pinned = matcher.filter.pinnedFields
            orders.removeAll { pinned.contains($0.field) }
        }
        guard let first = orders.first, first.field.isDocumentName else { return .sort(orders) }
        switch (matcher.scope, first.direction) {
        // Subtrees are walked forwards only.
        case (.descendants, .descending), (.children, .descending): return .sort(orders)
        case (_, let direction): return .stream(direction)
        }
    }

    /// The range of names outside of which there are no results.
    private static func names(_ matcher: QueryMatcher, _ query: StructuredQuery, _ database: DatabaseName) -> NameRange
    {
        var range = NameRange.all
        for test in matcher.filter.nameTests { range.narrow(by: test) }
        guard let direction = matcher.order.directionByNameAlone else { return range }
        // Planned already: the cursors' values are references. Where more values follow the name, they decide about the
        // document of that name; the range keeps it and the cursors are compared as a whole.
        if let cursor = query.startAt, let value = cursor.values.first,
            let position = try? NamePosition(cursorValue: value, database: database)
        {
            let bound = NameRange.Bound(position: position, isInclusive: cursor.before || cursor.values.count > 1)
            if direction == .ascending { range.raise(bound) } else { range.reduce(bound) }
        }
        if let cursor = query.endAt, let value = cursor.values.first,
            let position = try? NamePosition(cursorValue: value, database: database)
        {
            let bound = NameRange.Bound(position: position, isInclusive: !cursor.before || cursor.values.count > 1)
            if direction == .ascending { range.reduce(bound) } else { range.raise(bound) }
        }
        return range
    }
}

extension QueryPlan {
    /// The documents that a condition on the name lists, those in the scope and the range. None if the cursors leave
    /// none.
    private static func points(_ matcher: QueryMatcher, _ names: NameRange) -> [[UInt8]]? {
        if matcher.cursors.isNothing { return [] }
        guard let test = matcher.filter.nameTests.first(where: { $0.operation == .equal || $0.operation == .isIn })
        else { return nil }
        var paths: Set<[UInt8]> = []
        for path in test.positions.map(\.path)
        where path.count(where: { $0 == RelativePath.slash }) % 2 == 1 && matcher.scope.contains(path: path.byteSpan)
            && names.contains(path: path.byteSpan)
        {
            paths.insert(path)
        }
        return paths.sorted { ResourcePath.compare($0.byteSpan, $1.byteSpan) < 0 }
    }

    /// Whether the results are simply all documents of the scope: their number is the catalogue's.
    var isWholeScope: Bool {
        if case .only = options.indexes { return false }
        return matcher.filter.isEmpty && matcher.cursors.isEverything && offset == 0 && limit == nil
            && matcher.order.fields.isEmpty && nearest == nil
    }
}

extension CompiledFilter {
    /// Fields that can have one value only, up to equality, in documents that match.
    fileprivate var pinnedFields: Set<FieldPath> {
        var fields: Set<FieldPath> = []
        for test in fieldTests {
            switch test.condition {
            case .equal, .isNull, .isNaN: fields.insert(test.path)
            default: break
            }
        }
        return fields
    }
}

extension QueryPlan: CustomStringConvertible {
    /// The operators of the query without indexes, as a tree of text.
    package var description: String { QueryTree(self, nil).tree.description }
}
