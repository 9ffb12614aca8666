// Paths with computed segments: `/databases/$(database)/documents/users/$(request.auth.uid)`.

internal import Expressions

/// A path of the source, some of whose segments are values.
struct PathTemplate: Sendable {
    enum Part: Sendable {
        case constant(RulesPath.Segment)
        /// The operand in this place.
        case computed
    }

    let parts: [Part]

    /// Makes the path. Its operands are those of all parts; the constant ones are nodes for coverage alone.
    var body: FormBody {
        { [parts] evaluation, operands throws(ExpressionError) in
            var segments: [RulesPath.Segment] = []
            segments.reserveCapacity(parts.count)
            for (index, part) in parts.enumerated() {
                switch part {
                case .constant(let segment):
                    try evaluation.passConstant(operands[index])
                    segments.append(segment)
                case .computed:
                    let value = try evaluation.value(of: operands[index])
                    try evaluation.spendMemory(RulesPath.from(value)?.memoryBytes ?? 0)
                    try Self.append(value, to: &segments)
                }
            }
            try evaluation.spendMemory(32 * segments.count)
            return .object(RulesPath(segments))
        }
    }

    private static func append(
        _ operand: Operand, to segments: inout [RulesPath.Segment]
    ) throws(ExpressionError) {
        if case .string(let text) = operand { return segments.append(.literal(text)) }
        if let path = RulesPath.from(operand) {
            segments += path.segments
        } else {
            segments.append(.literal(try Conversions.text(operand)))
        }
    }
}
