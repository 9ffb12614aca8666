import DocumentModel

/// The tags of `google.firestore.v1.Value` and of the messages that contain it, as wire bytes.
enum ValueWireTag {
    private typealias Field = FieldNumber.Value

    @inline(__always) static var boolean: UInt8 { WireTag.byte(Field.booleanValue, .varint) }
    @inline(__always) static var integer: UInt8 { WireTag.byte(Field.integerValue, .varint) }
    @inline(__always) static var double: UInt8 { WireTag.byte(Field.doubleValue, .fixed64) }
    @inline(__always) static var reference: UInt8 { WireTag.byte(Field.referenceValue, .lengthDelimited) }
    @inline(__always) static var map: UInt8 { WireTag.byte(Field.mapValue, .lengthDelimited) }
    @inline(__always) static var geoPoint: UInt8 { WireTag.byte(Field.geoPointValue, .lengthDelimited) }
    @inline(__always) static var array: UInt8 { WireTag.byte(Field.arrayValue, .lengthDelimited) }
    @inline(__always) static var timestamp: UInt8 { WireTag.byte(Field.timestampValue, .lengthDelimited) }
    @inline(__always) static var null: UInt8 { WireTag.byte(Field.nullValue, .varint) }
    /// First byte of a tag of two; the second is `longTagEnd`.
    @inline(__always) static var string: UInt8 { WireTag.firstByte(Field.stringValue, .lengthDelimited) }
    /// First byte of a tag of two; the second is `longTagEnd`.
    @inline(__always) static var bytes: UInt8 { WireTag.firstByte(Field.bytesValue, .lengthDelimited) }
    /// First byte of the tag of a value that only exists inside this module (`TreeObjects`). It takes the field number
    /// of a kind of value that no document holds.
    @inline(__always) static var treeObject: UInt8 { WireTag.firstByte(Field.variableReferenceValue, .varint) }
    /// Second byte of the tags above.
    @inline(__always) static var longTagEnd: UInt8 { WireTag.secondByte(Field.stringValue) }

    /// An entry of `Document.fields`.
    @inline(__always) static var documentField: UInt8 { WireTag.byte(FieldNumber.Document.fields, .lengthDelimited) }
    /// An entry of `MapValue.fields`.
    @inline(__always) static var mapEntry: UInt8 { WireTag.byte(FieldNumber.MapValue.fields, .lengthDelimited) }
    /// `ArrayValue.values`.
    @inline(__always) static var arrayElement: UInt8 { WireTag.byte(FieldNumber.ArrayValue.values, .lengthDelimited) }
    /// The key of an entry.
    @inline(__always) static var entryKey: UInt8 { WireTag.byte(FieldNumber.MapEntry.key, .lengthDelimited) }
    /// The value of an entry.
    @inline(__always) static var entryValue: UInt8 { WireTag.byte(FieldNumber.MapEntry.value, .lengthDelimited) }

    /// `google.protobuf.Timestamp.seconds`.
    @inline(__always) static var seconds: UInt8 { WireTag.byte(FieldNumber.Protobuf.Timestamp.seconds, .varint) }
    /// `google.protobuf.Timestamp.nanos`.
    @inline(__always) static var nanoseconds: UInt8 { WireTag.byte(FieldNumber.Protobuf.Timestamp.nanos, .varint) }
    /// `google.type.LatLng.latitude`.
    @inline(__always) static var latitude: UInt8 { WireTag.byte(FieldNumber.CommonType.LatLng.latitude, .fixed64) }
    /// `google.type.LatLng.longitude`.
    @inline(__always) static var longitude: UInt8 { WireTag.byte(FieldNumber.CommonType.LatLng.longitude, .fixed64) }
}

/// The tags of two bytes, as numbers.
enum LongTag {
    private typealias Field = FieldNumber.Value

    @inline(__always) static var string: UInt64 { UInt64(WireTag(field: Field.stringValue, .lengthDelimited).rawValue) }
    @inline(__always) static var bytes: UInt64 { UInt64(WireTag(field: Field.bytesValue, .lengthDelimited).rawValue) }
    @inline(__always) static var treeObject: UInt64 {
        UInt64(WireTag(field: Field.variableReferenceValue, .varint).rawValue)
    }
}
