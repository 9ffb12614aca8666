// Values as bytes of a Value message: its tag and what follows.

import Foundation

extension EncodingSession {
    // MARK: Common to all kinds

    @inline(__always)
    func putNull() {
        reserve(2)
        put(byte: ValueWireTag.null)
        put(byte: 0)
    }

    @inline(__always)
    func put(boolean value: Bool) {
        reserve(2)
        put(byte: ValueWireTag.boolean)
        put(byte: value ? 1 : 0)
    }

    @inline(__always)
    func put(integer value: Int64) {
        reserve(11)
        put(byte: ValueWireTag.integer)
        put(varint: UInt64(bitPattern: value))
    }

    /// Unsigned numbers above `Int64.max` have no place in a document.
    func put(unsigned value: UInt64) throws {
        if let integer = Int64(exactly: value) { return put(integer: integer) }
        if unsafe state.pointee.isTree { return put(object: NSNumber(value: value)) }
        throw invalidValue(value, "\(value) is too large: Firestore integers are signed 64-bit integers.")
    }

    /// A double of any value; NaN in its one form.
    @inline(__always)
    func put(anyDouble value: Double) {
        reserve(9)
        put(byte: ValueWireTag.double)
        put(littleEndian: value.isNaN ? 0x7ff8_0000_0000_0000 : value.bitPattern)
    }

    /// A double, as the strategy for those that are not finite demands.
    @inline(__always)
    func put(double value: Double) throws {
        if !value.isFinite { return try putNonConforming(value) }
        put(anyDouble: value)
    }

    @inline(never)
    private func putNonConforming(_ value: Double) throws {
        switch strategies?.values.float ?? .throw {
        case .throw:
            let name = value.isNaN ? "Double.nan" : value > 0 ? "Double.infinity" : "-Double.infinity"
            throw invalidValue(
                value, "Unable to encode \(name) directly. Use NonConformingFloatEncodingStrategy.convertToString.")
        case .convertToString(let positiveInfinity, let negativeInfinity, let nan):
            put(string: value.isNaN ? nan : value > 0 ? positiveInfinity : negativeInfinity)
        }
    }

    @inline(__always)
    func put(string value: String) {
        if unsafe state.pointee.readsSmallStrings, let small = SmallString.words(of: value) {
            reserve(SmallString.countMax + 3)
            let count = unsafe state.pointee.count
            let target = unsafe state.pointee.base + count
            let head = UInt32(ValueWireTag.string) | UInt32(ValueWireTag.longTagEnd) << 8 | UInt32(small.count) << 16
            unsafe target.storeBytes(of: head.littleEndian, as: UInt32.self)
            unsafe target.storeBytes(of: small.0.littleEndian, toByteOffset: 3, as: UInt64.self)
            // The byte above the text lies in the slack.
            unsafe target.storeBytes(of: small.1.littleEndian, toByteOffset: 11, as: UInt64.self)
            unsafe state.pointee.count = count &+ 3 &+ small.count
            return
        }
        let isDone: Void? = unsafe value.utf8.withContiguousStorageIfAvailable { utf8 in
            unsafe append(bytes: UnsafeRawBufferPointer(utf8), longTag: ValueWireTag.string)
        }
        if isDone == nil { putBridged(value) }
    }

    /// A string whose bytes are not in one piece.
    @inline(never)
    private func putBridged(_ value: String) {
        var value = value
        value.withUTF8 { utf8 in
            unsafe append(bytes: UnsafeRawBufferPointer(utf8), longTag: ValueWireTag.string)
        }
    }

    /// Seconds and nanoseconds, cut to microseconds.
    @inline(__always)
    func put(seconds: Int64, nanoseconds: Int32) {
        reserve(20)
        put(byte: ValueWireTag.timestamp)
        put(byte: 0)
        let start = count
        // Fields that are zero are left out, as proto3 does.
        if seconds != 0 {
            put(byte: ValueWireTag.seconds)
            put(varint: UInt64(bitPattern: seconds))
        }
        let microseconds = nanoseconds / 1000
        if microseconds != 0 {
            put(byte: ValueWireTag.nanoseconds)
            put(varint: UInt64(truncatingIfNeeded: microseconds &* 1000))
        }
        unsafe state.pointee.base.storeBytes(
            of: UInt8(truncatingIfNeeded: count &- start), toByteOffset: start &- 1, as: UInt8.self)
    }

    // MARK: Types of Foundation, as the strategies demand

    func put(date: Date) throws {
        if unsafe !state.pointee.writesTimestamps { return try putStrategic(date) }
        guard let (seconds, nanoseconds) = Timestamp.parts(of: date) else {
            throw invalidValue(date, "The date is outside the years 1 to 9999.")
        }
        if unsafe state.pointee.isTree { return put(object: Timestamp(seconds: seconds, nanoseconds: nanoseconds)) }
        put(seconds: seconds, nanoseconds: nanoseconds)
    }

    private func putStrategic(_ date: Date) throws {
        switch strategies?.values.date ?? .timestamp {
        case .timestamp, .deferredToDate: try putEncodable(date)
        case .secondsSince1970: try put(double: date.timeIntervalSince1970)
        case .millisecondsSince1970: try put(double: date.timeIntervalSince1970 * 1000)
        case .iso8601: put(string: date.formatted(.iso8601))
        case .formatted(let formatter): put(string: formatter.string(from: date))
        case .custom(let encode): try putFrame { try encode(date, $0) }
        }
    }

    func put(data: Data) throws {
        switch strategies?.values.data ?? .blob {
        case .blob:
            unsafe data.withUnsafeBytes { unsafe append(bytes: $0, longTag: ValueWireTag.bytes) }
        case .deferredToData: try putEncodable(data)
        case .base64: put(string: data.base64EncodedString())
        case .custom(let encode): try putFrame { try encode(data, $0) }
        }
    }

    // MARK: Types of Firestore

    func put(timestamp: Timestamp) {
        if unsafe state.pointee.isTree { return put(object: timestamp) }
        put(seconds: timestamp.seconds, nanoseconds: timestamp.nanoseconds)
    }

    func put(geoPoint: GeoPoint) {
        if unsafe state.pointee.isTree { return put(object: geoPoint) }
        reserve(20)
        put(byte: ValueWireTag.geoPoint)
        put(byte: 0)
        let start = count
        // Fields that are plus zero are left out, as proto3 does.
        if geoPoint.latitude.bitPattern != 0 {
            put(byte: ValueWireTag.latitude)
            put(littleEndian: geoPoint.latitude.bitPattern)
        }
        if geoPoint.longitude.bitPattern != 0 {
            put(byte: ValueWireTag.longitude)
            put(littleEndian: geoPoint.longitude.bitPattern)
        }
        fillLength(at: start - 1)
    }

    /// The sentinel map `{"__type__": "__vector__", "value": [...]}`.
    func put(vector: VectorValue) {
        if unsafe state.pointee.isTree { return put(object: vector) }
        reserve(64)
        put(byte: ValueWireTag.map)
        put(byte: 0)
        let start = count
        unsafe Self.vectorHead.withUnsafeBytes { unsafe put(bytes: $0) }
        let entryStart = count - 12
        let arrayStart = count
        for element in vector.array {
            reserve(11)
            put(byte: ValueWireTag.arrayElement)
            put(byte: 9)
            put(anyDouble: element)
        }
        fillLength(at: arrayStart - 1)
        fillLength(at: arrayStart - 3)
        fillLength(at: entryStart)
        fillLength(at: start - 1)
    }

    /// An entry `__type__`, and the head of an entry `value` with an array: three lengths are zero.
    private static let vectorHead: [UInt8] =
        [ValueWireTag.mapEntry, 25, ValueWireTag.entryKey, 8] + Array("__type__".utf8)
        + [ValueWireTag.entryValue, 13, ValueWireTag.string, ValueWireTag.longTagEnd, 10] + Array("__vector__".utf8)
        + [ValueWireTag.mapEntry, 0, ValueWireTag.entryKey, 5] + Array("value".utf8)
        + [ValueWireTag.entryValue, 0, ValueWireTag.array, 0]

    func put(reference: DocumentReference) throws {
        if unsafe state.pointee.isTree { return put(object: reference) }
        if let database = unsafe state.pointee.database, !reference.name.utf8.starts(with: "\(database)/".utf8) {
            throw invalidValue(
                reference,
                "Document reference is for database \(reference.databaseName) but should be for database \(database).")
        }
        var name = reference.name
        name.withUTF8 { utf8 in
            reserve(utf8.count + 6)
            put(byte: ValueWireTag.reference)
            put(varint: UInt64(utf8.count))
            unsafe put(bytes: UnsafeRawBufferPointer(utf8))
        }
    }

    /// Stands for an object that is passed through to a `[String: Any]`.
    func put(object: AnyObject) {
        let root = root
        let index = unsafe root.state.pointee.objects.count
        unsafe root.state.pointee.objects.append(object)
        reserve(12)
        put(byte: ValueWireTag.treeObject)
        put(byte: ValueWireTag.longTagEnd)
        put(varint: UInt64(index))
    }

    /// The session of the whole document.
    var root: EncodingSession {
        var session = self
        while let parent = unsafe session.state.pointee.parent { session = parent.session }
        return session
    }

    // MARK: Any value

    /// Writes a value of whatever type.
    ///
    /// - Returns: false when it was a sentinel or a document id and leaves nothing.
    @inline(__always)
    func put<T: Encodable>(_ value: T, _ record: UnsafeMutablePointer<TypeRecord>) throws -> Bool {
        // Each cast is to the type that the kind stands for.
        switch unsafe record.pointee.kind {
        case .other: return try putEncodable(value)
        case .string: unsafe put(string: reinterpret(value, as: String.self))
        case .date: try unsafe put(date: reinterpret(value, as: Date.self))
        case .direct: return try unsafe record.pointee.direct.unsafelyUnwrapped.encode(value, into: self)
        default: return try unsafe putSpecial(value, record.pointee.kind)
        }
        return true
    }

    /// Writes a value of one of the types that are met less often.
    @inline(never)
    private func putSpecial<T: Encodable>(_ value: T, _ kind: TypeKind) throws -> Bool {
        switch kind {
        case .boolean: unsafe put(boolean: reinterpret(value, as: Bool.self))
        case .integer: unsafe put(integer: Int64(reinterpret(value, as: Int.self)))
        case .int32: unsafe put(integer: Int64(reinterpret(value, as: Int32.self)))
        case .int64: unsafe put(integer: reinterpret(value, as: Int64.self))
        case .double: try unsafe put(double: reinterpret(value, as: Double.self))
        case .float: try unsafe put(double: Double(reinterpret(value, as: Float.self)))
        case .data: try unsafe put(data: reinterpret(value, as: Data.self))
        case .url: unsafe put(string: reinterpret(value, as: URL.self).absoluteString)
        case .decimal: try unsafe put(double: Double(nearestTo: reinterpret(value, as: Decimal.self)))
        case .timestamp: unsafe put(timestamp: reinterpret(value, as: Timestamp.self))
        case .geoPoint: unsafe put(geoPoint: reinterpret(value, as: GeoPoint.self))
        case .vector: unsafe put(vector: reinterpret(value, as: VectorValue.self))
        case .reference: try unsafe put(reference: reinterpret(value, as: DocumentReference.self))
        case .fieldValue: return try unsafe put(fieldValue: reinterpret(value, as: FieldValue.self))
        case .documentID:
            throw FirestoreEncodingError.encodingIsNotSupported(
                "DocumentID values can only be encoded with Firestore.Encoder, as a property of a structure.")
        case .other, .string, .date, .direct: preconditionFailure("handled by the caller")
        }
        return true
    }

    /// Writes a value by its own `encode(to:)`.
    @inline(__always)
    @discardableResult
    func putEncodable<T: Encodable>(_ value: T) throws -> Bool {
        try putFrame { try value.encode(to: $0) }
    }

    /// Writes what `encode` encodes.
    @inline(__always)
    @discardableResult
    func putFrame(entryTag: UInt8 = ValueWireTag.mapEntry, _ encode: (WireEncoder) throws -> Void) throws -> Bool {
        try withFrame(entryTag: entryTag) { frame in
            try unsafe encode(WireEncoder(session: self, frame: frame, serial: state.pointee.lastSerial))
        }
    }

    /// Writes what `body` writes, with a frame for it.
    ///
    /// - Returns: false when it was a sentinel and leaves nothing.
    @inline(__always)
    @discardableResult
    func withFrame(entryTag: UInt8 = ValueWireTag.mapEntry, _ body: (Int) throws -> Void) throws -> Bool {
        let frame = try pushFrame(entryTag: entryTag)
        do {
            try body(frame)
            return try closeFrame(frame)
        } catch {
            abandonFrames(above: frame - 1)
            throw error
        }
    }
}

extension Double {
    /// The double nearest to a decimal; NaN for NaN. `NSDecimalNumber.doubleValue` is the one beside it for a third of
    /// all prices in cents.
    init(nearestTo decimal: Decimal) { self = Double("\(decimal)") ?? .nan }
}
