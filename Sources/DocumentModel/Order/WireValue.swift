// One encoded value taken apart just far enough to check it.

/// The type classes of values in their order. Range filters match within a class only; integers and doubles share one.
///
/// Raw values are the labels that lead order-preserving keys, those of the vendor's index format where clients show
/// them; the gaps leave room. They are written to disk: never change one.
package enum TypeClass: UInt8, Sendable, Comparable, CaseIterable {
    case null = 5
    case minKey = 7
    case boolean = 10
    case number = 15
    case timestamp = 20
    case bsonTimestamp = 22
    case string = 25
    case bytes = 30
    case binary = 33
    case reference = 37
    case objectID = 41
    case geoPoint = 45
    case regex = 47
    case array = 50
    case vector = 53
    case map = 55
    case maxKey = 61

    package static func < (left: TypeClass, right: TypeClass) -> Bool { left.rawValue < right.rawValue }
}

/// A canonical `Value` message, read in place.
package struct WireValue: ~Escapable {
    /// The tag, one of ``ValueTag``.
    package let tag: UInt32
    /// A varint's value or a double's bits; 0 for other types.
    package let bits: UInt64
    /// The payload of a length-delimited type, without tag and length: a string's or bytes' contents, an array's
    /// elements, a map's entries. Empty for other types.
    package let payload: RawSpan
    package let typeClass: TypeClass

    /// Reads the first field of a `Value` message; nil when that is not a typed value.
    @_lifetime(copy value)
    package init?(_ value: RawSpan) {
        var reader = WireReader(value)
        guard let tag = (try? reader.nextTag())?.rawValue else { return nil }
        var bits: UInt64 = 0
        var payload = value.extracting(0..<0)
        switch tag & 7 {
        case 0:
            guard let varint = try? reader.varint() else { return nil }
            bits = varint
        case 1:
            guard let fixed = try? reader.fixed64() else { return nil }
            bits = fixed
        case 2:
            guard let end = try? reader.endOfLengthDelimited() else { return nil }
            payload = value.extracting(reader.position..<end)
        default: return nil
        }
        switch tag {
        case ValueTag.null: typeClass = .null
        case ValueTag.boolean: typeClass = .boolean
        case ValueTag.integer, ValueTag.double: typeClass = .number
        case ValueTag.timestamp: typeClass = .timestamp
        case ValueTag.string: typeClass = .string
        case ValueTag.bytes: typeClass = .bytes
        case ValueTag.reference: typeClass = .reference
        case ValueTag.geoPoint: typeClass = .geoPoint
        case ValueTag.array: typeClass = .array
        case ValueTag.map:
            typeClass =
                VectorBytes.isVector(mapEntries: payload)
                ? .vector : SentinelBytes.kind(mapEntries: payload)?.typeClass ?? .map
        default: return nil
        }
        self.tag = tag
        self.bits = bits
        self.payload = payload
    }

    package var isNull: Bool { tag == ValueTag.null }
    package var isNaN: Bool {
        if tag == ValueTag.double { return Double(bitPattern: bits).isNaN }
        guard tag == ValueTag.map, typeClass == .number, case .double(let number)? = number else { return false }
        return number.isNaN
    }

    /// The value of an integer.
    package var integer: Int64? { tag == ValueTag.integer ? Int64(bitPattern: bits) : nil }
    /// The value of a double.
    package var double: Double? { tag == ValueTag.double ? Double(bitPattern: bits) : nil }
    /// The value of a number of any type.
    package var number: Number? {
        switch tag {
        case ValueTag.integer: .integer(Int64(bitPattern: bits))
        case ValueTag.double: .double(Double(bitPattern: bits))
        case ValueTag.map where typeClass == .number: SentinelBytes.number(mapEntries: payload)
        default: nil
        }
    }
    /// The value of a timestamp.
    package var timestamp: TimestampValue? {
        guard tag == ValueTag.timestamp else { return nil }
        var reader = WireReader(payload)
        return try? TimestampValue(reading: &reader)
    }
    /// The value of a geo point.
    package var geoPoint: GeoPointValue? {
        tag == ValueTag.geoPoint ? try? GeoPointValue(wire: payload) : nil
    }
    /// The elements of an array; a vector is not one.
    package var elements: ArrayElements? {
        @_lifetime(copy self) get { tag == ValueTag.array ? ArrayElements(payload) : nil }
    }
}

/// Iterates the elements of an encoded array: each is the bytes of a `Value` message.
package struct ArrayElements: ~Escapable {
    private var reader: WireReader

    /// The contents of an `ArrayValue` message.
    @_lifetime(copy payload)
    package init(_ payload: RawSpan) {
        reader = WireReader(payload)
    }

    /// The next element, or nil at the end and where the bytes are malformed.
    @_lifetime(copy self)
    package mutating func next() -> RawSpan? {
        while let tag = try? reader.nextTag() {
            guard let payload = try? reader.span(tag) else { return nil }
            if tag.fieldNumber == FieldNumber.ArrayValue.values { return payload }
        }
        return nil
    }
}

/// Iterates the entries of an encoded map or of document bytes.
package struct MapEntries: ~Escapable {
    private var reader: WireReader

    /// The entries of a document or of a `MapValue` message.
    @_lifetime(copy entries)
    package init(_ entries: RawSpan) {
        reader = WireReader(entries)
    }

    /// The key and value of one entry.
    package struct Entry: ~Escapable {
        package let key: RawSpan
        package let value: RawSpan

        @_lifetime(copy key, copy value)
        init(key: RawSpan, value: RawSpan) {
            self.key = key
            self.value = value
        }
    }

    /// The next entry, or nil at the end and where the bytes are malformed.
    @_lifetime(copy self)
    package mutating func next() -> Entry? {
        guard let tag = try? reader.nextTag(), let bytes = try? reader.span(tag) else { return nil }
        var entry = WireReader(bytes)
        guard let keyTag = try? entry.nextTag(), let key = try? entry.span(keyTag),
            let valueTag = try? entry.nextTag(), let value = try? entry.span(valueTag)
        else { return nil }
        return Entry(key: key, value: value)
    }
}

/// The canonical bytes of a vector's sentinel map, which begin alike for all.
package enum VectorBytes {
    /// Bytes of one element, of which the last 8 are the double.
    package static let bytesPerElement = 11

    /// Whether the entries of a canonical map make it a vector.
    package static func isVector(mapEntries: RawSpan) -> Bool {
        // 0a len 0a 08 "__type__" …: no other map may have the key, so looking for it is enough.
        mapEntries.byteCount >= 12 && mapEntries[byteAt: 0] == 0x0a && mapEntries[byteAt: 3] == 8
            && mapEntries.extracting(4..<12).equalsUTF8("__type__")
    }

    /// The bytes of a vector's elements: `bytesPerElement` for each dimension.
    @_lifetime(copy mapEntries)
    package static func elementBytes(mapEntries: RawSpan) -> RawSpan {
        var entries = MapEntries(mapEntries)
        _ = entries.next()
        guard let entry = entries.next(), let array = WireValue(entry.value), array.tag == ValueTag.array else {
            return mapEntries.extracting(0..<0)
        }
        return array.payload
    }

    /// The array elements of a vector: per dimension 11 bytes, of which the last 8 are the double.
    @_lifetime(copy mapEntries)
    package static func elements(mapEntries: RawSpan) -> ArrayElements {
        ArrayElements(elementBytes(mapEntries: mapEntries))
    }

    /// The number of dimensions.
    package static func dimension(mapEntries: RawSpan) -> Int {
        var elements = elements(mapEntries: mapEntries)
        var count = 0
        while elements.next() != nil { count += 1 }
        return count
    }
}
