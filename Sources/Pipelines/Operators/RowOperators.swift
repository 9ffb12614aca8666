// Operators that look at one row at a time.

internal import Basics
internal import DocumentModel
internal import Expressions

/// An expression with the place of its value in the row.
struct NamedExpression: Sendable {
    /// As the request writes it.
    let name: String
    /// The fields that lead to the place: a name with dots is a path.
    let path: [String]
    let expression: ExpressionID

    init(name: String, expression: ExpressionID) {
        self.name = name
        path = (try? FieldPath(name))?.segments ?? [name]
        self.expression = expression
    }
}

extension [NamedExpression] {
    /// Sets the values on a row in `fields`, a map; those that are absent are left out.
    ///
    /// - Parameter aroundAbsent: whether the maps around an absent value are made too.
    func set(
        in fields: Operand, on row: PipelineRow, _ work: PipelineWork, aroundAbsent: Bool = false
    ) throws(RequestError) -> Operand {
        var values: [Operand.Placed] = []
        values.reserveCapacity(count)
        for named in self { values.append((named.path[...], try work.evaluator.value(of: named.expression, on: row))) }
        return fields.setting(values, aroundAbsent: aroundAbsent)
    }

    /// The values on a row, those that are absent left out.
    func values(on row: PipelineRow, _ work: PipelineWork) throws(RequestError) -> Operand {
        try set(in: .map([:]), on: row, work)
    }

    /// The names, as explain shows them.
    var names: String { map(\.name).joined(separator: ", ") }
}

/// The rows on which a condition is true. One on which it fails is left out.
final class RowCondition: PipelineOperator {
    private let input: any PipelineOperator
    private let condition: ExpressionID

    init(_ input: any PipelineOperator, _ condition: ExpressionID) {
        self.input = input
        self.condition = condition
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while true {
            let pulled = try next(input, work)
            guard case .row(let row) = pulled else { return pulled }
            if try work.evaluator.isTrue(condition, on: row) { return pulled }
        }
    }

    var line: String { "Where" }

    var inputs: [any PipelineOperator] { [input] }
}

/// Leaves out a number of rows, then passes a number of rows on.
final class RowLimit: PipelineOperator {
    private let input: any PipelineOperator
    private var toSkip: Int64
    private var toPass: Int64
    let line: String

    init(_ input: any PipelineOperator, offset: Int64 = 0, limit: Int64 = .max) {
        self.input = input
        toSkip = offset
        toPass = limit
        line = limit == .max ? "Offset \(offset)" : "Limit \(limit)"
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while toPass > 0 {
            let pulled = try next(input, work)
            guard case .row = pulled else { return pulled }
            if toSkip == 0 {
                toPass -= 1
                return pulled
            }
            toSkip -= 1
        }
        return .finished
    }

    var inputs: [any PipelineOperator] { [input] }
}

/// Changes each row.
final class RowChange: PipelineOperator {
    /// What becomes of a row.
    enum Change {
        /// These fields alone.
        case select([NamedExpression])
        /// The row's fields and these.
        case add([NamedExpression])
        /// The row's fields without those at these paths.
        case remove([ArraySlice<String>])
        /// The row with these variables.
        case bind([NamedExpression])
        /// The map that an expression gives, alone or together with the row's fields.
        case replace(ExpressionID, ReplaceMode)
    }

    /// How a map takes the place of a row's fields.
    enum ReplaceMode: String {
        case full = "full_replace"
        /// The row's fields come first, the map's fields replace those of the same names.
        case overwrite = "merge_overwrite_existing"
        /// The map's fields come first, the row's fields replace those of the same names.
        case keep = "merge_keep_existing"
    }

    private let input: any PipelineOperator
    private let change: Change

    init(_ input: any PipelineOperator, _ change: Change) {
        self.input = input
        self.change = change
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        let pulled = try next(input, work)
        guard case .row(var row) = pulled else { return pulled }
        try work.change(&row) { (row) throws(RequestError) in try apply(to: &row, work) }
        return .row(row)
    }

    private func apply(to row: inout PipelineRow, _ work: PipelineWork) throws(RequestError) {
        switch change {
        case .select(let fields): row.fields = try fields.set(in: .map([:]), on: row, work, aroundAbsent: true)
        case .add(let fields): row.fields = try fields.set(in: row.fields, on: row, work)
        case .remove(let paths): row.fields = row.fields.removing(paths)
        case .bind(let variables):
            var bound: [OperandMap.Entry] = []
            for variable in variables {
                bound.append((variable.name, try work.evaluator.value(of: variable.expression, on: row)))
            }
            row.variables = OperandMap(row.variables.entries + bound)
        case .replace(let expression, let mode):
            let value = try work.evaluator.value(of: expression, on: row)
            guard let map = value.entries else {
                throw .invalidArgument("The stage replace_with takes a map, not \(value.typeName).")
            }
            switch mode {
            case .full: row.fields = .map(map)
            case .overwrite: row.fields = row.fields.merging(map)
            case .keep: row.fields = Operand.map(map).merging(row.fields.entries ?? OperandMap())
            }
        }
    }

    var line: String {
        switch change {
        case .select(let fields): "Select \(fields.names)"
        case .add(let fields): "AddFields \(fields.names)"
        case .remove(let paths): "RemoveFields \(paths.map { $0.joined(separator: ".") }.joined(separator: ", "))"
        case .bind(let variables): "Let \(variables.names)"
        case .replace(_, let mode): "ReplaceWith \(mode.rawValue)"
        }
    }

    var inputs: [any PipelineOperator] { [input] }
}

/// A row for each element of an array. A value that is not an array gives one row without an index; an empty array
/// gives none.
final class Unnest: PipelineOperator {
    private let input: any PipelineOperator
    private let array: ExpressionID
    private let alias: String
    private let indexField: String?
    private var row = PipelineRow()
    /// The fields of the row, decoded once for all elements.
    private var fields = OperandMap()
    private var elements: [Operand] = []
    private var position = 0
    /// Bytes of memory that are held for the row and its elements.
    private var heldBytes = 0

    /// About what an entry of a map takes, and an element of an array.
    private static let (entryBytes, elementBytes) = (48, 32)

    init(_ input: any PipelineOperator, _ array: ExpressionID, alias: String, indexField: String?) {
        self.input = input
        self.array = array
        self.alias = alias
        self.indexField = indexField
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while true {
            if position < elements.count {
                guard work.countRow() else { return .paused }
                defer { position += 1 }
                // Each row is a copy.
                work.evaluator.workBytes += Self.entryBytes * fields.count
                return .row(row(with: elements[position], index: .integer(Int64(position))))
            }
            release(work)
            let pulled = try next(input, work)
            guard case .row(let row) = pulled else { return pulled }
            let value = try work.evaluator.value(of: array, on: row)
            let elements = value.elements
            (self.row, self.fields) = (row, row.fields.entries ?? OperandMap())
            guard let elements else { return .row(self.row(with: value, index: .null)) }
            self.elements = elements
            try hold(value, work)
        }
    }

    /// Gives back what the row before has held.
    private func release(_ work: PipelineWork) {
        (elements, position) = ([], 0)
        work.release(heldBytes)
        heldBytes = 0
    }

    /// Takes memory for the elements of an array and for the row.
    private func hold(_ array: Operand, _ work: PipelineWork) throws(RequestError) {
        heldBytes = array.deepMemoryBytes + Self.elementBytes * elements.count + Self.entryBytes * fields.count
        try work.hold(heldBytes, for: "unnest")
    }

    private func row(with element: Operand, index: Operand) -> PipelineRow {
        var added: [OperandMap.Entry] = []
        if case .absent = element {} else { added.append((alias, element)) }
        if let indexField { added.append((indexField, index)) }
        var result = row
        result.fields = Operand.map(fields).merging(OperandMap(added))
        return result
    }

    var line: String { "Unnest \(alias)" }

    var inputs: [any PipelineOperator] { [input] }
}
