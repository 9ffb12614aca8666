// Numbers of every kind: from text to the bits on the wire, and back.
//
// The bits of a number are a UInt64. On the wire they are a varint, or the lower four or all eight bytes in
// little-endian order, by the kind's `wireType` (protobuf.dev, "Encoding"). A negative int32 has ten bytes as a varint;
// sint32 and sint64 have the zigzag form.

import Basics
internal import DocumentModel

extension FieldKind {
    /// What an error says that a text is not.
    var numberName: String {
        switch self {
        case .float: "a float"
        case .double: "a double"
        case .int32, .sint32, .sfixed32: "a 32-bit integer"
        case .uint32, .fixed32: "an unsigned 32-bit integer"
        case .uint64, .fixed64: "an unsigned 64-bit integer"
        default: "a 64-bit integer"
        }
    }

    /// The bits of the number that `text` spells; nil if this kind has no such number.
    /// - Parameter allowsNames: whether NaN and the infinities may be spelled by name.
    func bits(ofNumber text: String, allowsNames: Bool) -> UInt64? {
        switch self {
        case .double: ScalarText.double(text, allowsNames: allowsNames)?.bitPattern
        case .float: ScalarText.float(text, allowsNames: allowsNames).map { UInt64($0.bitPattern) }
        case .int64, .sfixed64: ScalarText.integer(text, as: Int64.self).map { UInt64(bitPattern: $0) }
        case .int32: ScalarText.integer(text, as: Int32.self).map { UInt64(bitPattern: Int64($0)) }
        case .sfixed32: ScalarText.integer(text, as: Int32.self).map { UInt64(UInt32(bitPattern: $0)) }
        case .sint64: ScalarText.integer(text, as: Int64.self).map(Self.zigzag)
        case .sint32: ScalarText.integer(text, as: Int32.self).map { Self.zigzag(Int64($0)) }
        case .uint64, .fixed64: ScalarText.integer(text, as: UInt64.self)
        case .uint32, .fixed32: ScalarText.integer(text, as: UInt32.self).map { UInt64($0) }
        case .bool, .enumeration, .string, .bytes, .message: nil
        }
    }

    /// The JSON of a number with these bits. Numbers of 64 bits, NaN and the infinities are in quotes.
    func numberText(_ bits: UInt64) -> String {
        switch self {
        case .double: Self.text(Double(bitPattern: bits))
        case .float: Self.text(Float(bitPattern: UInt32(truncatingIfNeeded: bits)))
        case .int64, .sfixed64: "\"\(Int64(bitPattern: bits))\""
        case .sint64: "\"\(Self.unzigzag(bits))\""
        case .uint64, .fixed64: "\"\(bits)\""
        case .uint32, .fixed32: "\(UInt32(truncatingIfNeeded: bits))"
        case .sint32: "\(Int32(truncatingIfNeeded: Self.unzigzag(bits & 0xFFFF_FFFF)))"
        default: "\(Int32(truncatingIfNeeded: bits))"
        }
    }

    private static func text<Number: BinaryFloatingPoint & CustomStringConvertible>(_ value: Number) -> String {
        guard value.isFinite else { return value.isNaN ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"" }
        let text = value.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// 0, -1, 1, -2 … as 0, 1, 2, 3 …
    private static func zigzag(_ value: Int64) -> UInt64 { UInt64(bitPattern: value << 1 ^ value >> 63) }
    private static func unzigzag(_ bits: UInt64) -> Int64 { Int64(bitPattern: bits >> 1) ^ -Int64(bits & 1) }
}

extension WireReader {
    /// The bits of a value that has this layout, without a tag before it: an element of a packed field.
    @_lifetime(self: copy self)
    mutating func bits(_ type: WireType) throws(InvalidDocument) -> UInt64 {
        switch type {
        case .fixed64: try fixed64()
        case .fixed32: UInt64(try fixed32())
        default: try varint()
        }
    }
}

extension ByteBuffer {
    /// Appends a number with its tag.
    mutating func appendNumber(_ field: FieldTable, bits: UInt64) {
        appendTag(field: field.number, field.kind.wireType)
        switch field.kind.wireType {
        case .fixed64: append(littleEndian: bits)
        case .fixed32: append(littleEndian: UInt32(truncatingIfNeeded: bits))
        default: appendVarint(bits)
        }
    }
}
