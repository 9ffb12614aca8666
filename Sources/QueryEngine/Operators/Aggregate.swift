// Totals over the rows of a query.

import Basics
import DocumentModel

/// Counts, sums and averages over the rows of its input. It reads all of them, so its position is that of the input.
struct Aggregate: Sendable {
    private var totals: [RunningTotal]

    init(_ totals: [RunningTotal]) { self.totals = totals }

    /// Adds the rows of the input's next step.
    mutating func next<Source: QuerySource & ~Copyable>(
        from input: inout QueryExecution, _ source: borrowing Source
    ) throws(RequestError) -> QueryExecution.Progress {
        try input.next(from: source) { (row) throws(RequestError) in
            for index in totals.indices { totals[index].add(row.fields) }
            return .more
        }
    }

    /// Adds so many rows at once; for counts.
    mutating func add(count rows: Int) {
        for index in totals.indices { totals[index].add(count: rows) }
    }

    var values: [Value] { totals.map(\.value) }

    /// The operator as explain shows it.
    var line: String { "Aggregate \(totals.map(\.description).joined(separator: ", "))" }
}

/// A count, sum or average so far.
///
/// Integers are added exactly, in 128 bits; a sum is an integer when every number was one and the exact total fits in
/// 64 bits. Otherwise it is a double: the doubles added in the order of the results, and the integers' exact total.
struct RunningTotal: Sendable {
    private let operation: Aggregation.Operation
    private var count: Int64 = 0
    private var integers: Int128 = 0
    private var doubles = 0.0
    private var hasDoubles = false

    init(_ operation: Aggregation.Operation) throws(RequestError) {
        self.operation = operation
        switch operation {
        case .count(let upTo?) where upTo <= 0:
            throw .invalidArgument("The up_to of a count must be greater than zero.")
        case .sum(let field), .average(let field):
            if field.isDocumentName {
                throw .invalidArgument("Aggregations are not supported for the property: __key__")
            }
        case .count: break
        }
    }

    /// The field that is totalled; nil for a count.
    var field: FieldPath? {
        switch operation {
        case .count: nil
        case .sum(let field), .average(let field): field
        }
    }

    /// Takes one result into account.
    mutating func add(_ fields: RawSpan) {
        switch operation {
        case .count(let upTo): if count < upTo ?? .max { count += 1 }
        case .sum(let field), .average(let field):
            guard let bytes = DocumentBytes.value(at: field, in: fields), let value = WireValue(bytes) else { return }
            switch value.number {
            case .integer(let integer)?:
                integers += Int128(integer)
                count += 1
            case .double(let double)?:
                doubles += double
                hasDoubles = true
                count += 1
            case nil: break
            }
        }
    }

    /// Takes so many results into account at once; for counts.
    mutating func add(count results: Int) {
        guard case .count(let upTo) = operation else { return }
        count = min(count + Int64(results), upTo ?? .max)
    }

    /// The total so far: an average over nothing is null, a sum over nothing is 0.
    var value: Value {
        switch operation {
        case .count: return .integer(count)
        case .sum:
            if !hasDoubles, let exact = Int64(exactly: integers) { return .integer(exact) }
            return .double(Double(integers) + doubles)
        case .average:
            if count == 0 { return .null }
            return .double((Double(integers) + doubles) / Double(count))
        }
    }
}

extension RunningTotal: CustomStringConvertible {
    var description: String {
        switch operation {
        case .count(let upTo?): "count up to \(upTo)"
        case .count: "count"
        case .sum(let field): "sum \(field)"
        case .average(let field): "avg \(field)"
        }
    }
}
