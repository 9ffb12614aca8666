// The head of a pipeline: the stages that become one query, so that the planner of queries chooses its indexes.
//
//     collection(c) where(A) where(B) sort(s) offset(o) limit(l) rest...
//     └──────────────────── one query ─────────────────────────┘

internal import Basics
internal import DocumentModel
internal import Expressions
internal import QueryEngine

/// A query with the stages that it stands for.
struct PipelineHead {
    /// A condition of a stage `where`.
    struct Condition {
        var value: PipelineValue
        /// The number of the stage: the source has number 1.
        let stage: Int
    }

    /// What is asked of the storage, for the planner and for access control.
    private(set) var query: StructuredQuery
    /// Stages after the source that the query stands for.
    private(set) var stageCount = 0
    /// Conditions that the query does not check.
    private(set) var residual: [Condition] = []
    private(set) var plan: QueryPlan
    /// A field that the order of the query needs and the pipeline does not: rows without it come after the query's,
    /// from ``unordered``.
    private(set) var absentField: FieldPath?
    /// The aggregation of plain fields that follows, if the query checks all conditions. The plan of one that only
    /// counts gives the number of documents alone.
    private(set) var aggregation: FieldAggregation?

    /// Whether a query that is ordered has the same results: it leaves out rows without a field that it compares for
    /// inequality.
    var isSaidByQuery: Bool {
        guard query.orderBy.isEmpty, let filter = query.filter else { return true }
        return !FilterTranslation.hasRange(filter)
    }

    /// The query without its order.
    var unordered: StructuredQuery {
        var result = query
        result.orderBy = []
        return result
    }

    /// - Parameters:
    ///   - stages: those after the source.
    ///   - parent: the full name of the documents root or of a document.
    ///   - folding: what is constant in the pipeline.
    ///   - options: those of the query.
    init(
        _ selector: CollectionSelector, _ stages: ArraySlice<PipelineStage>, parent: String,
        _ folding: ConstantFolding, options: QueryOptions = QueryOptions()
    ) throws(RequestError) {
        let everything = StructuredQuery(from: [selector])
        let wheres = stages.prefix { $0.name == "where" && $0.options.isEmpty && $0.arguments.count == 1 }
        var rest = stages[(stages.startIndex + wheres.count)...]
        let written = wheres.enumerated().flatMap { (place, stage) in
            FilterTranslation.conjuncts(stage.arguments[0]).map { Condition(value: $0, stage: place + 2) }
        }
        var conditions = written.map { Condition(value: folding.fold($0.value), stage: $0.stage) }
        let all = conditions.map(\.value)
        var filters: [Filter] = []
        conditions.removeAll { condition in
            guard let filter = FilterTranslation.filter(condition.value) else { return false }
            filters.append(filter)
            return true
        }
        var candidate = everything
        candidate.filter = filters.count > 1 ? .and(filters) : filters.first
        let (isSort, keepsOrder) = (rest.first?.name == "sort", PipelineHead.keepsOrder(rest))
        if isSort || keepsOrder || !conditions.isEmpty {
            var existing = candidate.filter.map(FilterTranslation.fields(requiredBy:)) ?? []
            existing.insert(.documentName)
            let values = conditions.map(\.value)
            if let orders = PipelineHead.orders(rest.first, candidate.filter, existing, values) {
                candidate.orderBy = orders
                existing.formUnion(orders.map(\.field))
                rest = rest.dropFirst()
            } else if keepsOrder {
                absentField = PipelineHead.takeImpliedOrder(of: all, existing, values, into: &candidate)
                existing.formUnion(candidate.orderBy.map(\.field))
            }
            conditions.removeAll { FilterTranslation.existingField($0.value).map(existing.contains) ?? false }
        }
        if conditions.isEmpty, absentField == nil { PipelineHead.takeBounds(&rest, into: &candidate) }
        // The pipeline checks all conditions itself if the planner refuses the query.
        if conditions.isEmpty, absentField == nil { aggregation = rest.first.flatMap(FieldAggregation.init) }
        let isCount = aggregation?.isCount == true && candidate.orderBy.isEmpty
        guard let plan = try? PipelineHead.plan(candidate, parent: parent, options, isCount: isCount) else {
            query = everything
            self.plan = try PipelineHead.plan(everything, parent: parent, options)
            residual = written
            stageCount = wheres.count
            absentField = nil
            aggregation = nil
            return
        }
        query = candidate
        self.plan = plan
        residual = conditions
        stageCount = rest.startIndex - stages.startIndex
    }

    /// Whether the order of the rows matters to what follows.
    private static func keepsOrder(_ rest: ArraySlice<PipelineStage>) -> Bool {
        guard let next = rest.first(where: { $0.name != "select" && $0.name != "add_fields" && $0.name != "let" })
        else { return true }
        return !["sort", "aggregate", "distinct", "sample", "find_nearest"].contains(next.name)
    }

    /// Orders the query by the fields that are compared for inequality, as queries are: if every row has them, or if
    /// the one field of `!=` is all that rows may lack.
    ///
    /// - Parameters:
    ///   - all: the conditions of the pipeline.
    ///   - conditions: those of them that the query does not check.
    /// - Returns: that field.
    private static func takeImpliedOrder(
        of all: [PipelineValue], _ existing: Set<FieldPath>, _ conditions: [PipelineValue],
        into query: inout StructuredQuery
    ) -> FieldPath? {
        let compared = all.reduce(into: Set<FieldPath>()) { $0.formUnion(FilterTranslation.inequalityFields($1)) }
        let known = existing.union(conditions.compactMap(FilterTranslation.existingField))
        if compared.isEmpty || compared.contains(.documentName) { return nil }
        let isKnown = compared.isSubset(of: known)
        if !isKnown, compared.count > 1 { return nil }
        query.orderBy = compared.sorted().map { Order(field: $0, direction: .ascending) }
        return isKnown ? nil : compared.first
    }

    static func plan(
        _ query: StructuredQuery, parent: String, _ options: QueryOptions, isCount: Bool = false
    ) throws(RequestError) -> QueryPlan {
        try parent.withUTF8Span { (parent) throws(RequestError) in
            if isCount { return try QueryPlan(counting: query, parent: parent, options: options) }
            return query.orderBy.isEmpty
                ? try QueryPlan(unordered: query, parent: parent, options: options)
                : try QueryPlan(query, parent: parent, options: options)
        }
    }

    /// The orders of a sort stage, if it sorts by fields that every row has.
    static func orders(
        _ stage: PipelineStage?, _ filter: Filter?, _ existing: Set<FieldPath>, _ conditions: [PipelineValue]
    ) -> [Order]? {
        guard let stage, stage.name == "sort", stage.options.isEmpty, !stage.arguments.isEmpty,
            filter.map({ !FilterTranslation.hasRangeInDisjunction($0) }) ?? true
        else { return nil }
        let fields = existing.union(conditions.compactMap(FilterTranslation.existingField))
        var orders: [Order] = []
        for argument in stage.arguments {
            guard let ordering = try? SortArgument(argument), let field = FilterTranslation.field(ordering.expression),
                fields.contains(field)
            else { return nil }
            orders.append(Order(field: field, direction: ordering.isDescending ? .descending : .ascending))
        }
        return orders
    }

    /// Takes an offset and then a limit, or one of them, off the stages.
    static func takeBounds(_ rest: inout ArraySlice<PipelineStage>, into query: inout StructuredQuery) {
        if let stage = rest.first, stage.name == "offset", let offset = bound(stage) {
            query.offset = offset
            rest = rest.dropFirst()
        }
        if let stage = rest.first, stage.name == "limit", let limit = bound(stage) {
            query.limit = limit
            rest = rest.dropFirst()
        }
    }

    private static func bound(_ stage: PipelineStage) -> Int32? {
        guard stage.options.isEmpty, stage.arguments.count == 1, let count = try? stage.count(0) else { return nil }
        return Int32(exactly: count)
    }
}

/// What a sort stage sorts by.
struct SortArgument {
    let expression: PipelineValue
    let isDescending: Bool

    /// Reads a map with the keys `expression` and, if it is not ascending, `direction`.
    init(_ value: PipelineValue) throws(RequestError) {
        var expression: PipelineValue?
        var direction = "ascending"
        for entry in value.entries ?? [] {
            switch entry.name {
            case "expression": expression = entry.value
            case "direction": direction = entry.value.text ?? ""
            default: throw .invalidArgument("An ordering of the stage sort has the unknown key \"\(entry.name)\".")
            }
        }
        guard let expression, direction == "ascending" || direction == "descending" else {
            throw .invalidArgument(
                "The stage sort takes maps with an expression and the direction \"ascending\" or \"descending\".")
        }
        self.expression = expression
        isDescending = direction == "descending"
    }
}
