// Pipelines within expressions.
//
//     array(collection("reviews") | where(book == $id) | select(rating))     all results, as an array
//     scalar(collection("reviews") | aggregate(average(rating)))             the one result; null if there is none
//
// Evaluation cannot wait for the storage. An expression that needs a result which is not there fails with `pending`;
// the operator `SubqueryResolution` runs the pipeline and evaluates the expression again, with the results so far.

internal import Basics
internal import Expressions

/// What a subquery gives; one that fails may be absorbed by `is_error` and `if_error`.
typealias SubqueryResult = Result<Operand, ExpressionError>

/// What an evaluation of an expression with subqueries comes to.
enum SubqueryOutcome {
    case value(Operand)
    /// The result of this subquery is needed first.
    case wanted(SubqueryCall)
}

/// A subquery with the values of the place that it is called from.
struct SubqueryCall {
    let subquery: Subquery
    /// The variables around it.
    let bindings: [String: Operand]
    /// The path of the row's document below `documents`; nil if the row is none.
    let document: [UInt8]?
}

/// A pipeline in an expression, as the argument of `array` or `scalar`.
final class Subquery: Sendable {
    let stages: [PipelineStage]
    /// Whether it gives its one result and not all of them.
    let isScalar: Bool
    /// Whether the result is the same for all rows.
    let isIndependent: Bool
    /// The lambda variables that it may read, by slot.
    private let locals: [String]
    /// The field whose value stands for a result; nil if the last stages do not say that there is one field.
    private let onlyField: String?

    /// Reads a call; nil if it has no pipeline as argument.
    init?(_ call: PipelineCall, _ scope: ExpressionScope) throws(RequestError) {
        guard call.name == "array" || call.name == "scalar", call.arguments.count == 1,
            case .pipeline(let stages) = call.arguments[0]
        else {
            if call.name != "scalar" { return nil }
            throw .invalidArgument("The function scalar takes a pipeline.")
        }
        self.stages = stages
        isScalar = call.name == "scalar"
        locals = scope.locals
        isIndependent = !stages.contains { $0.dependsOnRow(scope.names) }
        onlyField = Subquery.onlyField(of: stages)
    }

    /// Takes the lambda variables as operands. Gives the result that the host has, or fails with `pending`.
    var body: FormBody {
        { (evaluation, operands) throws(ExpressionError) in
            let host = RowHost.of(evaluation)
            if let known = host.known[ObjectIdentifier(self)] { return try known.get() }
            if host.resultsRead < host.results.count {
                host.resultsRead += 1
                return try host.results[host.resultsRead - 1].get()
            }
            var bindings = host.bindings
            for variable in host.row.variables.entries { bindings[variable.key] = variable.value }
            for (name, operand) in zip(self.locals, operands) { bindings[name] = try evaluation.value(of: operand) }
            host.wanted = SubqueryCall(subquery: self, bindings: bindings, document: host.row.document?.path)
            throw ExpressionError(.pending, "A subquery has not run yet.")
        }
    }

    /// The value that stands for a result: that of its only field, or all fields.
    func value(of row: PipelineRow) -> Operand {
        if let onlyField {
            let value = row.fields.field(onlyField)
            if case .absent = value { return .null }
            return value
        }
        if let map = row.fields.entries, map.count == 1, !isFieldCountKnown { return map.entries[0].value }
        return row.fields
    }

    /// Whether the last stages say which fields results have.
    private var isFieldCountKnown: Bool { stages.contains { Subquery.shaping.contains($0.name) } }

    private static let shaping: Set<String> = ["select", "distinct", "aggregate"]
    /// Stages that change no field.
    private static let passing: Set<String> = ["where", "sort", "limit", "offset", "sample"]

    private static func onlyField(of stages: [PipelineStage]) -> String? {
        guard let last = stages.last(where: { !passing.contains($0.name) }), shaping.contains(last.name) else {
            return nil
        }
        let names = last.arguments.flatMap { ($0.entries ?? []).map(\.name) }
        return names.count == 1 && !names[0].contains(".") && !names[0].contains("`") ? names[0] : nil
    }
}

// MARK: Looking for subqueries

extension PipelineValue {
    /// Whether there is a subquery in the expression.
    var hasSubqueries: Bool {
        switch self {
        case .literal, .field, .document, .variable, .pipeline: false
        case .list(let elements): elements.contains(where: \.hasSubqueries)
        case .map(let entries): entries.contains { $0.value.hasSubqueries }
        case .call(let call): call.arguments.contains { $0.isPipeline || $0.hasSubqueries }
        }
    }

    private var isPipeline: Bool {
        if case .pipeline = self { true } else { false }
    }

    /// Whether the value may differ from row to row of the pipeline around it, whose variables have these names.
    fileprivate func dependsOnRow(_ names: Set<String>) -> Bool {
        switch self {
        case .literal, .field, .document: false
        case .variable(let name): names.contains(name)
        case .list(let elements): elements.contains { $0.dependsOnRow(names) }
        case .map(let entries): entries.contains { $0.value.dependsOnRow(names) }
        case .pipeline(let stages): stages.contains { $0.dependsOnRow(names) }
        case .call(let call): call.name == "rand" || call.arguments.contains { $0.dependsOnRow(names) }
        }
    }
}

extension PipelineStage {
    /// Whether there is a subquery in an argument.
    var hasSubqueries: Bool { arguments.contains(where: \.hasSubqueries) }

    fileprivate func dependsOnRow(_ names: Set<String>) -> Bool {
        name == "subcollection" || name == "sample" || arguments.contains { $0.dependsOnRow(names) }
            || options.contains { $0.value.dependsOnRow(names) }
    }
}
