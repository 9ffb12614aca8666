// Reading and writing field transforms. Field numbers: `google/firestore/v1/write.proto`.

package import Basics

extension FieldTransform {
    private typealias Field = FieldNumber.DocumentTransform.FieldTransform

    /// Reads every `FieldTransform` in a repeated field of a message, in order.
    static func list(wire: RawSpan, field: Int) throws -> [FieldTransform] {
        var transforms: [FieldTransform] = []
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == field {
                transforms.append(try FieldTransform(wire: try reader.span(tag)))
            } else {
                try reader.skip(tag)
            }
        }
        return transforms
    }

    /// Reads the message.
    ///
    /// - Throws: `RequestError` or `InvalidDocument`.
    package init(wire: RawSpan) throws {
        var path: FieldPath?
        var operation: Operation?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            switch tag.fieldNumber {
            case Field.fieldPath: path = try FieldPath(ofTransform: try reader.string(tag))
            case Field.setToServerValue:
                guard try reader.int32(tag) == 1 else {
                    throw RequestError.invalidArgument(
                        "The only server value that a field can be set to is REQUEST_TIME.")
                }
                operation = .requestTime
            case Field.increment: operation = .increment(try Number(wire: try reader.span(tag)))
            case Field.maximum: operation = .maximum(try Number(wire: try reader.span(tag)))
            case Field.minimum: operation = .minimum(try Number(wire: try reader.span(tag)))
            case Field.appendMissingElements:
                operation = .appendMissingElements(try FieldTransform.elements(try reader.span(tag)))
            case Field.removeAllFromArray:
                operation = .removeAllFromArray(try FieldTransform.elements(try reader.span(tag)))
            default: try reader.skip(tag)
            }
        }
        guard let path else { throw RequestError.emptyFieldPath }
        guard let operation else { throw RequestError.invalidArgument("A field transform must have a type.") }
        self.init(path: path, operation: operation)
    }

    /// The elements of an `ArrayValue`, each as canonical bytes.
    private static func elements(_ array: RawSpan) throws -> [EncodedValue] {
        var elements: [EncodedValue] = []
        var reader = WireReader(array)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == FieldNumber.ArrayValue.values {
                elements.append(try EncodedValue(element: try reader.span(tag)))
            } else {
                try reader.skip(tag)
            }
        }
        return elements
    }

    /// Appends the message's fields.
    package func encode(into writer: inout ByteBuffer) {
        writer.appendField(Field.fieldPath, string: path.description)
        switch operation {
        case .requestTime: writer.appendField(Field.setToServerValue, varint: 1)
        case .increment(let number): writer.withLengthPrefix(field: Field.increment) { number.value.encode(into: &$0) }
        case .maximum(let number): writer.withLengthPrefix(field: Field.maximum) { number.value.encode(into: &$0) }
        case .minimum(let number): writer.withLengthPrefix(field: Field.minimum) { number.value.encode(into: &$0) }
        case .appendMissingElements(let elements):
            FieldTransform.encode(elements, field: Field.appendMissingElements, into: &writer)
        case .removeAllFromArray(let elements):
            FieldTransform.encode(elements, field: Field.removeAllFromArray, into: &writer)
        }
    }

    private static func encode(_ elements: [EncodedValue], field: Int, into writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: field) { writer in
            for element in elements { writer.appendField(FieldNumber.ArrayValue.values, bytes: element.bytes) }
        }
    }
}

extension FieldTransform.Number {
    /// Reads a `Value` message that must hold a number.
    init(wire: RawSpan) throws {
        switch try Value(wire: wire) {
        case .integer(let number): self = .integer(number)
        case .double(let number): self = .double(number)
        default: throw RequestError.invalidArgument("Input must be int64 or double.")
        }
    }

    /// The number as a value.
    package var value: Value {
        switch self {
        case .integer(let number): .integer(number)
        case .double(let number): .double(number)
        }
    }
}
