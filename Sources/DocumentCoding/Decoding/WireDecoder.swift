/// The `Decoder` that types see: it decodes one value, a range of the bytes.
///
/// It has three words, as have its containers for arrays and single values, so an existential stores it without
/// allocating.
struct WireDecoder: Decoder {
    let session: DecodingSession
    private let start: UInt32
    private let end: UInt32
    /// The frame whose current key leads to the value; -1 for the document.
    private let parentFrame: Int32
    private let call: UInt32

    @inline(__always)
    init(session: DecodingSession, value: ValueRange, parent: Int) {
        self.session = session
        start = UInt32(truncatingIfNeeded: value.start)
        end = UInt32(truncatingIfNeeded: value.end)
        parentFrame = Int32(truncatingIfNeeded: parent)
        call = unsafe session.state.pointee.call
    }

    @inline(__always) var value: ValueRange { ValueRange(start: Int(start), end: Int(end)) }
    @inline(__always) var parent: Int { Int(parentFrame) }

    /// Whether the call that this decoder belongs to has not ended.
    @inline(__always)
    var isAlive: Bool { unsafe session.state.pointee.call == call && session.state.pointee.byteCount >= Int(end) }

    var codingPath: [any CodingKey] {
        isAlive && parent < (unsafe session.state.pointee.frameCount) ? session.codingPath(inFrame: parent) : []
    }

    /// The document being decoded, for `@DocumentID`.
    var document: DocumentReference? { isAlive ? session.document : nil }

    var userInfo: [CodingUserInfoKey: Any] {
        guard isAlive, let strategies = session.strategies else { return [:] }
        var userInfo = strategies.values.userInfo
        if let document { userInfo[.documentReference] = document }
        return userInfo
    }

    @inline(__always)
    private func check() throws {
        if !isAlive { throw decodingHandleOutlived() }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try check()
        let parent = try session.living(parent)
        guard let map = try session.map(value, parent: parent) else {
            throw session.notAContainer([String: Any].self, value, parent: parent, "keyed")
        }
        let slot = unsafe session.idleSlot(type)
        let frame = try unsafe session.openMap(map.range, entryTag: map.entryTag, parent: parent, placesIn: slot)
        return unsafe session.lendContainer(type, slot, frame: frame)
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try check()
        let parent = try session.living(parent)
        guard let body = try session.array(value, parent: parent) else {
            throw session.notAContainer([Any].self, value, parent: parent, "unkeyed")
        }
        let frame = try unsafe session.pushFrame(.array, parent: parent, firstEntry: session.state.pointee.entryCount)
        return WireUnkeyedDecodingContainer(session: session, body: body, frame: frame)
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        try check()
        return WireSingleValueDecodingContainer(decoder: self)
    }
}

/// A decoder or container was used after its call of `decode` had returned.
@inline(never)
func decodingHandleOutlived() -> DecodingError {
    .dataCorrupted(
        .init(
            codingPath: [],
            debugDescription: "A Decoder or one of its containers was used after the document had been decoded."))
}

/// Reads the one value of a decoder.
struct WireSingleValueDecodingContainer: SingleValueDecodingContainer {
    let decoder: WireDecoder

    var codingPath: [any CodingKey] { decoder.codingPath }

    @inline(__always)
    private func read<R>(_ read: (DecodingSession, ValueRange, Int) throws -> R) throws -> R {
        if !decoder.isAlive { throw decodingHandleOutlived() }
        // The document itself is not a single value.
        if decoder.parent < 0 {
            throw DecodingError.typeMismatch(
                R.self,
                .init(codingPath: [], debugDescription: "Expected to decode \(R.self) but found a dictionary instead."))
        }
        return try read(decoder.session, decoder.value, decoder.session.living(decoder.parent))
    }

    func decodeNil() -> Bool {
        decoder.isAlive && decoder.parent >= 0 && decoder.session.isNull(decoder.value)
    }
    func decode(_ type: Bool.Type) throws -> Bool { try read { try $0.boolean($1, parent: $2) } }
    func decode(_ type: String.Type) throws -> String { try read { try $0.string($1, parent: $2) } }
    func decode(_ type: Double.Type) throws -> Double { try read { try $0.double($1, parent: $2) } }
    func decode(_ type: Float.Type) throws -> Float { try read { try $0.float($1, parent: $2) } }
    func decode(_ type: Int.Type) throws -> Int { try read { try $0.integer(type, $1, parent: $2) } }
    func decode(_ type: Int8.Type) throws -> Int8 { try read { try $0.integer(type, $1, parent: $2) } }
    func decode(_ type: Int16.Type) throws -> Int16 { try read { try $0.integer(type, $1, parent: $2) } }
    func decode(_ type: Int32.Type) throws -> Int32 { try read { try $0.integer(type, $1, parent: $2) } }
    func decode(_ type: Int64.Type) throws -> Int64 { try read { try $0.integer(type, $1, parent: $2) } }
    func decode(_ type: UInt.Type) throws -> UInt { try read { try $0.integer(type, $1, parent: $2) } }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try read { try $0.integer(type, $1, parent: $2) } }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try read { try $0.integer(type, $1, parent: $2) } }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try read { try $0.integer(type, $1, parent: $2) } }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try read { try $0.integer(type, $1, parent: $2) } }

    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if !decoder.isAlive { throw decodingHandleOutlived() }
        let session = decoder.session
        return try session.decodeValue(type, decoder.value, parent: session.living(decoder.parent))
    }
}

/// Reads the elements of an array one after the other.
struct WireUnkeyedDecodingContainer: UnkeyedDecodingContainer {
    private let session: DecodingSession
    private var at: UInt32
    private let end: UInt32
    private var index: UInt32 = 0
    private let frame: UInt16
    private let call: UInt16

    init(session: DecodingSession, body: ValueRange, frame: Int) {
        self.session = session
        at = UInt32(truncatingIfNeeded: body.start)
        end = UInt32(truncatingIfNeeded: body.end)
        // There are at most `DecodingSession.framesMax` frames.
        self.frame = UInt16(truncatingIfNeeded: frame)
        call = unsafe UInt16(truncatingIfNeeded: session.state.pointee.call)
    }

    private var isAlive: Bool {
        unsafe UInt16(truncatingIfNeeded: session.state.pointee.call) == call
            && session.state.pointee.byteCount >= Int(end) && session.state.pointee.frameCount > Int(frame)
    }

    var codingPath: [any CodingKey] { isAlive ? session.codingPath(ofFrame: Int(frame)) : [] }
    var count: Int? {
        if !isAlive { return 0 }
        return (try? session.elementCount(ValueRange(start: Int(at), end: Int(end)), parent: Int(frame))).map {
            $0 + Int(index)
        }
    }
    var isAtEnd: Bool { !isAlive || !session.hasElement(ValueRange(start: Int(at), end: Int(end))) }
    var currentIndex: Int { Int(index) }

    /// The next element; the position moves only when it was decoded.
    private mutating func element<R>(
        _ type: Any.Type, _ read: (DecodingSession, ValueRange, Int) throws -> R
    ) throws -> R {
        if !isAlive { throw decodingHandleOutlived() }
        unsafe session.state.pointee.frames[Int(frame)].index = Int(index)
        var cursor = session.cursor(ValueRange(start: Int(at), end: Int(end)))
        let next: ValueRange?
        do throws(MalformedBytes) {
            next = try cursor.nextElement()
        } catch {
            throw session.malformed(error, parent: Int(frame))
        }
        guard let next else {
            throw DecodingError.valueNotFound(
                type,
                .init(
                    codingPath: session.codingPath(inFrame: Int(frame)),
                    debugDescription: "Unkeyed container is at end."))
        }
        let result = try read(session, next, Int(frame))
        at = UInt32(truncatingIfNeeded: cursor.at)
        index += 1
        return result
    }

    mutating func decodeNil() throws -> Bool {
        if isAtEnd { return try element(Any?.self) { _, _, _ in true } }
        var copy = self
        let isNull = try copy.element(Any?.self) { session, value, _ in session.isNull(value) }
        if isNull { self = copy }
        return isNull
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try element(type) { try $0.boolean($1, parent: $2) } }
    mutating func decode(_ type: String.Type) throws -> String { try element(type) { try $0.string($1, parent: $2) } }
    mutating func decode(_ type: Double.Type) throws -> Double { try element(type) { try $0.double($1, parent: $2) } }
    mutating func decode(_ type: Float.Type) throws -> Float { try element(type) { try $0.float($1, parent: $2) } }
    mutating func decode(_ type: Int.Type) throws -> Int { try element(type) { try $0.integer(type, $1, parent: $2) } }
    mutating func decode(_ type: Int8.Type) throws -> Int8 {
        try element(type) { try $0.integer(type, $1, parent: $2) }
    }
    mutating func decode(_ type: Int16.Type) throws -> Int16 {
        try element(type) { try $0.integer(type, $1, parent: $2) }
    }
    mutating func decode(_ type: Int32.Type) throws -> Int32 {
        try element(type) { try $0.integer(type, $1, parent: $2) }
    }
    mutating func decode(_ type: Int64.Type) throws -> Int64 {
        try element(type) { try $0.integer(type, $1, parent: $2) }
    }
    mutating func decode(_ type: UInt.Type) throws -> UInt {
        try element(type) { try $0.integer(type, $1, parent: $2) }
    }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 {
        try element(type) { try $0.integer(type, $1, parent: $2) }
    }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 {
        try element(type) { try $0.integer(type, $1, parent: $2) }
    }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 {
        try element(type) { try $0.integer(type, $1, parent: $2) }
    }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 {
        try element(type) { try $0.integer(type, $1, parent: $2) }
    }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        try element(type) { try $0.decodeValue(type, $1, parent: $2) }
    }

    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        try element(type) { try WireDecoder(session: $0, value: $1, parent: $0.pin($2)).container(keyedBy: type) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try element([Any].self) { try WireDecoder(session: $0, value: $1, parent: $0.pin($2)).unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder {
        try element((any Decoder).self) { try WireDecoder(session: $0, value: $1, parent: $0.pin($2)) }
    }
}

extension DecodingSession {
    /// `decode`, as a separate function for the containers that are rare.
    func decodeValue<T: Decodable>(_ type: T.Type, _ value: ValueRange, parent: Int) throws -> T {
        try decode(type, value, parent: parent)
    }

    /// Whether there is an element, or bytes that are none: reading them throws.
    func hasElement(_ body: ValueRange) -> Bool {
        var cursor = cursor(body)
        do throws(MalformedBytes) { return try cursor.nextElement() != nil } catch { return true }
    }
}
