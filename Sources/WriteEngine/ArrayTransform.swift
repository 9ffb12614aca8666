// Array union and removal on wire bytes.
//
// Elements are compared by Firestore's equality, in which 3 = 3.0. The order-preserving key of a value is the same for
// equal values, so elements are compared by their keys in a set: the cost grows with the elements, not their product.
// Every element is paid for before it is looked at; when the budget is spent, the transforms stop half-way.

internal import Basics
import DocumentModel

enum ArrayTransform {
    /// Appends the array with the missing elements added at its end, each once. What is not an array counts as empty.
    static func appendMissing(
        _ elements: [EncodedValue], to stored: RawSpan?, budget: inout WorkBudget, into writer: inout ByteBuffer
    ) throws(InvalidDocument) {
        var keys = ElementKeys()
        try writer.withLengthPrefix(field: FieldNumber.Value.arrayValue) { (writer) throws(InvalidDocument) in
            if let array = arrayElements(stored) {
                writer.append(array)
                try forEachElement(of: array, &budget) { element, _ in _ = keys.insert(element) }
            }
            for element in elements where budget.payElement(element.span) && keys.insert(element.span) {
                writer.appendField(FieldNumber.ArrayValue.values, bytes: element.bytes)
            }
        }
    }

    /// Appends the array without the elements equal to one of those given. What is not an array counts as empty.
    static func removeAll(
        _ elements: [EncodedValue], from stored: RawSpan?, budget: inout WorkBudget, into writer: inout ByteBuffer
    ) throws(InvalidDocument) {
        var unwanted = ElementKeys()
        for element in elements where budget.payElement(element.span) { _ = unwanted.insert(element.span) }
        try writer.withLengthPrefix(field: FieldNumber.Value.arrayValue) { (writer) throws(InvalidDocument) in
            guard let array = arrayElements(stored) else { return }
            try forEachElement(of: array, &budget) { element, entry in
                if !unwanted.contains(element) { writer.append(entry) }
            }
        }
    }

    /// The elements' bytes of a value that is an array; nil for everything else.
    @_lifetime(copy value)
    private static func arrayElements(_ value: RawSpan?) -> RawSpan? {
        guard let value, let wire = WireValue(value), wire.typeClass == .array else { return nil }
        return wire.payload
    }

    /// Visits each element's `Value` message, and its bytes with tag and length, until the budget is spent.
    private static func forEachElement(
        of array: RawSpan, _ budget: inout WorkBudget, _ body: (_ element: RawSpan, _ entry: RawSpan) -> Void
    ) throws(InvalidDocument) {
        var reader = WireReader(array)
        while true {
            let start = reader.position
            guard let tag = try reader.nextTag() else { return }
            let element = try reader.span(tag)
            guard budget.payElement(element) else { return }
            body(element, array.extracting(start..<reader.position))
        }
    }
}

/// A set of array elements.
private struct ElementKeys: ~Copyable {
    private var keys = ByteTable()
    /// The order-preserving key of one element: the same for equal ones.
    private var key = ByteBuffer(capacity: 64)

    /// Adds an element, given as a `Value` message.
    /// - Returns: false if there is an equal one already.
    mutating func insert(_ element: RawSpan) -> Bool {
        key.reset()
        ValueKey.append(wireValue: element, into: &key)
        return Self.insert(key, into: &keys)
    }

    private static func insert(_ key: borrowing ByteBuffer, into keys: inout ByteTable) -> Bool {
        keys.insert(key.bytes, hash: ByteTable.hash(key.bytes), value: 0) == nil
    }

    /// Whether there is an equal element.
    mutating func contains(_ element: RawSpan) -> Bool {
        key.reset()
        ValueKey.append(wireValue: element, into: &key)
        return keys.value(of: key.bytes) != nil
    }
}
