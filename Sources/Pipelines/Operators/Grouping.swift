// Groups of rows: aggregate and distinct.

internal import Basics
internal import DocumentModel
internal import Expressions

extension [NamedExpression] {
    /// Bytes that are equal for rows with equal values. Absent and null are different values.
    fileprivate func key(on row: PipelineRow, _ work: PipelineWork) throws(RequestError) -> [UInt8] {
        var writer = ByteBuffer(capacity: 64)
        for named in self {
            let value = try work.evaluator.value(of: named.expression, on: row)
            try work.appendKey(value, to: &writer)
        }
        return writer.copyBytes()
    }
}

/// A row for each combination of values, when it occurs for the first time.
final class Distinct: PipelineOperator {
    private let input: any PipelineOperator
    private let groups: [NamedExpression]
    private var seen: Set<[UInt8]> = []

    init(_ input: any PipelineOperator, _ groups: [NamedExpression]) {
        self.input = input
        self.groups = groups
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while true {
            let pulled = try next(input, work)
            guard case .row(let row) = pulled else { return pulled }
            let key = try groups.key(on: row, work)
            if seen.contains(key) { continue }
            try work.hold(64 + key.count, for: "distinct")
            seen.insert(key)
            return .row(PipelineRow(fields: try groups.values(on: row, work)))
        }
    }

    var line: String { "Distinct \(groups.names)" }

    var inputs: [any PipelineOperator] { [input] }
}

/// An accumulator with the name of its result and the expression that it takes; nil counts rows.
struct NamedAccumulator: Sendable {
    let name: String
    /// The fields that lead to the result: a name with dots is a path.
    let path: [String]
    let kind: Accumulator.Kind
    let expression: ExpressionID?

    init(name: String, kind: Accumulator.Kind, expression: ExpressionID?) {
        self.name = name
        path = (try? FieldPath(name))?.segments ?? [name]
        self.kind = kind
        self.expression = expression
    }
}

/// A row for each group with the results of its accumulators; one row, if there are no groups to form.
final class RowAggregate: PipelineOperator {
    private struct Group {
        let values: Operand
        var accumulators: [Accumulator]
    }

    private let input: any PipelineOperator
    private let accumulators: [NamedAccumulator]
    private let groups: [NamedExpression]
    private var places: [[UInt8]: Int] = [:]
    private var formed: [Group] = []
    private var position = 0
    private var hasCollected = false

    init(_ input: any PipelineOperator, _ accumulators: [NamedAccumulator], by groups: [NamedExpression]) {
        self.input = input
        self.accumulators = accumulators
        self.groups = groups
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while !hasCollected {
            let pulled = try next(input, work)
            switch pulled {
            case .row(let row): try collect(row, work)
            case .paused, .starved: return pulled
            case .finished:
                hasCollected = true
                // Without groups all rows are one group, even if there are none.
                if groups.isEmpty, formed.isEmpty { formed = [newGroup(.map([:]))] }
            }
        }
        guard position < formed.count else { return .finished }
        position += 1
        return .row(result(of: formed[position - 1]))
    }

    private func newGroup(_ values: Operand) -> Group {
        Group(values: values, accumulators: accumulators.map { Accumulator($0.kind) })
    }

    private func collect(_ row: PipelineRow, _ work: PipelineWork) throws(RequestError) {
        let key = try groups.key(on: row, work)
        let place: Int
        if let known = places[key] {
            place = known
        } else {
            let group = newGroup(try groups.values(on: row, work))
            try work.hold(
                128 + key.count + group.values.deepMemoryBytes + 128 * accumulators.count,
                for: "aggregate")
            place = formed.count
            places[key] = place
            formed.append(group)
        }
        for index in accumulators.indices {
            var value = Operand.boolean(true)
            if let expression = accumulators[index].expression {
                value = try work.evaluator.value(of: expression, on: row)
            }
            let held = try add(value, to: index, of: place)
            if held > 0 { try work.hold(held, for: "aggregate") }
        }
    }

    private func add(_ value: Operand, to index: Int, of place: Int) throws(RequestError) -> Int {
        do {
            return try formed[place].accumulators[index].add(value)
        } catch {
            throw RequestError(error)
        }
    }

    private func result(of group: Group) -> PipelineRow {
        var fields = group.values
        for (named, accumulator) in zip(accumulators, group.accumulators) {
            fields = fields.setting(named.path[...], to: accumulator.result)
        }
        return PipelineRow(fields: fields)
    }

    var line: String {
        let names = accumulators.map(\.name).joined(separator: ", ")
        return groups.isEmpty ? "Aggregate \(names)" : "Aggregate \(names) by \(groups.names)"
    }

    var inputs: [any PipelineOperator] { [input] }
}
