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

    var tree: ExpressionTree { compiler.tree }

    init(_ database: DatabaseName, _ options: PipelineOptions) {
        self.database = database
        self.options = options
    }

    /// Builds the operators of a pipeline, nested or not.
    ///
    /// - Throws: `INVALID_ARGUMENT`, or `UNIMPLEMENTED` with the name of a stage or function that is not served.
    mutating func build(_ stages: [PipelineStage]) throws(RequestError) -> any PipelineOperator {
        guard let first = stages.first else { throw .invalidArgument("A pipeline must have at least one stage.") }
        var rest = stages.dropFirst()
        var top = try source(try PipelineSource(first, in: database), &rest)
        while let stage = rest.popFirst() {
            if stage.name == "sort", let limit = rest.first, limit.name == "limit", limit.arguments.count == 1 {
                top = try sort(top, stage, wanted: try limit.count(0))
            } else {
                top = try add(stage, to: top)
            }
        }
        return top
    }

    private mutating func source(
        _ source: PipelineSource, _ rest: inout ArraySlice<PipelineStage>
    ) throws(RequestError) -> any PipelineOperator {
        switch source {
        case .collections(let selector, let path):
            let parent = path.isEmpty ? database.documentsRoot : "\(database.documentsRoot)/\(path)"
            if let stage = rest.first, stage.name == SearchStage.name {
                rest = rest.dropFirst()
                return try search(try SearchStage(stage), selector, parent: parent)
            }
            let head = try PipelineHead(selector, rest, parent: parent)
            rest = rest.dropFirst(head.stageCount)
            var top: any PipelineOperator = read(head.plan, .query(head.query, parent: parent))
            for condition in head.residual { top = RowFilter(top, try compiler.compile(condition)) }
            return top
        case .documents(let paths):
            return read(QueryPlan(documents: paths, in: database), .documents(paths))
        case .literals(let rows):
            var compiled: [[NamedExpression]] = []
            for row in rows {
                compiled.append(try named(row.sorted { $0.name.compareUTF8($1.name) < 0 }))
            }
            return LiteralRows(compiled)
        }
    }

    /// The documents that match a search, in its order.
    private mutating func search(
        _ stage: SearchStage, _ selector: CollectionSelector, parent: String
    ) throws(RequestError) -> any PipelineOperator {
        if selector.collectionID.isEmpty {
            throw .invalidArgument("The stage search must be the first one after collection or collection_group.")
        }
        let head = try PipelineHead(selector, [], parent: parent)
        var settings = stage.settings
        settings.memoryBytes = options.memoryBytes
        settings.rowsPerStep = options.rowsPerStep
        var top: any PipelineOperator = read(
            head.plan, .query(head.query, parent: parent), search: settings)
        for condition in stage.residual { top = RowFilter(top, try compiler.compile(condition)) }
        if !stage.orderings.isEmpty || stage.isByScore, stage.settings.best == nil {
            var orderings: [Ordering] = []
            for ordering in stage.orderings {
                orderings.append(
                    Ordering(
                        expression: try compiler.compile(ordering.expression.withScore),
                        isDescending: ordering.isDescending))
            }
            if orderings.isEmpty {
                let score = try compiler.compile(.document(.score))
                orderings = [Ordering(expression: score, isDescending: true)]
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
        let read = PipelineRead(plan, search: search)
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
        case "where": return RowFilter(input, try compiler.compile(try stage.only()))
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
        case "distinct": return Distinct(input, try fields(of: stage))
        case "aggregate": return try aggregate(input, stage)
        case "unnest": return try unnest(input, stage)
        case "sample": return try sample(input, stage)
        case "union": return try union(input, stage)
        case "find_nearest": return try findNearest(input, stage)
        case SearchStage.name:
            throw .invalidArgument("The stage search must be the first one after collection or collection_group.")
        case "collection", "collection_group", "database", "documents", "literals":
            throw .invalidArgument("The stage \(stage.name) may only be the first of a pipeline.")
        default: throw RequestError(.unimplemented, "The pipeline stage \(stage.name) is not implemented.")
        }
    }

    private mutating func named(_ values: [NamedValue]) throws(RequestError) -> [NamedExpression] {
        var result: [NamedExpression] = []
        for value in values {
            result.append(NamedExpression(name: value.name, expression: try compiler.compile(value.value)))
        }
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
        var orderings: [Ordering] = []
        for argument in stage.arguments {
            let argument = try SortArgument(argument)
            orderings.append(
                Ordering(
                    expression: try compiler.compile(argument.expression), isDescending: argument.isDescending))
        }
        return RowSort(input, orderings, wanted: Int(clamping: wanted))
    }

    private func removedPaths(_ stage: PipelineStage) throws(RequestError) -> [[String]] {
        try stage.expectArguments(1...PipelineLimits.fieldsOfStage)
        var paths: [[String]] = []
        for argument in stage.arguments {
            guard case .field(let path) = argument else {
                throw .invalidArgument("The stage remove_fields takes fields.")
            }
            paths.append(path.segments)
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
        return RowChange(input, .replace(try compiler.compile(stage.arguments[0]), mode))
    }

    private mutating func aggregate(
        _ input: any PipelineOperator, _ stage: PipelineStage
    ) throws(RequestError) -> any PipelineOperator {
        try stage.expectArguments(1...2)
        let accumulators = try stage.fields(0)
        if accumulators.isEmpty { throw .invalidArgument("The stage aggregate requires at least one accumulator.") }
        let groups = stage.arguments.count == 2 ? try stage.fields(1) : []
        for group in groups where accumulators.contains(where: { $0.name.hasSameUTF8(as: group.name) }) {
            throw .invalidArgument("The stage aggregate has the field \"\(group.name)\" twice.")
        }
        var compiled: [NamedAccumulator] = []
        for accumulator in accumulators { compiled.append(try self.accumulator(accumulator)) }
        return RowAggregate(input, compiled, by: try named(groups))
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
            try compiler.compile(argument)
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
        return Unnest(input, try compiler.compile(stage.arguments[0]), alias: alias, indexField: indexField)
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
        let distance = try compiler.compile(
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
        var top: any PipelineOperator = RowFilter(input, try compiler.compile(.call(isComparable)))
        let ordering = Ordering(expression: distance, isDescending: measure == "dot_product")
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
