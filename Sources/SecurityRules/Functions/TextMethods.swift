// Methods of strings and of bytes.

internal import Basics
internal import Expressions

extension Functions {
    static let textMethods: [ExpressionFunction] = [
        method(
            "size",
            overload(.string) { evaluation, operands throws(ExpressionError) in
                try evaluation.spendWork(operands[0].text.utf8.count)
                return .integer(Int64(UTF16Text.count(operands[0].text)))
            },
            overload(.bytes) { _, operands in .integer(Int64(operands[0].byteArray.count)) },
            overload(.list) { evaluation, operands throws(ExpressionError) in
                guard case .encodedList(let slice) = operands[0] else {
                    return .integer(Int64(operands[0].elements?.count ?? 0))
                }
                try evaluation.spendWork(slice.byteCount)
                return .integer(Int64(slice.elementCount))
            },
            overload(.set) { _, operands in .integer(Int64(RulesSet.from(operands[0])?.members.count ?? 0)) },
            overload(.map) { evaluation, operands throws(ExpressionError) in
                guard case .encodedMap(let slice) = operands[0] else {
                    return .integer(Int64(operands[0].entries?.count ?? 0))
                }
                try evaluation.spendWork(slice.byteCount)
                return .integer(Int64(slice.entryCount))
            }),
        method(
            "trim",
            overload(.string) { evaluation, operands throws(ExpressionError) in
                try evaluation.spendMemory(operands[0].text.utf8.count)
                return .string(operands[0].text.trimmingControls)
            }),
        method(
            "lower",
            overload(.string) { evaluation, operands throws(ExpressionError) in
                try changed(evaluation, operands[0]) { $0.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 } }
            }),
        method(
            "upper",
            overload(.string) { evaluation, operands throws(ExpressionError) in
                try changed(evaluation, operands[0]) { $0.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 } }
            }),
        method(
            "matches",
            overload(.string, .string) { evaluation, operands throws(ExpressionError) in
                .boolean(
                    try Patterns.matches(
                        evaluation, operands[0].text, try Patterns.pattern(evaluation, operands[1].text)))
            }),
        method(
            "split",
            overload(.string, .string) { evaluation, operands throws(ExpressionError) in
                let pattern = try Patterns.pattern(evaluation, operands[1].text)
                return .list(try Patterns.split(evaluation, operands[0].text, pattern))
            }),
        method(
            "replace",
            overload(.string, .string, .string) { evaluation, operands throws(ExpressionError) in
                let pattern = try Patterns.pattern(evaluation, operands[1].text)
                return .string(try Patterns.replace(evaluation, operands[0].text, pattern, by: operands[2].text))
            }),
        method(
            "toUtf8",
            overload(.string) { evaluation, operands throws(ExpressionError) in
                try evaluation.spendMemory(operands[0].text.utf8.count)
                return .bytes(Array(operands[0].text.utf8))
            }),
        method(
            "toBase64",
            overload(.bytes) { evaluation, operands throws(ExpressionError) in
                try evaluation.spendMemory(2 * operands[0].byteArray.count)
                var text: [UInt8] = []
                Base64.append(operands[0].byteArray.byteSpan, to: &text)
                // The alphabet for URLs.
                let safe = text.map { $0 == UInt8(ascii: "+") ? 0x2D : $0 == UInt8(ascii: "/") ? 0x5F : $0 }
                return .string(String(decoding: safe, as: UTF8.self))
            }),
        method(
            "toHexString",
            overload(.bytes) { evaluation, operands throws(ExpressionError) in
                try evaluation.spendMemory(2 * operands[0].byteArray.count)
                let digits = operands[0].byteArray.flatMap {
                    [Hexadecimal.upperDigit($0 >> 4), Hexadecimal.upperDigit($0)]
                }
                return .string(String(decoding: digits, as: UTF8.self))
            }),
    ]

    private static func changed(
        _ evaluation: Evaluation, _ operand: Operand, _ change: ([UInt8]) -> [UInt8]
    ) throws(ExpressionError) -> Operand {
        let bytes = Array(operand.text.utf8)
        try evaluation.spendMemory(bytes.count)
        return .string(String(decoding: change(bytes), as: UTF8.self))
    }
}

extension Operand {
    /// The bytes of a bytes value; empty for other types, which signatures exclude.
    var byteArray: [UInt8] {
        if case .bytes(let bytes) = self { bytes } else { [] }
    }
}
