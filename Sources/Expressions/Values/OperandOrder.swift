// The order and the equality of operands: those of stored values.

package import Basics
package import DocumentModel

/// How two operands compare.
package struct OperandComparison: Equatable, Sendable {
    /// Negative, 0 or positive, by the order of all values; absent comes first.
    package let sign: Int
    /// Whether both are of one type class and neither is absent or NaN, so that one can be less than the other.
    package let isOrdered: Bool
}

extension Operand {
    /// Compares two operands.
    ///
    /// - Throws: `failed` for values that have no form in documents.
    package static func compare(_ left: Operand, _ right: Operand) throws(ExpressionError) -> OperandComparison {
        if let left = left.number, let right = right.number {
            return OperandComparison(sign: Number.compare(left, right), isOrdered: !left.isNaN && !right.isNaN)
        }
        switch (left, right) {
        case (.absent, .absent): return OperandComparison(sign: 0, isOrdered: false)
        case (.absent, _): return OperandComparison(sign: -1, isOrdered: false)
        case (_, .absent): return OperandComparison(sign: 1, isOrdered: false)
        case (.string(let left), .string(let right)):
            return OperandComparison(sign: left.compareUTF8(right), isOrdered: true)
        case (.boolean(let left), .boolean(let right)):
            return OperandComparison(sign: (left ? 1 : 0) - (right ? 1 : 0), isOrdered: true)
        case (.timestamp(let left), .timestamp(let right)):
            return OperandComparison(sign: left < right ? -1 : right < left ? 1 : 0, isOrdered: true)
        default: return try compareEncoded(left, right)
        }
    }

    private static func compareEncoded(_ left: Operand, _ right: Operand) throws(ExpressionError) -> OperandComparison {
        let (leftBytes, rightBytes) = (try left.wireBytes(), try right.wireBytes())
        let (leftSpan, rightSpan) = (leftBytes.byteSpan, rightBytes.byteSpan)
        let order = ValueOrder.compare(wireA: leftSpan, wireB: rightSpan)
        let leftClass = WireValue(leftSpan)?.typeClass
        return OperandComparison(
            sign: order == .equal ? 0 : order == .less ? -1 : 1,
            isOrdered: leftClass != nil && leftClass == WireValue(rightSpan)?.typeClass)
    }

    /// The number; nil for any other type.
    package var number: Number? {
        switch self {
        case .integer(let value): .integer(value)
        case .double(let value): .double(value)
        default: nil
        }
    }

    /// Appends bytes that compare as the operand does, before `null` for absent: equal operands have equal bytes.
    ///
    /// - Throws: `failed` for values that have no form in documents.
    package func appendKey(descending: Bool = false, into writer: inout ByteBuffer) throws(ExpressionError) {
        guard case .absent = self else {
            let bytes = try wireBytes()
            return ValueKey.append(wireValue: bytes.byteSpan, descending: descending, into: &writer)
        }
        let start = writer.count
        writer.append(byte: Operand.absentKey)
        if descending { writer.invertBits(from: start) }
    }

    /// Between the end of a sequence and the label of null.
    private static let absentKey: UInt8 = 3
}

extension Number {
    /// Whether the number is not one.
    package var isNaN: Bool {
        if case .double(let value) = self { value.isNaN } else { false }
    }
}
