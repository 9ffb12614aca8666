// `string`, `int`, `float`, `path`, `debug`.

internal import Expressions

enum Conversions {
    /// The text of a value, as `string()` and the segments of paths have it.
    static func text(_ operand: Operand) throws(ExpressionError) -> String {
        switch operand {
        case .null: return "null"
        case .boolean(let value): return value ? "true" : "false"
        case .integer(let value): return String(value)
        case .double(let value): return DoubleText.write(value)
        case .string(let text): return text
        default: break
        }
        if let path = RulesPath.from(operand) { return path.text }
        if operand.unproven != nil { throw .unproven }
        throw .unsupported("string(\(RulesType(operand).rawValue))")
    }

    static func failure(_ text: String, to type: RulesType) -> ExpressionError {
        .failed(
            "Type conversion error. Argument: [\(text.prefix(200))], From type: [string], To type: [\(type.rawValue)].")
    }
}

extension Functions {
    static let conversions: [ExpressionFunction] = [
        function(
            "string",
            overload([.null, .boolean, .number, .string]) { _, operands throws(ExpressionError) in
                .string(try Conversions.text(operands[0]))
            },
            overload(.path) { evaluation, operands throws(ExpressionError) in
                try evaluation.spendMemory(RulesPath.from(operands[0])?.memoryBytes ?? 0)
                return .string(try Conversions.text(operands[0]))
            }),
        function(
            "int", overload(.integer) { _, operands in operands[0] },
            overload(.double) { _, operands in
                .integer(Numbers.integer(saturating: Numbers.double(operands[0]) ?? 0))
            },
            overload(.string) { evaluation, operands throws(ExpressionError) in
                try evaluation.spendWork(operands[0].text.utf8.count)
                guard case .string(let text) = operands[0], let number = Int64(text) else {
                    throw Conversions.failure(operands[0].text, to: .int)
                }
                return .integer(number)
            }),
        function(
            "float", overload(.number) { _, operands in .double(Numbers.double(operands[0]) ?? 0) },
            overload(.string) { evaluation, operands throws(ExpressionError) in
                try evaluation.spendWork(operands[0].text.utf8.count)
                guard let number = DoubleText.read(operands[0].text) else {
                    throw Conversions.failure(operands[0].text, to: .float)
                }
                return .double(number)
            }),
        function(
            "path",
            overload(.string) { evaluation, operands throws(ExpressionError) in
                try evaluation.spendMemory(RulesPath.readingBytes(operands[0].text))
                return .object(try RulesPath.parse(operands[0].text))
            }),
    ]
}

extension Operand {
    /// The text of a string; empty for other types, which signatures exclude.
    var text: String {
        if case .string(let text) = self { text } else { "" }
    }
}
