// What a field transform makes of a field's stored value. Rules: semantics page, section 6.

import Basics
import DocumentModel

/// Computes the new values of transformed fields.
enum TransformValue {
    /// Appends the field's new `Value` message.
    ///
    /// - Parameters:
    ///   - stored: the field's `Value` message as it is; nil if the field is absent.
    ///   - commitMicroseconds: the time of the commit, which `REQUEST_TIME` stands for.
    ///   - budget: pays for the elements of arrays. When it is spent, the value is not complete.
    /// - Returns: whether the client gets the new value; it gets null for the array transforms.
    static func append(
        _ operation: FieldTransform.Operation, stored: RawSpan?, commitMicroseconds: UInt64,
        budget: inout WorkBudget, into writer: inout ByteBuffer
    ) throws(InvalidDocument) -> Bool {
        switch operation {
        case .requestTime:
            let time = TimestampValue(microseconds: Int64(clamping: commitMicroseconds))
            Value.timestamp(time).encode(into: &writer)
            return true
        case .increment(let operand):
            Value(increment(number(stored), by: operand)).encode(into: &writer)
            return true
        case .maximum(let operand):
            Value(extreme(number(stored), operand, keepsLarger: true)).encode(into: &writer)
            return true
        case .minimum(let operand):
            Value(extreme(number(stored), operand, keepsLarger: false)).encode(into: &writer)
            return true
        case .appendMissingElements(let elements):
            try ArrayTransform.appendMissing(elements, to: stored, budget: &budget, into: &writer)
            return false
        case .removeAllFromArray(let elements):
            try ArrayTransform.removeAll(elements, from: stored, budget: &budget, into: &writer)
            return false
        }
    }

    /// The stored number; nil for everything else.
    private static func number(_ stored: RawSpan?) -> FieldTransform.Number? {
        guard let stored, let value = WireValue(stored) else { return nil }
        if let integer = value.integer { return .integer(integer) }
        return value.double.map { .double($0) }
    }

    /// The sum; a stored value that is not a number counts as absent, and then the operand is the sum.
    static func increment(
        _ stored: FieldTransform.Number?, by operand: FieldTransform.Number
    ) -> FieldTransform.Number {
        switch (stored, operand) {
        case (nil, _): return operand
        case (.integer(let left), .integer(let right)):
            let (sum, overflow) = left.addingReportingOverflow(right)
            return .integer(overflow ? (right < 0 ? .min : .max) : sum)
        case (.integer(let left), .double(let right)): return .double(Double(left) + right)
        case (.double(let left), .integer(let right)): return .double(left + Double(right))
        case (.double(let left), .double(let right)): return .double(left + right)
        }
    }

    /// The larger or the smaller number in its own type; the stored one when they are equal; NaN when either is.
    static func extreme(
        _ stored: FieldTransform.Number?, _ operand: FieldTransform.Number, keepsLarger: Bool
    ) -> FieldTransform.Number {
        guard let stored else { return operand }
        if stored.isNaN { return stored }
        if operand.isNaN { return operand }
        let order = ValueOrder.compare(Value(stored), Value(operand))
        return order == .equal || (order == .greater) == keepsLarger ? stored : operand
    }
}

extension FieldTransform.Number {
    var isNaN: Bool {
        if case .double(let number) = self { number.isNaN } else { false }
    }
}

extension Value {
    init(_ number: FieldTransform.Number) {
        self = number.value
    }
}
