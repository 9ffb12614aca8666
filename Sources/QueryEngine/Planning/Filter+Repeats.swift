// What a filter says twice counts once. Source: semantics page, section 13.

import Basics
import DocumentModel

extension Filter {
    /// The same condition without what repeats: parts of an AND or OR and members of a list that are the same bytes.
    /// The order of parts and of members does not matter.
    ///
    /// The rules count what is left (`FilterRules`), so that the plan never has more alternatives than they allow.
    var withoutRepeats: Filter {
        var numbers = FilterNumbers()
        return numbers.reduce(self).filter
    }

    /// The most `array-contains` and `array-contains-any` conditions in one disjunction. Two parts of an AND or OR
    /// count once if they are written alike: a condition and an OR of this condition alone are two.
    var arrayContains: Int {
        // Most filters need no further look.
        let most = FilterShape(self).arrayContains
        if most <= 1 { return most }
        var numbers = FilterNumbers(unwraps: false)
        return FilterShape(numbers.reduce(self).filter).arrayContains
    }
}

/// Gives equal filters equal numbers, each looked at once: the work grows with the filter and not with its nesting.
private struct FilterNumbers {
    private enum Shape: Hashable {
        /// The message of a condition on a field.
        case condition([UInt8])
        /// A condition with a list, whose members are in any order.
        case list(FieldPath, FieldOperator, Set<[UInt8]>)
        /// The numbers of the parts, ascending: their order does not matter.
        case and([Int])
        case or([Int])
    }

    /// Whether an AND or OR of one part equals this part.
    private let unwraps: Bool
    private var numbers: [Shape: Int] = [:]

    init(unwraps: Bool = true) { self.unwraps = unwraps }

    mutating func reduce(_ filter: Filter) -> (filter: Filter, number: Int) {
        switch filter {
        case .and(let parts):
            let (kept, numbers) = reduce(parts)
            if kept.count == 1 { return (kept[0], unwraps ? numbers[0] : number(of: .and(numbers))) }
            return (.and(kept), number(of: .and(numbers)))
        case .or(let parts):
            let (kept, numbers) = reduce(parts)
            if kept.count == 1 { return (kept[0], unwraps ? numbers[0] : number(of: .or(numbers))) }
            return (.or(kept), number(of: .or(numbers)))
        case .field(let path, let operation, let operand) where operation.takesList:
            guard let (list, elements) = operand.withoutRepeatedElements else { return condition(filter) }
            return (.field(path, operation, list), number(of: .list(path, operation, elements)))
        case .field, .unary: return condition(filter)
        }
    }

    /// The parts that differ, and their numbers in ascending order.
    private mutating func reduce(_ parts: [Filter]) -> (kept: [Filter], numbers: [Int]) {
        var kept: [Filter] = []
        var seen: Set<Int> = []
        for part in parts {
            let (filter, number) = reduce(part)
            if seen.insert(number).inserted { kept.append(filter) }
        }
        return (kept, seen.sorted())
    }

    private mutating func condition(_ filter: Filter) -> (filter: Filter, number: Int) {
        var writer = ByteBuffer(capacity: 64)
        filter.encode(into: &writer)
        return (filter, number(of: .condition(writer.copyBytes())))
    }

    private mutating func number(of shape: Shape) -> Int {
        if let known = numbers[shape] { return known }
        numbers[shape] = numbers.count
        return numbers.count - 1
    }
}

extension EncodedValue {
    /// An array with each of its elements once, and its elements; nil for any other value.
    fileprivate var withoutRepeatedElements: (list: EncodedValue, elements: Set<[UInt8]>)? {
        guard var elements = WireValue(span)?.elements else { return nil }
        var seen: Set<[UInt8]> = []
        var list = ByteBuffer(capacity: bytes.count)
        var isRepeated = false
        list.withLengthPrefix(field: FieldNumber.Value.arrayValue) { list in
            while let element = elements.next() {
                if seen.insert([UInt8](copying: element)).inserted {
                    list.appendField(FieldNumber.ArrayValue.values, bytes: element)
                } else {
                    isRepeated = true
                }
            }
        }
        return (isRepeated ? EncodedValue(canonical: list.copyBytes()) : self, seen)
    }
}
