// Groups of rows: aggregate and distinct.

internal import Basics
internal import DocumentModel
internal import Expressions

extension [NamedExpression] {
    /// Equal for rows with equal values. Absent and null are different values.
    fileprivate func key(on row: PipelineRow, _ work: PipelineWork) throws(RequestError) -> ByteBuffer {
        var writer = ByteBuffer(capacity: 64)
        for named in self {
            let value = try work.evaluator.value(of: named.expression, on: row)
            try work.appendKey(value, to: &writer)
        }
        return writer
    }
}

/// A row for each combination of values, when it occurs for the first time.
final class Distinct: PipelineOperator {
    private let input: any PipelineOperator
    private let groups: [NamedExpression]
    private var seen = ByteTable()

    init(_ input: any PipelineOperator, _ groups: [NamedExpression]) {
        self.input = input
        self.groups = groups
    }

    func pull(_ work: PipelineWork) throws(RequestError) -> Pull {
        while true {
            let pulled = try next(input, work)
            guard case .row(let row) = pulled else { return pulled }
            let key = try groups.key(on: row, work)
            guard seen.insert(key.bytes) else { continue }
            try work.hold(64 + key.count, for: "distinct")
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

/// The groups of an aggregation with the states of their accumulators.
struct GroupedTotals {
    let accumulators: [NamedAccumulator]
    /// The fields of each group.
    private var values: [Operand] = []
    /// Those of the first group, then those of the second, and so on.
    private var states: [Accumulator] = []

    init(_ accumulators: [NamedAccumulator]) { self.accumulators = accumulators }

    var count: Int { values.count }

    /// Adds a group without rows.
    ///
    /// - Parameter key: the bytes by which the caller finds the group.
    /// - Returns: the bytes of memory that are held for it.
    mutating func add(_ group: Operand, keyBytes: Int) -> Int {
        values.append(group)
        states += accumulators.map { Accumulator($0.kind) }
        return 128 + keyBytes + group.deepMemoryBytes + 128 * accumulators.count
    }

    /// Takes the value of a row for an accumulator of a group.
    ///
    /// - Returns: the bytes of memory that are held for it.
    mutating func add(_ value: Operand, to accumulator: Int, of group: Int) throws(RequestError) -> Int {
        do {
            return try states[group * accumulators.count + accumulator].add(value)
        } catch {
            throw RequestError(error)
        }
    }

    /// Takes rows of which only the number is known, for an accumulator that counts them.
    mutating func add(rows: Int, to accumulator: Int, of group: Int) {
        states[group * accumulators.count + accumulator].add(rows: rows)
    }

    /// The row of a group.
    func row(of group: Int) -> PipelineRow {
        let results = accumulators.enumerated().map { index, named in
            (path: named.path[...], value: states[group * accumulators.count + index].result)
        }
        return PipelineRow(fields: values[group].setting(results))
    }

    /// The operator as explain shows it.
    func line(by groups: String) -> String {
        let names = accumulators.map(\.name).joined(separator: ", ")
        return groups.isEmpty ? "Aggregate \(names)" : "Aggregate \(names) by \(groups)"
    }
}

/// A row for each group with the results of its accumulators; one row, if there are no groups to form.
final class RowAggregate: PipelineOperator {
    private let input: any PipelineOperator
    private let groups: [NamedExpression]
    private var places = ByteTable()
    private var totals: GroupedTotals
    private var position = 0
    private var hasCollected = false

    init(_ input: any PipelineOperator, _ accumulators: [NamedAccumulator], by groups: [NamedExpression]) {
        self.input = input
        self.groups = groups
        totals = GroupedTotals(accumulators)
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
                if groups.isEmpty, totals.count == 0 { _ = totals.add(.map([:]), keyBytes: 0) }
            }
        }
        guard position < totals.count else { return .finished }
        position += 1
        return .row(totals.row(of: position - 1))
    }

    private func collect(_ row: PipelineRow, _ work: PipelineWork) throws(RequestError) {
        let key = try groups.key(on: row, work)
        let place: Int
        if let known = places.value(of: key.bytes) {
            place = known
        } else {
            place = totals.count
            let held = totals.add(try groups.values(on: row, work), keyBytes: key.count)
            try work.hold(held, for: "aggregate")
            places.set(key.bytes, to: place)
        }
        for (index, accumulator) in totals.accumulators.enumerated() {
            var value = Operand.boolean(true)
            if let expression = accumulator.expression { value = try work.evaluator.value(of: expression, on: row) }
            // It is compared with others, or kept.
            work.evaluator.workBytes += 2 * value.deepMemoryBytes
            let held = try totals.add(value, to: index, of: place)
            if held > 0 { try work.hold(held, for: "aggregate") }
        }
    }

    var line: String { totals.line(by: groups.names) }

    var inputs: [any PipelineOperator] { [input] }
}
