// Reading wire bytes in place, every step checked against the end.

/// Bytes that are not what the wire format allows.
struct MalformedBytes: Error {
    /// Offset in the bytes being decoded.
    let offset: Int
}

/// The body of a Value message, as offsets into the bytes being decoded. Empty: a null.
struct ValueRange {
    var start: Int
    var end: Int
}

/// A cursor over `at..<end` of the bytes at `base`.
@safe struct WireCursor {
    // Owner: the caller of `decode`, for the time of that call. Bounds: the creator guarantees `end`.
    let base: UnsafeRawPointer
    var at: Int
    let end: Int

    @inline(__always)
    init(_ base: UnsafeRawPointer, _ at: Int, _ end: Int) {
        unsafe self.base = unsafe base
        self.at = at
        self.end = end
    }

    @inline(__always) var isAtEnd: Bool { at >= end }

    @inline(__always)
    mutating func byte() throws(MalformedBytes) -> UInt8 {
        if at >= end { throw MalformedBytes(offset: at) }
        let byte = unsafe base.load(fromByteOffset: at, as: UInt8.self)
        at &+= 1
        return byte
    }

    @inline(__always)
    mutating func varint() throws(MalformedBytes) -> UInt64 {
        let first = try byte()
        return first < 0x80 ? UInt64(first) : try longVarint(first)
    }

    @inline(never)
    private mutating func longVarint(_ first: UInt8) throws(MalformedBytes) -> UInt64 {
        var value = UInt64(first & 0x7f)
        var shift: UInt64 = 7
        while shift < 64 {
            let next = try byte()
            value |= UInt64(next & 0x7f) << shift
            if next < 0x80 { return value }
            shift += 7
        }
        throw MalformedBytes(offset: at)
    }

    /// The range of a length-delimited payload.
    @inline(__always)
    mutating func payload() throws(MalformedBytes) -> ValueRange {
        let length = try varint()
        if length > UInt64(end &- at) { throw MalformedBytes(offset: at) }
        let start = at
        at &+= Int(truncatingIfNeeded: length)
        return ValueRange(start: start, end: at)
    }

    /// Eight little-endian bytes.
    @inline(__always)
    mutating func fixed64() throws(MalformedBytes) -> UInt64 {
        if end &- at < 8 { throw MalformedBytes(offset: at) }
        let bits = unsafe base.loadUnaligned(fromByteOffset: at, as: UInt64.self)
        at &+= 8
        return UInt64(littleEndian: bits)
    }

    /// Steps over the payload of a field with the given tag.
    @inline(never)
    mutating func skip(_ tag: UInt64) throws(MalformedBytes) {
        switch tag & 7 {
        case 0: _ = try varint()
        case 1: _ = try fixed64()
        case 2: _ = try payload()
        case 5:
            if end - at < 4 { throw MalformedBytes(offset: at) }
            at += 4
        default: throw MalformedBytes(offset: at)
        }
    }
}

/// What a Value message holds.
enum WireKind {
    case null
    case boolean(Bool)
    case integer(Int64)
    case double(Double)
    case timestamp(ValueRange)
    case string(ValueRange)
    case bytes(ValueRange)
    case reference(ValueRange)
    case geoPoint(ValueRange)
    /// The body of the ArrayValue.
    case array(ValueRange)
    /// The body of the MapValue.
    case map(ValueRange)
    /// An object passed through; see `ValueWireTag.treeObject`.
    case object(Int)
}

extension WireCursor {
    /// Reads a Value message; the last of its fields counts, unknown fields are skipped, none at all is null.
    @inline(__always)
    mutating func value() throws(MalformedBytes) -> WireKind {
        var kind = WireKind.null
        while !isAtEnd { try field(into: &kind) }
        return kind
    }

    @inline(__always)
    private mutating func field(into kind: inout WireKind) throws(MalformedBytes) {
        let tag = try varint()
        switch tag {
        case UInt64(ValueWireTag.null):
            _ = try varint()
            kind = .null
        case UInt64(ValueWireTag.boolean): kind = .boolean(try varint() != 0)
        case UInt64(ValueWireTag.integer): kind = .integer(Int64(bitPattern: try varint()))
        case UInt64(ValueWireTag.double): kind = .double(Double(bitPattern: try fixed64()))
        case UInt64(ValueWireTag.timestamp): kind = .timestamp(try payload())
        case LongTag.string: kind = .string(try payload())
        case LongTag.bytes: kind = .bytes(try payload())
        case UInt64(ValueWireTag.reference): kind = .reference(try payload())
        case UInt64(ValueWireTag.geoPoint): kind = .geoPoint(try payload())
        case UInt64(ValueWireTag.array): kind = .array(try payload())
        case UInt64(ValueWireTag.map): kind = .map(try payload())
        case LongTag.treeObject: kind = .object(Int(truncatingIfNeeded: try varint() & 0x7fff_ffff))
        default: try skip(tag)
        }
    }

    /// The seconds and nanoseconds of a Timestamp message.
    mutating func timestamp() throws(MalformedBytes) -> (seconds: Int64, nanoseconds: Int32) {
        var seconds: Int64 = 0
        var nanoseconds: Int32 = 0
        while !isAtEnd {
            switch try varint() {
            case UInt64(ValueWireTag.seconds): seconds = Int64(bitPattern: try varint())
            case UInt64(ValueWireTag.nanoseconds): nanoseconds = Int32(truncatingIfNeeded: try varint())
            case let tag: try skip(tag)
            }
        }
        return (seconds, nanoseconds)
    }

    /// The coordinates of a LatLng message.
    mutating func geoPoint() throws(MalformedBytes) -> (latitude: Double, longitude: Double) {
        var latitude = 0.0
        var longitude = 0.0
        while !isAtEnd {
            switch try varint() {
            case UInt64(ValueWireTag.latitude): latitude = Double(bitPattern: try fixed64())
            case UInt64(ValueWireTag.longitude): longitude = Double(bitPattern: try fixed64())
            case let tag: try skip(tag)
            }
        }
        return (latitude, longitude)
    }

    /// The next element of an ArrayValue, or nil at its end.
    @inline(__always)
    mutating func nextElement() throws(MalformedBytes) -> ValueRange? {
        while !isAtEnd {
            let tag = try varint()
            if tag == UInt64(ValueWireTag.arrayElement) { return try payload() }
            try skip(tag)
        }
        return nil
    }

    /// The next entry of a map with the given tag, or nil at its end.
    @inline(__always)
    mutating func nextEntry(_ entryTag: UInt8) throws(MalformedBytes) -> (key: ValueRange, value: ValueRange)? {
        if let usual = usualEntry(entryTag) { return usual }
        return isAtEnd ? nil : try unusualEntry(entryTag)
    }

    /// The next entry if it is as encoders write it: key then value, with lengths of one or two bytes.
    ///
    /// - Returns: nil, without a step, for everything else, also for malformed bytes.
    @inline(__always)
    private mutating func usualEntry(_ entryTag: UInt8) -> (key: ValueRange, value: ValueRange)? {
        // The shortest entry has six bytes.
        if end &- at < 6 { return nil }
        let head = unsafe base.loadUnaligned(fromByteOffset: at, as: UInt32.self).littleEndian
        let (keyStart, length, keyCount): (Int, Int, Int)
        let tag = UInt32(entryTag)
        let keyTag = UInt32(ValueWireTag.entryKey)
        let lowLength = head >> 8 & 0x7f
        if head & 0x00ff_80ff == tag | keyTag << 16 {
            (keyStart, length) = (at &+ 4, Int(lowLength) &+ 2)
            keyCount = Int(head >> 24)
        } else if head & 0xff80_80ff == tag | 0x8000 | keyTag << 24 {
            let highLength = head >> 9 & 0x3f80
            (keyStart, length) = (at &+ 5, Int(lowLength | highLength) &+ 3)
            keyCount = Int(unsafe base.load(fromByteOffset: at &+ 4, as: UInt8.self))
        } else {
            return nil
        }
        let entryEnd = at &+ length
        let keyEnd = keyStart &+ keyCount
        if keyCount >= 0x80 || entryEnd > end || keyEnd &+ 2 > entryEnd { return nil }
        let valueHead = unsafe base.loadUnaligned(fromByteOffset: keyEnd, as: UInt16.self).littleEndian
        if UInt8(truncatingIfNeeded: valueHead) != ValueWireTag.entryValue { return nil }
        var valueStart = keyEnd &+ 2
        var valueCount = Int(valueHead >> 8)
        if valueCount >= 0x80 {
            if valueStart == entryEnd { return nil }
            let second = unsafe base.load(fromByteOffset: valueStart, as: UInt8.self)
            valueCount = valueCount & 0x7f | Int(second) << 7
            valueStart &+= 1
            if second >= 0x80 { return nil }
        }
        if valueStart &+ valueCount != entryEnd { return nil }
        at = entryEnd
        return (ValueRange(start: keyStart, end: keyEnd), ValueRange(start: valueStart, end: entryEnd))
    }

    /// The next entry in any form: with its fields in another order, missing, repeated, or with unknown ones between.
    ///
    /// - Returns: nil at the end.
    @inline(never)
    private mutating func unusualEntry(_ entryTag: UInt8) throws(MalformedBytes) -> (
        key: ValueRange, value: ValueRange
    )? {
        while !isAtEnd {
            let tag = try varint()
            if tag != UInt64(entryTag) {
                try skip(tag)
                continue
            }
            let range = try payload()
            var entry = unsafe WireCursor(base, range.start, range.end)
            var key = ValueRange(start: entry.at, end: entry.at)
            var value = key
            while !entry.isAtEnd {
                switch try entry.varint() {
                case UInt64(ValueWireTag.entryKey): key = try entry.payload()
                case UInt64(ValueWireTag.entryValue): value = try entry.payload()
                case let tag: try entry.skip(tag)
                }
            }
            return (key, value)
        }
        return nil
    }

    /// The bytes of a range.
    @inline(__always)
    func bytes(_ range: ValueRange) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: base + range.start, count: range.end - range.start)
    }

    /// The text of a range; bytes that are not UTF-8 are replaced.
    @inline(__always)
    func text(_ range: ValueRange) -> String { unsafe String(decoding: bytes(range), as: UTF8.self) }
}
