// Maps.

internal import Basics
internal import Expressions

enum MapFunctions {
    static let all: [PipelineFunction] = [
        PipelineFunction("map", 0...PipelineFunction.many, .total(map)),
        PipelineFunction("map_get", 2, .total(get)),
        PipelineFunction("get_field", 2, .total(get)),
        PipelineFunction("map_set", 3...PipelineFunction.many, .total(set)),
        PipelineFunction("map_remove", 2...PipelineFunction.many, .strict(remove)),
        PipelineFunction("map_merge", 1...PipelineFunction.many, .strict(merge)),
        PipelineFunction("map_keys", 1, .strict(keys)),
        PipelineFunction("map_values", 1, .strict(values)),
        PipelineFunction("map_entries", 1, .strict(entries)),
    ]

    /// Keys and values in turn; an entry whose value is absent is left out.
    private static func map(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .map(OperandMap(try pairs("map", operands[...], evaluation).filter { !$0.value.isAbsent }))
    }

    private static func get(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        if operands[0].isNullOrAbsent || operands[1].isNullOrAbsent { return .null }
        let key = try key("map_get", operands[1])
        switch operands[0] {
        case .encodedMap(let slice):
            try evaluation.spendWork(slice.byteCount)
            let value = slice.member(key)
            try evaluation.spendMemory(value.flatBytes)
            return value
        case .map(let map): return map[key] ?? .absent
        // Fields of values that are not maps do not exist, as in paths.
        default: return .absent
        }
    }

    private static func set(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        if operands[0].isNullOrAbsent { return .null }
        let map = try entries("map_set", operands[0], evaluation)
        let result = OperandMap(map.entries + (try pairs("map_set", operands.dropFirst(), evaluation)))
        // An absent value takes the key away.
        return .map(OperandMap(sorted: result.entries.filter { !$0.value.isAbsent }))
    }

    private static func remove(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let map = try entries("map_remove", operands[0], evaluation)
        var removed: Set<UTF8Text> = []
        for operand in operands.dropFirst() { removed.insert(UTF8Text(try key("map_remove", operand))) }
        return .map(OperandMap(sorted: map.entries.filter { !removed.contains(UTF8Text($0.key)) }))
    }

    private static func merge(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        var merged: [OperandMap.Entry] = []
        for operand in operands { merged += try entries("map_merge", operand, evaluation).entries }
        return .map(OperandMap(merged))
    }

    private static func keys(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .list(try entries("map_keys", operands[0], evaluation).entries.map { .string($0.key) })
    }

    private static func values(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        .list(try entries("map_values", operands[0], evaluation).entries.map(\.value))
    }

    /// A map with the key `k` and the value `v` for each entry.
    private static func entries(_ evaluation: Evaluation, _ operands: [Operand]) throws(ExpressionError) -> Operand {
        let map = try entries("map_entries", operands[0], evaluation)
        try evaluation.spendMemory(160 * map.count)
        return .list(map.entries.map { .map(["k": .string($0.key), "v": $0.value]) })
    }

    // MARK: Operands

    private static func key(_ name: String, _ operand: Operand) throws(ExpressionError) -> String {
        guard case .string(let key) = operand else { throw .mismatch(name, "strings as keys", operand) }
        return key
    }

    private static func entries(
        _ name: String, _ operand: Operand, _ evaluation: Evaluation
    ) throws(ExpressionError) -> OperandMap {
        if case .encodedMap(let slice) = operand { try evaluation.spendMemory(4 * slice.byteCount) }
        guard let map = operand.entries else { throw .mismatch(name, "a map", operand) }
        try evaluation.spendMemory(64 * map.count)
        return map
    }

    private static func pairs(
        _ name: String, _ operands: ArraySlice<Operand>, _ evaluation: Evaluation
    ) throws(ExpressionError) -> [OperandMap.Entry] {
        if operands.count % 2 != 0 { throw .failed("The function \(name) takes keys and values in turn.") }
        try evaluation.spendMemory(64 * operands.count)
        var entries: [OperandMap.Entry] = []
        var index = operands.startIndex
        while index < operands.endIndex {
            entries.append((try key(name, operands[index]), operands[index + 1]))
            index += 2
        }
        return entries
    }
}
