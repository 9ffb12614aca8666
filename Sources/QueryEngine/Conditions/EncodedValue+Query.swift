// What the query layer asks of an operand.

import Basics
import DocumentModel

extension EncodedValue {
    var isNull: Bool { EncodedValue.isNull(span) }
    var isNullOrNaN: Bool { EncodedValue.isNull(span) || EncodedValue.isNaN(span) }

    static func isNull(_ value: RawSpan) -> Bool { WireValue(value)?.isNull ?? false }
    static func isNaN(_ value: RawSpan) -> Bool { WireValue(value)?.isNaN ?? false }

    /// The members of the array that a list operator takes.
    func nonEmptyList(of operation: FieldOperator) throws(RequestError) -> [EncodedValue] {
        guard var elements = WireValue(span)?.elements else {
            throw .invalidArgument("'\(operation.name)' requires an ArrayValue.")
        }
        var list: [EncodedValue] = []
        while let element = elements.next() { list.append(EncodedValue(copying: element)) }
        if list.isEmpty { throw .invalidArgument("'\(operation.name)' requires an non-empty ArrayValue.") }
        return list
    }

    /// The name that the operand refers to; nil if it is not a reference.
    package var referenceBytes: [UInt8]? {
        guard let value = WireValue(span), value.typeClass == .reference else { return nil }
        return [UInt8](copying: value.payload)
    }

    /// The value as plans show it.
    var text: String {
        guard let value = try? Value(wire: span) else { return "?" }
        return value.planText
    }
}

extension Value {
    /// Null, a Boolean or a number in the form of a literal; empty for other values.
    package var scalarText: String {
        switch self {
        case .null: "null"
        case .boolean(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .double(let value):
            value.isNaN ? "NaN" : value.isInfinite ? (value < 0 ? "-Infinity" : "Infinity") : "\(value)"
        default: ""
        }
    }

    /// The value in the form of a literal, cut where it is long.
    fileprivate var planText: String {
        switch self {
        case .null, .boolean, .integer, .double: return scalarText
        case .timestamp(let value): return "timestamp(\(value.microseconds))"
        case .string(let value): return "\"\(value.count > 40 ? value.prefix(40) + "…" : value)\""
        case .bytes(let value): return "bytes(\(value.count))"
        case .reference(let value): return "<\(value.split(separator: "/").dropFirst(5).joined(separator: "/"))>"
        case .geoPoint(let value): return "geo(\(value.latitude), \(value.longitude))"
        case .array(let elements):
            let shown = elements.prefix(8).map(\.planText).joined(separator: ", ")
            return "[\(shown)\(elements.count > 8 ? ", …" : "")]"
        case .map(let map):
            if let elements = vectorElements {
                let shown = elements.prefix(8).map { "\($0)" }.joined(separator: ", ")
                return "vector(\(shown)\(elements.count > 8 ? ", …" : ""))"
            }
            let shown = map.entries.prefix(8).map { "\($0.key): \($0.value.planText)" }.joined(separator: ", ")
            return "{\(shown)\(map.count > 8 ? ", …" : "")}"
        }
    }
}
