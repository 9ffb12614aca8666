// Arrays.

internal import Basics
internal import Expressions

enum ArrayFunctions {
    static let all: [PipelineFunction] = [
        PipelineFunction("array", 0...PipelineFunction.many, .total(array)),
        PipelineFunction("array_contains", 2, .total(arrayContains)),
        PipelineFunction("array_contains_all", 2, .total(arrayContainsAll)),
        PipelineFunction("array_contains_any", 2, .total(arrayContainsAny)),
        PipelineFunction("array_length", 1, .strict(length)),
        PipelineFunction("array_concat", 1...PipelineFunction.many, .strict(concat)),
        PipelineFunction("array_reverse", 1, .strict(reverse)),
        PipelineFunction("array_get", 2, .strict(get)),
        PipelineFunction("offset", 2, .strict(get)),
        PipelineFunction("array_first", 1, .strict(first)),
        PipelineFunction("array_last", 1, .strict(last)),
        PipelineFunction("array_first_n", 2, .strict(firstN)),
        PipelineFunction("array_last_n", 2, .strict(lastN)),
        PipelineFunction("array_slice", 2...3, .strict(slice)),
        PipelineFunction("maximum_n", 2, .strict(largest)),
        PipelineFunction("minimum_n", 2, .strict(smallest)),
        PipelineFunction("array_index_of", 2...3, .total(indexOf)),
        PipelineFunction("array_index_of_all", 2, .total(indexOfAll)),
    ]

    /// Absent elements become null, which keeps the places of the others.
    private static func array(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try evaluation.spendMemory(40 * operands.count)
        return .list(
            operands.map { operand in
                if case .absent = operand { .null } else { operand }
            })
    }

    // MARK: Membership

    private static func arrayContains(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        if operands[0].isNullOrAbsent { return .null }
        return .boolean(
            try contains(operands[1], among: try elements("array_contains", operands[0], evaluation), evaluation))
    }

    private static func arrayContainsAll(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        try membership("array_contains_all", operands, evaluation, decidedBy: false)
    }

    private static func arrayContainsAny(
        _ evaluation: Evaluation, _ operands: [Operand]
    ) throws(ExpressionError) -> Operand {
        try membership("array_contains_any", operands, evaluation, decidedBy: true)
    }

    private static func membership(
        _ name: String, _ operands: [Operand], _ evaluation: Evaluation, decidedBy deciding: Bool
    ) throws(ExpressionError) -> Operand {
        if operands[0].isNullOrAbsent || operands[1].isNullOrAbsent { return .null }
        let elements = try elements(name, operands[0], evaluation)
        let wanted = try self.elements(name, operands[1], evaluation)
        let pairs = elements.count * wanted.count
        let isLong = pairs > pairsPerKey * (elements.count + wanted.count)
        let keys = isLong ? try keys(of: elements, evaluation) : nil
        for value in wanted {
            let isElement =
                if let keys { keys.contains(try key(of: value, evaluation)) } else {
                    try contains(value, among: elements, evaluation)
                }
            if isElement == deciding { return .boolean(deciding) }
        }
        return .boolean(!deciding)
    }

    /// The keys of the elements, paid for; nil if one has none, because it has no form in documents.
    private static func keys(
        of elements: [Operand], _ evaluation: Evaluation
    ) throws(ExpressionError) -> Set<[UInt8]>? {
        var keys = Set<[UInt8]>(minimumCapacity: elements.count)
        do throws(ExpressionError) {
            for element in elements { keys.insert(try key(of: element, evaluation)) }
        } catch {
            if error.kind == .exhausted { throw error }
            return nil
        }
        return keys
    }

    /// Bytes that equal values share, 1 and 1.0 too; paid for with the look-up.
    private static func key(of operand: Operand, _ evaluation: Evaluation) throws(ExpressionError) -> [UInt8] {
        try evaluation.spendWork(keyCost + 2 * operand.deepMemoryBytes)
        var writer = ByteBuffer(capacity: 64)
        try operand.appendKey(into: &writer)
        return writer.copyBytes()
    }

    /// What it costs to make the key of an element and to look it up, in bytes that could be copied meanwhile.
    private static let keyCost = 512

    /// Comparisons that cost as much as the key of one element, about.
    private static let pairsPerKey = 8

    /// Whether a value is equal to one of several.
    static func contains(
        _ operand: Operand, among elements: [Operand], _ evaluation: Evaluation
    ) throws(ExpressionError) -> Bool {
        for element in elements {
            if try ComparisonFunctions.compare(evaluation, operand, element).sign == 0 { return true }
        }
        return false
    }

    private static func indexOf(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        if operands[0].isNullOrAbsent { return .null }
        var isFirst = true
        if operands.count == 3 {
            guard case .string(let end) = operands[2], end == "first" || end == "last" else {
                throw .mismatch("array_index_of", "\"first\" or \"last\"", operands[2])
            }
            isFirst = end == "first"
        }
        let indices = try indices(
            of: operands[1], in: try elements("array_index_of", operands[0], evaluation), evaluation)
        return .integer(Int64((isFirst ? indices.first : indices.last) ?? -1))
    }

    private static func indexOfAll(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        if operands[0].isNullOrAbsent { return .null }
        let elements = try elements("array_index_of_all", operands[0], evaluation)
        return .list(try indices(of: operands[1], in: elements, evaluation).map { .integer(Int64($0)) })
    }

    private static func indices(
        of operand: Operand, in elements: [Operand], _ evaluation: Evaluation
    ) throws(ExpressionError) -> [Int] {
        var indices: [Int] = []
        for (index, element) in elements.enumerated() {
            if try ComparisonFunctions.compare(evaluation, operand, element).sign == 0 { indices.append(index) }
        }
        return indices
    }

    // MARK: Parts

    private static func length(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        if case .encodedList(let slice) = operands[0] {
            try evaluation.spendWork(slice.byteCount)
            return .integer(Int64(slice.elementCount))
        }
        return .integer(Int64(try elements("array_length", operands[0], evaluation).count))
    }

    static func concat(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        var result: [Operand] = []
        for operand in operands { result += try elements("array_concat", operand, evaluation) }
        return .list(result)
    }

    static func reverse(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .list(try elements("array_reverse", operands[0], evaluation).reversed())
    }

    /// The element at a position, which counts from the end if it is negative; absent beyond the ends.
    private static func get(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let elements = try elements("array_get", operands[0], evaluation)
        guard case .integer(let position) = operands[1] else { throw .mismatch("array_get", "a position", operands[1]) }
        let index = position < 0 ? position + Int64(elements.count) : position
        return index >= 0 && index < Int64(elements.count) ? elements[Int(index)] : .absent
    }

    private static func first(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try elements("array_first", operands[0], evaluation).first ?? .absent
    }

    private static func last(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try elements("array_last", operands[0], evaluation).last ?? .absent
    }

    private static func firstN(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let count = try count("array_first_n", operands[1])
        return .list(Array(try elements("array_first_n", operands[0], evaluation).prefix(count)))
    }

    private static func lastN(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let count = try count("array_last_n", operands[1])
        return .list(Array(try elements("array_last_n", operands[0], evaluation).suffix(count)))
    }

    /// From a position on, which counts from the end if it is negative; of a length or to the end.
    private static func slice(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let elements = try elements("array_slice", operands[0], evaluation)
        guard case .integer(let start) = operands[1] else { throw .mismatch("array_slice", "a position", operands[1]) }
        let length = operands.count == 3 ? try count("array_slice", operands[2]) : elements.count
        let size = Int64(elements.count)
        let first = start < 0 ? size + max(start, -size) : min(start, size)
        return .list(Array(elements.dropFirst(Int(first)).prefix(length)))
    }

    /// The first elements in descending order, null left out.
    private static func largest(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try extremes("maximum_n", operands, evaluation, descending: true)
    }

    /// The first elements in ascending order, null left out.
    private static func smallest(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        try extremes("minimum_n", operands, evaluation, descending: false)
    }

    private static func extremes(
        _ name: String, _ operands: [Operand], _ evaluation: Evaluation, descending: Bool
    ) throws(ExpressionError) -> Operand {
        let count = try count(name, operands[1])
        var keyed: [(key: [UInt8], element: Operand)] = []
        for element in try elements(name, operands[0], evaluation) where !element.isNullOrAbsent {
            var writer = ByteBuffer(capacity: 64)
            try element.appendKey(descending: descending, into: &writer)
            try evaluation.spendMemory(64 + writer.count)
            try evaluation.spendWork(sortingCost)
            keyed.append((writer.copyBytes(), element))
        }
        keyed.sort { $0.key.lexicographicallyPrecedes($1.key) }
        return .list(keyed.prefix(count).map(\.element))
    }

    /// What it costs to sort one element of many, in bytes that could be copied meanwhile.
    private static let sortingCost = 256

    // MARK: Operands

    private static func count(_ name: String, _ operand: Operand) throws(ExpressionError) -> Int {
        guard case .integer(let count) = operand, count >= 0 else {
            throw .mismatch(name, "a number that is not negative", operand)
        }
        return Int(clamping: count)
    }

    /// The elements of an array; pays for a copy of them.
    static func elements(
        _ name: String, _ operand: Operand, _ evaluation: Evaluation
    ) throws(ExpressionError) -> [Operand] {
        if case .encodedList(let slice) = operand { try evaluation.spendMemory(4 * slice.byteCount) }
        guard let elements = operand.elements else { throw .mismatch(name, "an array", operand) }
        try evaluation.spendMemory(40 * elements.count)
        return elements
    }
}
