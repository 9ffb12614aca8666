// Functions over the rows of a group.

internal import Basics
internal import DocumentModel
internal import Expressions

/// The state of one accumulator of one group.
struct Accumulator: Sendable {
    /// The functions of the stage `aggregate`, as requests write them.
    enum Kind: String, CaseIterable, Sendable {
        case count, sum, average, minimum, maximum, first, last
        case countIf = "count_if"
        case countDistinct = "count_distinct"
        case arrayAgg = "array_agg"
        case arrayAggDistinct = "array_agg_distinct"
    }

    private let kind: Kind
    private var count: Int64 = 0
    private var integers: Int128 = 0
    private var doubles = 0.0
    private var hasDouble = false
    private var extreme = Operand.null
    private var elements: [Operand] = []
    /// Nil before the first value.
    private var seen: SeenValues?

    init(_ kind: Kind) { self.kind = kind }

    /// Takes the value of a row.
    ///
    /// - Returns: the bytes of memory that are held for it.
    mutating func add(_ value: Operand) throws(ExpressionError) -> Int {
        switch kind {
        case .count: if !value.isNullOrAbsent { count += 1 }
        case .countIf: if case .boolean(true) = value { count += 1 }
        case .sum, .average: add(number: value)
        case .minimum, .maximum: return try add(candidate: value)
        case .first:
            defer { count = 1 }
            return count == 0 ? replaceExtreme(by: value) : 0
        case .last: return replaceExtreme(by: value)
        case .countDistinct:
            if value.isNullOrAbsent { return 0 }
            let held = try insert(value)
            if held > 0 { count += 1 }
            return held
        case .arrayAgg: return append(value)
        case .arrayAggDistinct:
            let held = try insert(value.isNullOrAbsent ? .null : value)
            return held > 0 ? held + append(value) : 0
        }
        return 0
    }

    /// Takes rows of which only the number is known; for accumulators that count them.
    mutating func add(rows: Int) { count += Int64(rows) }

    /// The result over the values so far.
    var result: Operand {
        switch kind {
        case .count, .countIf, .countDistinct: .integer(count)
        case .sum: sum
        case .average: count == 0 ? .null : .double((doubles + Double(integers)) / Double(count))
        case .minimum, .maximum, .first, .last: extreme
        case .arrayAgg, .arrayAggDistinct: .list(elements)
        }
    }

    /// Integers are summed exactly; a total beyond 64 bits becomes a double.
    private var sum: Operand {
        if !hasDouble, let total = Int64(exactly: integers) { return .integer(total) }
        return .double(doubles + Double(integers))
    }

    private mutating func add(number value: Operand) {
        switch value {
        case .integer(let number): integers += Int128(number)
        case .double(let number):
            doubles += number
            hasDouble = true
        default: return
        }
        count += 1
    }

    private mutating func add(candidate value: Operand) throws(ExpressionError) -> Int {
        if value.isNullOrAbsent { return 0 }
        if !extreme.isNullOrAbsent {
            let sign = try Operand.compare(value, extreme).sign.signum()
            if sign != (kind == .maximum ? 1 : -1) { return 0 }
        }
        return replaceExtreme(by: value)
    }

    /// - Returns: how much more memory the new value holds.
    private mutating func replaceExtreme(by value: Operand) -> Int {
        let before = extreme.deepMemoryBytes
        if case .absent = value { extreme = .null } else { extreme = value }
        return max(0, extreme.deepMemoryBytes - before)
    }

    private mutating func append(_ value: Operand) -> Int {
        elements.append(value.isNullOrAbsent ? .null : value)
        return 16 + value.deepMemoryBytes
    }

    private mutating func insert(_ value: Operand) throws(ExpressionError) -> Int {
        let seen = seen ?? SeenValues()
        self.seen = seen
        return try seen.insert(value)
    }
}

/// Values of which each counts once. Their bytes lie together: as many arrays would take some ten milliseconds at once
/// to be given back, or to be moved to a larger table.
private final class SeenValues: @unchecked Sendable {  // Used by its accumulator alone.
    private var keys = ByteTable(slotCount: 8, keyBytes: 64)

    /// - Returns: the bytes of memory that are held for a new value; 0 for one that was seen.
    func insert(_ value: Operand) throws(ExpressionError) -> Int {
        var writer = ByteBuffer(capacity: 64)
        try value.appendKey(into: &writer)
        return keys.insert(writer.bytes) ? 64 + writer.count : 0
    }
}
