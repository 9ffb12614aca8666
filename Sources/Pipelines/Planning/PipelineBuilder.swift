// From the stages of a request to operators.

internal import Basics
package import DocumentModel
internal import Expressions
internal import QueryEngine

/// What a pipeline asks of the storage, for access control.
package enum PipelineDemand: Sendable {
    /// Everything that a query could return.
    ///
    /// The parent is the full name of the documents root or of a document.
    case query(StructuredQuery, parent: String)
    /// Documents by their paths below `documents`.
    case documents([[UInt8]])
}

/// Builds the operators of one request.
struct PipelineBuilder {
    private let database: DatabaseName
    private let options: PipelineOptions
    private var compiler = ExpressionCompiler()
    private(set) var reads: [PipelineRead] = []
    private(set) var demands: [PipelineDemand] = []
    /// The row around the pipeline.
    private let outer: OuterRow
    /// Pipelines around this one.
    private let level: Int
    /// Where expressions with subqueries of the present stage go.
    private var resolution: SubqueryResolution?

    /// Where the stage that is built stands.
    private var place = PipelinePlace()

    var tree: ExpressionTree { compiler.tree }

    /// Where the expressions of the tree stand.
    var places: ExpressionPlaces { compiler.places }

    init(_ database: DatabaseName, _ options: PipelineOptions) {
        self.database = database
        self.options = options
        outer = .none
        level = 0
    }

    /// Builds a subquery to run it.
    init(_ database: DatabaseName, _ options: PipelineOptions, within call: SubqueryCall) {
        self.database = database
        self.options = options
        outer = .row(call.document)
        level = 1
        compiler.scope.bindings = call.bindings
    }

    /// Builds a subquery to check it: variables have no values yet.
    private init(checking names: Set<String>, _ database: DatabaseName, _ options: PipelineOptions, level: Int) {
        self.database = database
        self.options = options
        self.level = level
        outer = .unknown
        compiler.scope.bindings = Dictionary(uniqueKeysWithValues: names.map { ($0, .absent) })
    }

    /// Builds the operators of a pipeline, nested or not.
    ///
    /// - Throws: `INVALID_ARGUMENT`, or `UNIMPLEMENTED` with the name of a stage or function that is not served.
    ///
    /// - Parameter isWhole: whether no stage follows that reads variables of the rows.
    mutating func build(
        _ stages: [PipelineStage], isWhole: Bool = true
    ) throws(RequestError) -> any PipelineOperator {
        guard let first = stages.first else { throw .invalidArgument("A pipeline must have at least one stage.") }
        var rest = stages.dropFirst()
        let variables = compiler.scope.rowVariables
        compiler.scope.rowVariables = []
        defer { if isWhole { compiler.scope.rowVariables = variables } }
        var top = try placed(place.stage(1, first.name)) { (builder) throws(RequestError) in
            try builder.source(try RowSource(first, in: builder.database, within: builder.outer), &rest)
        }
        while let stage = rest.first {
            let number = rest.startIndex - stages.startIndex + 1
            rest = rest.dropFirst()
            top = try placed(place.stage(number, stage.name)) { (builder) throws(RequestError) in
                try builder.resolving(stage.hasSubqueries, top) { (builder, input) throws(RequestError) in
                    if stage.name == "sort", let limit = rest.first, limit.name == "limit", limit.arguments.count == 1 {
                        return try builder.sort(input, stage, wanted: try limit.count(0))
                    }
                    return try builder.add(stage, to: input)
                }
            }
        }
        return top
    }

    /// Builds a stage or a part of one; its errors, and those of its expressions, name the place.
    private mutating func placed<Built>(
        _ inner: PipelinePlace, _ body: (inout PipelineBuilder) throws(RequestError) -> Built
    ) throws(RequestError) -> Built {
        let surrounding = place
        place = inner
        compiler.begin(place)
        defer { place = surrounding }
        do throws(RequestError) {
            return try body(&self)
        } catch {
            throw error.placed(place)
        }
    }

    /// Builds the operators of a whole request, which may end with a stage that writes.
    mutating func buildRequest(_ stages: [PipelineStage]) throws(RequestError) -> any PipelineOperator {
        guard stages.count > 1, let last = stages.last, last.name == "update" || last.name == "delete" else {
            return try build(stages)
        }
        let reading = try build(Array(stages.dropLast()), isWhole: false)
        return try placed(place.stage(stages.count, last.name)) { (builder) throws(RequestError) in
            try builder.resolving(last.hasSubqueries, reading) { (builder, input) throws(RequestError) in
                RowWrites(input, try builder.change(last), in: builder.database)
            }
        }
    }

    private mutating func change(_ stage: PipelineStage) throws(RequestError) -> RowWrites.Change {
        try stage.refuseOptions()
        if stage.name == "delete" {
            try stage.expectArguments(0...0)
            return .delete
        }
        if stage.arguments.isEmpty || stage.arguments.count == 1 && stage.arguments[0].entries?.isEmpty == true {
            return .replace
        }
        return .update(try fields(of: stage))
    }

    // MARK: Expressions

    /// Builds an operator over an input, or, if it has subqueries, over what runs them.
    private mutating func resolving(
        _ hasSubqueries: Bool, _ input: any PipelineOperator,
        _ body: (inout PipelineBuilder, any PipelineOperator) throws(RequestError) -> any PipelineOperator
    ) throws(RequestError) -> any PipelineOperator {
        guard hasSubqueries else { return try body(&self, input) }
        let resolution = SubqueryResolution(input, in: database)
        let surrounding = self.resolution
        self.resolution = resolution
        defer { self.resolution = surrounding }
        return try body(&self, resolution)
    }

    private mutating func compile(_ value: PipelineValue) throws(RequestError) -> ExpressionID {
        let expression = try compiler.compile(value)
        guard value.hasSubqueries else { return expression }
        guard let resolution else { throw .invalidArgument("A subquery cannot stand here.") }
        // What runs was checked when the whole pipeline was built.
        let subqueries = compiler.takeSubqueries()
        if case .row = outer {} else { for found in subqueries { try check(found.subquery, found.names) } }
        return resolution.add(expression, &compiler)
    }

    private func check(_ subquery: Subquery, _ names: Set<String>) throws(RequestError) {
        guard level < PipelineLimits.nestedPipelines else {
            throw .invalidArgument(
                "Pipelines may be nested at most \(PipelineLimits.nestedPipelines) deep in expressions.")
        }
        var builder = PipelineBuilder(checking: names, database, options, level: level + 1)
        _ = try builder.build(subquery.stages)
    }

    private mutating func source(
        _ source: RowSource, _ rest: inout ArraySlice<PipelineStage>
    ) throws(RequestError) -> any PipelineOperator {
        switch source {
        case .collections(let selector, let path, let indexes):
            let parent = path.isEmpty ? database.documentsRoot : "\(database.documentsRoot)/\(path)"
            if let stage = rest.first, stage.name == SearchStage.name {
                if indexes != .any { throw .invalidArgument("The stage search reads by an index for searches.") }
                rest = rest.dropFirst()
                return try placed(place.beside(2, stage.name)) { (builder) throws(RequestError) in
                    try builder.search(try SearchStage(stage), selector, parent: parent)
                }
            }
            let folding = ConstantFolding(database: database, bindings: compiler.scope.bindings)
            var query = options.query
            query.indexes = indexes
            let head = try PipelineHead(selector, rest, parent: parent, folding, options: query)
            rest = rest.dropFirst(head.stageCount)
            if let stage = rest.first, let aggregation = head.aggregation {
                rest = rest.dropFirst()
                return try placed(place.beside(head.stageCount + 2, stage.name)) { (builder) throws(RequestError) in
                    try builder.documentAggregate(stage, aggregation, head, parent: parent)
                }
            }
            let ordered = try filtered(read(head.plan, .query(head.query, parent: parent)), by: head.residual)
            guard let field = head.absentField else { return ordered }
            let plan = try PipelineHead.plan(head.unordered, parent: parent, query)
            let isAbsent = PipelineCall(name: "is_absent", arguments: [.field(field)], options: [])
            let others = try filtered(read(plan, .query(head.unordered, parent: parent)), [.call(isAbsent)])
            return UnionAll([ordered, try filtered(others, by: head.residual)])
        case .documents(let paths):
            return read(QueryPlan(documents: paths, in: database, options: options.query), .documents(paths))
        case .literals(let rows):
            let sorted = rows.map { $0.sorted { $0.name.compareUTF8($1.name) < 0 } }
            guard rows.contains(where: { $0.contains { $0.value.hasSubqueries } }) else {
                var compiled: [[NamedExpression]] = []
                for row in sorted { compiled.append(try named(row)) }
                return LiteralRows(compiled)
            }
            var parts: [any PipelineOperator] = []
            for row in sorted {
                parts.append(
                    try resolving(true, LiteralRows([[]])) { (builder, input) throws(RequestError) in
                        RowChange(input, .add(try builder.named(row)))
                    })
            }
            return UnionAll(parts)
        }
    }

    private mutating func filtered(
        _ input: any PipelineOperator, by residual: [PipelineHead.Condition]
    ) throws(RequestError) -> any PipelineOperator {
        var top = input
        for condition in residual {
            top = try placed(place.beside(condition.stage, "where")) { (builder) throws(RequestError) in
                try builder.filtered(top, [condition.value])
            }
        }
        return top
    }

    private mutating func filtered(
        _ input: any PipelineOperator, _ conditions: [PipelineValue]
    ) throws(RequestError) -> any PipelineOperator {
        var top = input
        for condition in conditions {
            top = try resolving(condition.hasSubqueries, top) { (builder, input) throws(RequestError) in
                RowCondition(input, try builder.compile(condition))
            }
        }
        return top
    }

    /// The documents that match a search, in its order.
    private mutating func search(
        _ stage: SearchStage, _ selector: CollectionSelector, parent: String
    ) throws(RequestError) -> any PipelineOperator {
        if selector.collectionID.isEmpty {
            throw .invalidArgument("The stage search must be the first one after collection or collection_group.")
        }
        let folding = ConstantFolding(database: database, bindings: compiler.scope.bindings)
        let head = try PipelineHead(selector, [], parent: parent, folding, options: options.query)
        var settings = stage.settings
        settings.memoryBytes = options.memoryBytes
        settings.rowsPerStep = options.rowsPerStep
        var top: any PipelineOperator = read(
            head.plan, .query(head.query, parent: parent), search: settings)
        top = try filtered(top, stage.residual)
        if !stage.orderings.isEmpty || stage.isByScore, stage.settings.best == nil {
            var orderings: [RowOrdering] = []
            for ordering in stage.orderings {
                orderings.append(
                    RowOrdering(
                        expression: try compile(ordering.expression.withScore),
                        isDescending: ordering.isDescending))
            }
            if orderings.isEmpty {
                let score = try compile(.document(.score))
                orderings = [RowOrdering(expression: score, isDescending: true)]
            }
            top = RowSort(top, orderings, wanted: stage.wanted)
        }
        if stage.offset > 0 { top = RowLimit(top, offset: stage.offset) }
        if stage.limit < .max { top = RowLimit(top, limit: stage.limit) }
        if stage.addedFields.isEmpty { return top }
        let fields = stage.addedFields.map { NamedValue(name: $0.name, value: $0.value.withScore) }
        return RowChange(top, .add(try named(fields)))
    }

    private mutating func read(
        _ plan: QueryPlan, _ demand: PipelineDemand, search: SearchSettings? = nil
    ) -> PipelineRead {
        // What a subquery reads is judged when the subquery begins.
        var later: PipelineDemand?
        if case .row = outer { later = demand }
        let read = PipelineRead(plan, demand: later, search: search)
        reads.append(read)
        demands.append(demand)
        return read
    }

    // MARK: Stages

    private mutating func add(
        _ stage: PipelineStage, to input: any PipelineOperator
    ) throws(RequestError) -> any PipelineOperator {
        if stage.name != "unnest", stage.name != "find_nearest", stage.name != SearchStage.name {
            try stage.refuseOptions()
        }
        switch stage.name {
        case "where": return RowCondition(input, try compile(try stage.only()))
        case "limit":
            try stage.expectArguments(1...1)
            return RowLimit(input, limit: try stage.count(0))
        case "offset":
            try stage.expectArguments(1...1)
            return RowLimit(input, offset: try stage.count(0))
        case "sort": return try sort(input, stage, wanted: .max)
        case "select": return RowChange(input, .select(try fields(of: stage)))
        case "add_fields": return RowChange(input, .add(try fields(of: stage)))
        case "remove_fields": return RowChange(input, .remove(try removedPaths(stage)))
        case "replace_with": return try replaceWith(input, stage)
        case "let": return try bind(input, stage)
        case "distinct":
            let groups = try fields(of: stage)
            compiler.scope.rowVariables = []
            return Distinct(input, groups)
        case "aggregate":
            let aggregate = try aggregate(input, stage)
            compiler.scope.rowVariables = []
            return aggregate
        case "unnest": return try unnest(input, stage)
        case "sample": return try sample(input, stage)
        case "union": return try union(input, stage)
        case "find_nearest": return try findNearest(input, stage)
        case "update", "delete":
            throw .invalidArgument("The stage \(stage.name) may only be the last of a pipeline that is not nested.")
        case SearchStage.name:
            throw .invalidArgument("The stage search must be the first one after collection or collection_group.")
        case "collection", "collection_group", "database", "documents", "literals", "subcollection":
            throw .invalidArgument("The stage \(stage.name) may only be the first of a pipeline.")
        default: throw RequestError(.unimplemented, "The pipeline stage \(stage.name) is not implemented.")
        }
    }

    private mutating func named(_ values: [NamedValue]) throws(RequestError) -> [NamedExpression] {
        var result: [NamedExpression] = []
        for value in values {
            let fieldPlace = place.field(value.name)
            compiler.begin(fieldPlace)
            do throws(RequestError) {
                result.append(NamedExpression(name: value.name, expression: try compile(value.value)))
            } catch {
                throw error.placed(fieldPlace)
            }
        }
        if !values.isEmpty { compiler.begin(place) }
        return result
    }

    /// The fields of a stage that takes a map of them and nothing else.
    private mutating func fields(of stage: PipelineStage) throws(RequestError) -> [NamedExpression] {
        try stage.expectArguments(1...1)
        let fields = try stage.fields(0)
        if fields.isEmpty { throw .invalidArgument("The stage \(stage.name) takes at least one field.") }
        return try named(fields)
    }

    private mutating func sort(
        _ input: any PipelineOperator, _ stage: PipelineStage, wanted: Int64
    ) throws(RequestError) -> any PipelineOperator {
        try stage.refuseOptions()
        try stage.expectArguments(1...PipelineLimits.fieldsOfStage)
        var orderings: [RowOrdering] = []
        for argument in stage.arguments {
            let argument = try SortArgument(argument)
            orderings.append(
                RowOrdering(
                    expression: try compile(argument.expression), isDescending: argument.isDescending))
        }
        return RowSort(input, orderings, wanted: Int(clamping: wanted))
    }

    /// The names of variables may be any texts.
    private mutating func bind(
        _ input: any PipelineOperator, _ stage: PipelineStage
    ) throws(RequestError) -> any PipelineOperator {
        let variables = try fields(of: stage)
        compiler.scope.rowVariables.formUnion(variables.map(\.name))
        return RowChange(input, .bind(variables))
    }

    private func removedPaths(_ stage: PipelineStage) throws(RequestError) -> [ArraySlice<String>] {
        try stage.expectArguments(1...PipelineLimits.fieldsOfStage)
        var paths: [ArraySlice<String>] = []
        for argument in stage.arguments {
            guard case .field(let path) = argument else {
                throw .invalidArgument("The stage remove_fields takes fields.")
            }
            paths.append(path.segments[...])
        }
        return paths
    }

    private mutating func replaceWith(
        _ input: any PipelineOperator, _ stage: PipelineStage
    ) throws(RequestError) -> any PipelineOperator {
        try stage.expectArguments(1...2)
        var mode = RowChange.ReplaceMode.full
        if stage.arguments.count == 2 {
            guard let given = stage.arguments[1].text.flatMap(RowChange.ReplaceMode.init) else {
                throw .invalidArgument("The stage replace_with has an unknown mode.")
            }
            mode = given
        }
        return RowChange(input, .replace(try compile(stage.arguments[0]), mode))
    }

    private mutating func aggregate(
        _ input: any PipelineOperator, _ stage: PipelineStage
    ) throws(RequestError) -> any PipelineOperator {
        let parts = try aggregateParts(stage)
        return RowAggregate(input, try compiled(parts.accumulators), by: try named(parts.groups))
    }

    private mutating func compiled(_ accumulators: [NamedValue]) throws(RequestError) -> [NamedAccumulator] {
        var compiled: [NamedAccumulator] = []
        for named in accumulators { compiled.append(try accumulator(named)) }
        return compiled
    }

    private func aggregateParts(
        _ stage: PipelineStage
    ) throws(RequestError) -> (accumulators: [NamedValue], groups: [NamedValue]) {
        try stage.expectArguments(1...2)
        let accumulators = try stage.fields(0)
        if accumulators.isEmpty { throw .invalidArgument("The stage aggregate requires at least one accumulator.") }
        let groups = stage.arguments.count == 2 ? try stage.fields(1) : []
        for group in groups where accumulators.contains(where: { $0.name.hasSameUTF8(as: group.name) }) {
            throw .invalidArgument("The stage aggregate has the field \"\(group.name)\" twice.")
        }
        return (accumulators, groups)
    }

    /// The aggregation of plain fields of the documents that a query reads.
    private mutating func documentAggregate(
        _ stage: PipelineStage, _ aggregation: FieldAggregation, _ head: PipelineHead, parent: String
    ) throws(RequestError) -> DocumentAggregate {
        let accumulators = try compiled(try aggregateParts(stage).accumulators)
        return DocumentAggregate(
            read(head.plan, .query(head.query, parent: parent)), accumulators, over: aggregation.fields,
            by: aggregation.groups)
    }

    private mutating func accumulator(_ field: NamedValue) throws(RequestError) -> NamedAccumulator {
        guard case .call(let call) = field.value else {
            throw .invalidArgument("The field \"\(field.name)\" of the stage aggregate is not an accumulator.")
        }
        guard let kind = Accumulator.Kind(rawValue: call.name), call.options.isEmpty else {
            throw RequestError(.unimplemented, "The accumulator \(call.name) is not implemented.")
        }
        let least = kind == .count ? 0 : 1
        guard (least...1).contains(call.arguments.count) else {
            throw .invalidArgument("The accumulator \(call.name) takes 1 argument, not \(call.arguments.count).")
        }
        let expression = try call.arguments.first.map { (argument) throws(RequestError) in
            try compile(argument)
        }
        return NamedAccumulator(name: field.name, kind: kind, expression: expression)
    }

    private mutating func unnest(
        _ input: any PipelineOperator, _ stage: PipelineStage
    ) throws(RequestError) -> any PipelineOperator {
        try stage.refuseOptions(besides: ["index_field"])
        try stage.expectArguments(2...2)
        let alias = try fieldName(stage.arguments[1], of: stage)
        var indexField: String?
        for option in stage.options { indexField = try fieldName(option.value, of: stage) }
        return Unnest(input, try compile(stage.arguments[0]), alias: alias, indexField: indexField)
    }

    /// The name of a field of the row: a reference to it, or a text.
    private func fieldName(_ value: PipelineValue, of stage: PipelineStage) throws(RequestError) -> String {
        if case .field(let path) = value, path.count == 1 { return path.segments[0] }
        if let text = value.text, !text.isEmpty { return text }
        throw .invalidArgument("The stage \(stage.name) takes names of fields of the row.")
    }

    private func sample(
        _ input: any PipelineOperator, _ stage: PipelineStage
    ) throws(RequestError) -> any PipelineOperator {
        try stage.expectArguments(2...2)
        switch stage.arguments[1].text {
        case "documents": return SampleOfRows(input, count: Int(clamping: try stage.count(0)))
        case "percent":
            guard let share = stage.arguments[0].literal?.number?.double, (0...1).contains(share) else {
                throw .invalidArgument("The stage sample takes a share from 0 to 1.")
            }
            return SampleOfShare(input, share: share)
        default: throw .invalidArgument("The stage sample takes \"documents\" or \"percent\".")
        }
    }

    /// The rows whose vectors have the dimension of the query's, sorted by their distance.
    private mutating func findNearest(
        _ input: any PipelineOperator, _ stage: PipelineStage
    ) throws(RequestError) -> any PipelineOperator {
        try stage.refuseOptions(besides: ["limit", "distance_field"])
        try stage.expectArguments(3...3)
        let (field, query) = (stage.arguments[0], stage.arguments[1])
        guard let bytes = try? query.literal?.wireBytes(), let vector = VectorFunctions.vector(bytes) else {
            throw .invalidArgument("The stage find_nearest takes a field, a vector and a measure.")
        }
        let functions = [
            "euclidean": "euclidean_distance", "cosine": "cosine_distance", "dot_product": "dot_product",
        ]
        guard let measure = stage.arguments[2].text, let function = functions[measure] else {
            throw .invalidArgument("The measure of find_nearest is euclidean, cosine or dot_product.")
        }
        let length = PipelineCall(name: "vector_length", arguments: [field], options: [])
        let isComparable = PipelineCall(
            name: "equal", arguments: [.call(length), .literal(.integer(Int64(vector.count)))], options: [])
        let distance = try compile(
            .call(PipelineCall(name: function, arguments: [field, query], options: [])))
        var limit = Int64.max
        var distanceField: String?
        for option in stage.options {
            if option.name == "distance_field" {
                distanceField = try fieldName(option.value, of: stage)
            } else if case .integer(let count)? = option.value.literal, count >= 0 {
                limit = count
            } else {
                throw .invalidArgument("The limit of find_nearest is a number that is not negative.")
            }
        }
        var top: any PipelineOperator = RowCondition(input, try compile(.call(isComparable)))
        let ordering = RowOrdering(expression: distance, isDescending: measure == "dot_product")
        top = RowLimit(RowSort(top, [ordering], wanted: Int(clamping: limit)), limit: limit)
        guard let distanceField else { return top }
        return RowChange(top, .add([NamedExpression(name: distanceField, expression: distance)]))
    }

    private mutating func union(
        _ input: any PipelineOperator, _ stage: PipelineStage
    ) throws(RequestError) -> any PipelineOperator {
        guard case .pipeline(let stages) = try stage.only() else {
            throw .invalidArgument("The stage union takes a pipeline.")
        }
        return UnionAll([input, try build(stages)])
    }
}

extension Number {
    fileprivate var double: Double {
        switch self {
        case .integer(let value): Double(value)
        case .double(let value): value
        }
    }
}
