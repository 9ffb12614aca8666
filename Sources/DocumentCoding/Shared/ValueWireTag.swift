// Tags of `google.firestore.v1.Value` and of the messages around it, as the bytes that stand on the wire.

enum ValueWireTag {
    static let boolean: UInt8 = 0x08
    static let integer: UInt8 = 0x10
    static let double: UInt8 = 0x19
    static let reference: UInt8 = 0x2a
    static let map: UInt8 = 0x32
    static let geoPoint: UInt8 = 0x42
    static let array: UInt8 = 0x4a
    static let timestamp: UInt8 = 0x52
    static let null: UInt8 = 0x58
    /// First byte of a tag of two; the second is `longTagEnd`.
    static let string: UInt8 = 0x8a
    /// First byte of a tag of two; the second is `longTagEnd`.
    static let bytes: UInt8 = 0x92
    /// First byte of the tag of a value that only exists inside this module (`TreeObjects`): field 22, a number.
    static let treeObject: UInt8 = 0xb0
    /// Second byte of the tags above.
    static let longTagEnd: UInt8 = 0x01

    /// An entry of `Document.fields`.
    static let documentField: UInt8 = 0x12
    /// An entry of `MapValue.fields`.
    static let mapEntry: UInt8 = 0x0a
    /// `ArrayValue.values`.
    static let arrayElement: UInt8 = 0x0a
    /// The key of an entry.
    static let entryKey: UInt8 = 0x0a
    /// The value of an entry.
    static let entryValue: UInt8 = 0x12
}
