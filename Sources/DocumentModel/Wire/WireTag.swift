// Field tags of protobuf messages, and those of Firestore's values.

/// How a field's payload is laid out. Source: protobuf "Encoding", message structure.
@usableFromInline package enum WireType: UInt8, Sendable {
    case varint = 0
    case fixed64 = 1
    case lengthDelimited = 2
    case startGroup = 3
    case endGroup = 4
    case fixed32 = 5
}

/// A field's tag: number and wire type in one integer, as it stands on the wire.
@usableFromInline package struct WireTag: Sendable, Hashable {
    /// `fieldNumber << 3 | wireType`.
    @usableFromInline package let rawValue: UInt32

    @inlinable
    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    @inlinable @inline(__always)
    package init(field: Int, _ type: WireType) {
        rawValue = UInt32(truncatingIfNeeded: field) << 3 | UInt32(type.rawValue)
    }

    /// The one byte of a tag whose field number is below 16.
    @inlinable @inline(__always)
    package static func byte(_ field: Int, _ type: WireType) -> UInt8 {
        UInt8(truncatingIfNeeded: field &<< 3) | type.rawValue
    }

    /// The first of the two bytes of a tag whose field number is 16 ... 2047.
    @inlinable @inline(__always)
    package static func firstByte(_ field: Int, _ type: WireType) -> UInt8 { byte(field, type) | 0x80 }

    /// The second of the two bytes of a tag whose field number is 16 ... 2047.
    @inlinable @inline(__always)
    package static func secondByte(_ field: Int) -> UInt8 { UInt8(truncatingIfNeeded: field &>> 4) }

    /// 1 ... 536,870,911.
    @inlinable
    package var fieldNumber: Int { Int(rawValue >> 3) }

    /// The layout of the payload. The two type numbers that protobuf leaves unused never get past ``WireReader``.
    @inlinable
    package var wireType: WireType { WireType(rawValue: UInt8(rawValue & 7)) ?? .endGroup }
}

/// Tags of `google.firestore.v1.Value` as they stand on the wire.
///
/// Those below 16 take one byte; string and bytes take two, written here as the varint's value.
package enum ValueTag {
    package static let boolean: UInt32 = 1 << 3
    package static let integer: UInt32 = 2 << 3
    package static let double: UInt32 = 3 << 3 | 1
    package static let reference: UInt32 = 5 << 3 | 2
    package static let map: UInt32 = 6 << 3 | 2
    package static let geoPoint: UInt32 = 8 << 3 | 2
    package static let array: UInt32 = 9 << 3 | 2
    package static let timestamp: UInt32 = 10 << 3 | 2
    package static let null: UInt32 = 11 << 3
    package static let string: UInt32 = 17 << 3 | 2
    package static let bytes: UInt32 = 18 << 3 | 2
    /// Values that only pipelines may hold: field reference, function, pipeline and variable.
    package static let pipelineFields = 19...22
}

/// Tags of the messages around values; each is one byte on the wire.
package enum DocumentTag {
    /// `Document.name`.
    package static let name: UInt8 = 0x0a
    /// `Document.fields`, an entry of the top-level map.
    package static let field: UInt8 = 0x12
    /// `Document.create_time`.
    package static let createTime: UInt8 = 0x1a
    /// `Document.update_time`.
    package static let updateTime: UInt8 = 0x22
    /// `MapValue.fields`, an entry of a nested map.
    package static let mapEntry: UInt8 = 0x0a
    /// `ArrayValue.values`.
    package static let arrayElement: UInt8 = 0x0a
    /// The key of a map entry.
    package static let entryKey: UInt8 = 0x0a
    /// The value of a map entry.
    package static let entryValue: UInt8 = 0x12
}
