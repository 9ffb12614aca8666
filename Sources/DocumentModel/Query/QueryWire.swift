// Small pieces that the query messages share on the wire: field references, wrapped numbers, enumeration numbers.

import Basics

extension RawRepresentable where RawValue == UInt8 {
    /// The case with an enumeration number from the wire, if there is one.
    init?(rawNumber: Int32) {
        guard let raw = UInt8(exactly: rawNumber) else { return nil }
        self.init(rawValue: raw)
    }
}

extension WireReader {
    /// The number in a `google.protobuf.Int32Value` or `Int64Value`.
    @_lifetime(self: copy self)
    mutating func wrappedInteger(_ tag: WireTag) throws(InvalidDocument) -> Int64 {
        var message = try message(tag)
        var value: Int64 = 0
        while let tag = try message.nextTag() {
            if tag.fieldNumber == FieldNumber.Protobuf.Int64Value.value {
                value = try message.int64(tag)
            } else {
                try message.skip(tag)
            }
        }
        return value
    }

    /// The number in a `google.protobuf.DoubleValue`.
    @_lifetime(self: copy self)
    mutating func wrappedDouble(_ tag: WireTag) throws(InvalidDocument) -> Double {
        var message = try message(tag)
        var value = 0.0
        while let tag = try message.nextTag() {
            if tag.fieldNumber == FieldNumber.Protobuf.DoubleValue.value {
                value = try message.double(tag)
            } else {
                try message.skip(tag)
            }
        }
        return value
    }
}

extension ByteBuffer {
    /// A `FieldReference` message in the given field.
    mutating func appendFieldReference(_ field: Int, _ path: FieldPath) {
        withLengthPrefix(field: field) {
            $0.appendField(FieldNumber.StructuredQuery.FieldReference.fieldPath, string: path.description)
        }
    }
}

extension FieldPath {
    /// Reads a `FieldReference` message.
    init(fieldReference wire: RawSpan) throws {
        var text: String?
        var reader = WireReader(wire)
        while let tag = try reader.nextTag() {
            if tag.fieldNumber == FieldNumber.StructuredQuery.FieldReference.fieldPath {
                text = try reader.string(tag)
            } else {
                try reader.skip(tag)
            }
        }
        try self.init(text ?? "")
    }
}

extension RequestError {
    /// A message lacks the field path that it must have.
    static let emptyFieldPath = RequestError.invalidArgument("Invalid empty property path string.")

    /// The error of reading a message, as the client gets it.
    package init(queryFault error: any Error) {
        switch error {
        case let error as RequestError: self = error
        case let error as InvalidDocument: self.init(error)
        default: self = .invalidArgument("The query could not be read: \(error)")
        }
    }
}
