/// The `Encoder` that values see: it encodes the value of its frame.
///
/// It has two words, as have its containers for arrays and single values, so an existential stores it without
/// allocating.
struct WireEncoder: Encoder {
    let session: EncodingSession
    let frame: Int32
    let serial: UInt32

    init(session: EncodingSession, frame: Int, serial: UInt32) {
        self.session = session
        self.frame = Int32(truncatingIfNeeded: frame)
        self.serial = serial
    }

    var codingPath: [any CodingKey] { session.codingPath(toFrame: Int(frame), serial) }
    var userInfo: [CodingUserInfoKey: Any] { session.root.strategies?.values.userInfo ?? [:] }

    @inline(__always)
    private func check() {
        if !session.isOpen(Int(frame), serial) { encodingHandleOutlived() }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        check()
        switch unsafe session.state.pointee.frames[Int(frame)].kind {
        case .undecided: session.beginMap(Int(frame))
        case .map: break
        default: containerMismatch("keyed")
        }
        return session.lendContainer(type, frame: Int(frame))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        check()
        switch unsafe session.state.pointee.frames[Int(frame)].kind {
        case .undecided: session.beginArray(Int(frame))
        case .array: break
        default: containerMismatch("unkeyed")
        }
        return WireUnkeyedEncodingContainer(session: session, frame: frame, serial: serial)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        check()
        return WireSingleValueEncodingContainer(session: session, frame: frame, serial: serial)
    }

    private func containerMismatch(_ wanted: String) -> Never {
        programmingError(
            """
            An \(wanted) container was requested for a value that has already encoded another kind of container or \
            value.
            """)
    }
}

/// Writes the one value of a frame.
struct WireSingleValueEncodingContainer: SingleValueEncodingContainer {
    let session: EncodingSession
    let frame: Int32
    let serial: UInt32

    var codingPath: [any CodingKey] { session.codingPath(toFrame: Int(frame), serial) }

    @inline(__always)
    private func single(_ put: (EncodingSession) throws -> Void) throws {
        try begin()
        try put(session)
        unsafe session.state.pointee.frames[Int(frame)].kind = .single
    }

    @inline(__always)
    private func begin() throws {
        if !session.isOpen(Int(frame), serial) || session.top != Int(frame) { encodingHandleOutlived() }
        if unsafe session.state.pointee.frames[Int(frame)].kind != .undecided {
            programmingError("A single value was encoded where a value or container has been encoded already.")
        }
    }

    mutating func encodeNil() throws { try single { $0.putNull() } }
    mutating func encode(_ value: Bool) throws { try single { $0.put(boolean: value) } }
    mutating func encode(_ value: String) throws { try single { $0.put(string: value) } }
    mutating func encode(_ value: Double) throws { try single { try $0.put(double: value) } }
    mutating func encode(_ value: Float) throws { try single { try $0.put(double: Double(value)) } }
    mutating func encode(_ value: Int) throws { try single { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int8) throws { try single { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int16) throws { try single { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int32) throws { try single { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int64) throws { try single { $0.put(integer: value) } }
    mutating func encode(_ value: UInt) throws { try single { try $0.put(unsigned: UInt64(value)) } }
    mutating func encode(_ value: UInt8) throws { try single { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: UInt16) throws { try single { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: UInt32) throws { try single { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: UInt64) throws { try single { try $0.put(unsigned: value) } }

    mutating func encode<T: Encodable>(_ value: T) throws {
        try begin()
        let record = unsafe session.typeRecord(T.self)
        if unsafe record.pointee.kind == .other {
            // The value takes this frame's place: it may ask for whatever container it likes.
            try value.encode(to: WireEncoder(session: session, frame: Int(frame), serial: serial))
            return
        }
        let isPresent = try unsafe session.put(value, record)
        unsafe session.state.pointee.frames[Int(frame)].kind = isPresent ? .single : .omitted
    }
}

/// Appends to the array of a frame.
struct WireUnkeyedEncodingContainer: UnkeyedEncodingContainer {
    let session: EncodingSession
    let frame: Int32
    let serial: UInt32

    var codingPath: [any CodingKey] { session.codingPath(toFrame: Int(frame), serial) }

    var count: Int {
        session.isOpen(Int(frame), serial) ? unsafe session.state.pointee.frames[Int(frame)].count : 0
    }

    @inline(__always)
    private func element(_ put: (EncodingSession) throws -> Void) throws {
        if !session.isOpen(Int(frame), serial) || session.top != Int(frame) { encodingHandleOutlived() }
        let start = session.openElement()
        do {
            try put(session)
            session.closeElement(start)
        } catch {
            session.dropPart(from: start)
            throw error
        }
    }

    mutating func encodeNil() throws { try element { $0.putNull() } }
    mutating func encode(_ value: Bool) throws { try element { $0.put(boolean: value) } }
    mutating func encode(_ value: String) throws { try element { $0.put(string: value) } }
    mutating func encode(_ value: Double) throws { try element { try $0.put(double: value) } }
    mutating func encode(_ value: Float) throws { try element { try $0.put(double: Double(value)) } }
    mutating func encode(_ value: Int) throws { try element { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int8) throws { try element { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int16) throws { try element { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int32) throws { try element { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int64) throws { try element { $0.put(integer: value) } }
    mutating func encode(_ value: UInt) throws { try element { try $0.put(unsigned: UInt64(value)) } }
    mutating func encode(_ value: UInt8) throws { try element { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: UInt16) throws { try element { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: UInt32) throws { try element { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: UInt64) throws { try element { try $0.put(unsigned: value) } }

    mutating func encode<T: Encodable>(_ value: T) throws {
        try element { session in
            if try unsafe !session.put(value, session.typeRecord(T.self)) {
                throw session.invalidValue(value, "A sentinel cannot be an element of an array.")
            }
        }
    }

    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        superEncoder().container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        superEncoder().unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder {
        if !session.isOpen(Int(frame), serial) { encodingHandleOutlived() }
        return session.elementChild(of: Int(frame))
    }
}
