// Array union and removal on wire bytes.
//
// Elements are compared by Firestore's equality, in which 3 = 3.0. The order-preserving key of a value is the same for
// equal values, so elements are told apart by their keys in a set: the cost grows with the elements, not their product.

import DocumentModel

enum ArrayTransform {
    /// Appends the array with the elements that it lacks added at its end, each once. What is no array counts as empty.
    static func appendMissing(
        _ elements: [EncodedValue], to stored: RawSpan?, into writer: inout WireWriter
    ) throws(InvalidDocument) {
        var present: Set<[UInt8]> = []
        try writer.withLengthPrefix(field: 9) { (writer) throws(InvalidDocument) in
            if let array = arrayElements(stored) {
                writer.append(array)
                try forEachElement(of: array) { element, _ in _ = present.insert(elementKey(element)) }
            }
            for element in elements where present.insert(elementKey(element.span)).inserted {
                writer.appendField(1, bytes: element.bytes)
            }
        }
    }

    /// Appends the array without the elements equal to one of those given. What is no array counts as empty.
    static func removeAll(
        _ elements: [EncodedValue], from stored: RawSpan?, into writer: inout WireWriter
    ) throws(InvalidDocument) {
        var unwanted: Set<[UInt8]> = []
        for element in elements { unwanted.insert(elementKey(element.span)) }
        try writer.withLengthPrefix(field: 9) { (writer) throws(InvalidDocument) in
            guard let array = arrayElements(stored) else { return }
            try forEachElement(of: array) { element, entry in
                if !unwanted.contains(elementKey(element)) { writer.append(entry) }
            }
        }
    }

    /// The elements' bytes of a value that is an array; nil for everything else.
    @_lifetime(copy value)
    private static func arrayElements(_ value: RawSpan?) -> RawSpan? {
        guard let value, let wire = WireValue(value), wire.typeClass == .array else { return nil }
        return wire.payload
    }

    /// Visits each element's `Value` message, and its bytes with tag and length.
    private static func forEachElement(
        of array: RawSpan, _ body: (_ element: RawSpan, _ entry: RawSpan) -> Void
    ) throws(InvalidDocument) {
        var reader = WireReader(array)
        while true {
            let start = reader.position
            guard let tag = try reader.nextTag() else { return }
            let element = try reader.span(tag)
            body(element, array.extracting(start..<reader.position))
        }
    }

    /// The element's order-preserving key: equal for equal values.
    private static func elementKey(_ element: RawSpan) -> [UInt8] {
        var key = WireWriter(capacity: 32)
        ValueKey.append(wireValue: element, into: &key)
        return key.copyBytes()
    }
}
