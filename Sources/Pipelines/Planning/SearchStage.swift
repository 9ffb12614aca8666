// The stage search: a text query, a distance, and further conditions, with the order, the limit and the added fields of
// the results.
//
//     search(query: and(document_matches("tacos OR waffles"), less_than(geo_distance(at, P), 1000), equal(open, true)),
//            sort: [score() descending], limit: 20, add_fields: {score: score()})
//
// An index for searches serves the text query. Without a text an index serves a distance, if there is one; else
// all documents are looked at. All other conditions, and distances exactly, are checked row by row.

internal import Basics
internal import DocumentModel
internal import Expressions
internal import QueryEngine
internal import TextAnalysis

/// The options of a search stage.
struct SearchStage {
    /// What an index answers.
    private(set) var settings = SearchSettings()
    /// Conditions that are checked row by row.
    private(set) var residual: [PipelineValue] = []
    /// Empty for the order of scores.
    private(set) var orderings: [SortArgument] = []
    private(set) var addedFields: [NamedValue] = []
    private(set) var offset: Int64 = 0
    private(set) var limit = Int64.max

    static let name = "search"

    /// Whether results come by score: the highest first, and of equal ones in the order of names.
    var isByScore: Bool {
        if orderings.isEmpty { return settings.text != nil }
        return orderings.count == 1 && orderings[0].isDescending && orderings[0].expression.isScore
    }

    /// - Throws: `INVALID_ARGUMENT` for options that are not valid, `UNIMPLEMENTED` for those that are not served.
    init(_ stage: PipelineStage) throws(RequestError) {
        try stage.expectArguments(0...0)
        var hasDepth = false
        for option in stage.options {
            switch option.name {
            case "query": try take(query: option.value)
            case "sort": try take(sort: option.value)
            case "add_fields": try take(fields: option.value)
            case "limit": limit = try SearchStage.count(option)
            case "offset": offset = try SearchStage.count(option)
            case "retrieval_depth":
                settings.depth = Int(clamping: try SearchStage.count(option))
                hasDepth = true
            case "language_code":
                guard let tag = option.value.text else {
                    throw .invalidArgument("The language_code of the stage search is a text.")
                }
                settings.language = try TextLanguage(tag: tag)
            default:
                throw RequestError(
                    .unimplemented, "The option \(option.name) of the stage search is not implemented.")
            }
        }
        if hasDepth, settings.text == nil {
            throw RequestError(.unimplemented, "The option retrieval_depth without a text query is not implemented.")
        }
        if isByScore, residual.isEmpty, wanted <= SearchExecution.bestMax { settings.best = wanted }
    }

    /// Documents that are wanted, those that are skipped among them.
    var wanted: Int {
        let (sum, isTooLarge) = limit.addingReportingOverflow(offset)
        return isTooLarge ? .max : Int(clamping: sum)
    }

    // MARK: Query

    private mutating func take(query: PipelineValue) throws(RequestError) {
        for condition in FilterTranslation.conjuncts(query) {
            guard case .call(let call) = condition, call.name == SearchFunctions.matches else {
                if condition.holds(SearchFunctions.isMisplaced) {
                    throw .invalidArgument(
                        "The function document_matches is combined with other conditions by and alone, "
                            + "and score does not occur in the query of the stage search.")
                }
                if settings.area == nil { settings.area = SearchStage.area(condition) }
                residual.append(condition)
                continue
            }
            guard call.options.isEmpty, call.arguments.count == 1, let text = call.arguments[0].text else {
                throw .invalidArgument("The function document_matches takes a text.")
            }
            let query = try TextQuery(text)
            settings.text = settings.text.map { .all([$0, query], excluding: []) } ?? query
        }
    }

    /// The area of a condition that bounds a distance from above.
    private static func area(_ condition: PipelineValue) -> GeoArea? {
        guard case .call(let comparison) = condition, comparison.options.isEmpty, comparison.arguments.count == 2
        else { return nil }
        var sides = (comparison.arguments[0], comparison.arguments[1])
        switch comparison.name {
        case "less_than", "less_than_or_equal": break
        case "greater_than", "greater_than_or_equal": sides = (sides.1, sides.0)
        default: return nil
        }
        guard let radius = sides.1.literal?.number?.searchDouble, !radius.isNaN,
            case .call(let distance) = sides.0, distance.name == "geo_distance", distance.options.isEmpty,
            distance.arguments.count == 2
        else { return nil }
        for (field, point) in [(0, 1), (1, 0)] {
            guard case .field(let path) = distance.arguments[field],
                case .geoPoint(let center)? = distance.arguments[point].literal
            else { continue }
            return GeoArea(field: path, around: center, radius: radius)
        }
        return nil
    }

    // MARK: Other options

    private mutating func take(sort: PipelineValue) throws(RequestError) {
        var arguments: [PipelineValue]
        switch sort {
        case .list(let elements): arguments = elements
        case .literal(let operand): arguments = (operand.elements ?? []).map { .literal($0) }
        default: arguments = [sort]
        }
        if arguments.isEmpty || arguments.count > PipelineLimits.fieldsOfStage {
            throw .invalidArgument("The sort of the stage search is a list of orderings.")
        }
        for argument in arguments { orderings.append(try SortArgument(argument)) }
    }

    private mutating func take(fields: PipelineValue) throws(RequestError) {
        guard let entries = fields.entries, !entries.isEmpty, entries.count <= PipelineLimits.fieldsOfStage,
            !entries.contains(where: \.name.isEmpty)
        else { throw .invalidArgument("The add_fields of the stage search is a map of fields.") }
        addedFields = entries.sorted { $0.name.compareUTF8($1.name) < 0 }
    }

    private static func count(_ option: NamedValue) throws(RequestError) -> Int64 {
        guard case .integer(let count)? = option.value.literal, count >= 0 else {
            throw .invalidArgument("The \(option.name) of the stage search is a number that is not negative.")
        }
        return count
    }
}

/// Functions that belong to the stage search.
enum SearchFunctions {
    static let matches = "document_matches"
    static let score = "score"

    static func isMisplaced(_ call: PipelineCall) -> Bool { call.name == matches || call.name == score }

    /// The error for a function that occurs elsewhere; nil for other functions.
    static func misplaced(_ name: String) -> RequestError? {
        guard name == matches || name == score else { return nil }
        return .invalidArgument(
            name == score
                ? "The function score may be used in the sort and the add_fields of the stage search only."
                : "The function document_matches may be used in the query of the stage search only.")
    }
}

extension PipelineValue {
    /// Whether it is the score of the row.
    fileprivate var isScore: Bool {
        if case .call(let call) = self { call.name == SearchFunctions.score && call.arguments.isEmpty } else { false }
    }

    /// Whether a function that it calls has a property.
    fileprivate func holds(_ property: (PipelineCall) -> Bool) -> Bool {
        switch self {
        case .literal, .field, .document, .variable, .pipeline: false
        case .list(let elements): elements.contains { $0.holds(property) }
        case .map(let entries): entries.contains { $0.value.holds(property) }
        case .call(let call): property(call) || call.arguments.contains { $0.holds(property) }
        }
    }

    /// The value with calls of `score` taken as the score of the row.
    var withScore: PipelineValue {
        if isScore { return .document(.score) }
        switch self {
        case .literal, .field, .document, .variable, .pipeline: return self
        case .list(let elements): return .list(elements.map(\.withScore))
        case .map(let entries):
            return .map(entries.map { NamedValue(name: $0.name, value: $0.value.withScore) })
        case .call(let call):
            return .call(
                PipelineCall(name: call.name, arguments: call.arguments.map(\.withScore), options: call.options))
        }
    }
}

extension Number {
    fileprivate var searchDouble: Double {
        switch self {
        case .integer(let value): Double(value)
        case .double(let value): value
        }
    }
}
