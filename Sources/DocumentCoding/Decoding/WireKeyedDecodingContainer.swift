// The container that the fields of structures are read from.

import Glibc

/// Reads entries of the map of the frame that its slot is lent for.
@safe struct WireKeyedDecodingContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    // Owner: the thread's tables. Lifetime: never freed.
    private let slot: UnsafeMutablePointer<KeyedDecodingSlot>

    init(slot: UnsafeMutablePointer<KeyedDecodingSlot>) {
        unsafe self.slot = unsafe slot
    }

    private var session: DecodingSession {
        @inline(__always) get { unsafe slot.pointee.session }
    }

    var codingPath: [any CodingKey] { unsafe session.codingPath(ofFrame: slot.pointee.frame) }

    var allKeys: [Key] {
        let frame = unsafe slot.pointee.frame
        if frame < 0 { return [] }
        let session = session
        if unsafe !session.state.pointee.usesDefaultKeys {
            return unsafe (session.state.pointee.convertedKeys[frame] ?? [:]).keys.compactMap { Key(stringValue: $0) }
        }
        let range = unsafe session.state.pointee.frames[frame].firstEntry..<session.state.pointee.frames[frame].entryEnd
        return range.compactMap { Key(stringValue: session.name(ofEntry: $0)) }
    }

    // MARK: Finding an entry

    /// The place of a key's entry on the stack of entries, or -1.
    @inline(__always)
    private func find(_ key: Key) throws -> Int {
        let slot = unsafe slot
        // Only the keys of an enumeration have places.
        if unsafe slot.pointee.placeCount == 0 { return try findByName(key) }
        let index = KeyTable.index(of: key)
        let frame = unsafe slot.pointee.session.state.pointee.frames + slot.pointee.frame
        unsafe frame.pointee.keyTable = unsafe slot.pointee.table
        unsafe frame.pointee.index = index
        if unsafe index < slot.pointee.placeCount {
            let place = Int(unsafe slot.pointee.places[index])
            if place >= 0 { return place }
        }
        return unsafe session.findUnplaced(index, key, slot)
    }

    @inline(never)
    private func findByName(_ key: some CodingKey) throws -> Int {
        let (session, frame) = unsafe (slot.pointee.session, slot.pointee.frame)
        if frame < 0 { throw decodingHandleOutlived() }
        if unsafe !session.state.pointee.usesDefaultKeys {
            session.note(key, inFrame: frame)
            return unsafe session.state.pointee.convertedKeys[frame]?[key.stringValue] ?? -1
        }
        let entry = session.find(key.stringValue, frame: frame)
        if entry < 0 { session.note(key, inFrame: frame) }
        return entry
    }

    @inline(__always)
    private func value(_ key: Key) throws -> ValueRange {
        let entry = try find(key)
        if entry < 0 { throw notFound(key) }
        return session.value(ofEntry: entry)
    }

    @inline(never)
    private func notFound(_ key: Key) -> DecodingError {
        .keyNotFound(
            key,
            .init(
                codingPath: codingPath,
                debugDescription: "No value associated with key \(key) (\"\(key.stringValue)\")."))
    }

    @inline(__always)
    private func read<R>(
        _ type: Any.Type, _ key: Key, _ read: (DecodingSession, ValueRange, Int) throws -> R
    ) throws -> R {
        let value = try value(key)
        return try unsafe read(session, value, slot.pointee.frame)
    }

    @inline(__always)
    private func readIfPresent<R>(_ key: Key, _ read: (DecodingSession, ValueRange, Int) throws -> R) throws -> R? {
        let entry = try find(key)
        if entry < 0 { return nil }
        let value = session.value(ofEntry: entry)
        if session.isNull(value) { return nil }
        return try unsafe read(session, value, slot.pointee.frame)
    }

    // MARK: Reading

    func contains(_ key: Key) -> Bool { ((try? find(key)) ?? -1) >= 0 }
    func decodeNil(forKey key: Key) throws -> Bool { session.isNull(try value(key)) }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try read(type, key) { try $0.boolean($1, parent: $2) }
    }
    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try read(type, key) { try $0.string($1, parent: $2) }
    }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        try read(type, key) { try $0.double($1, parent: $2) }
    }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float {
        try read(type, key) { try $0.float($1, parent: $2) }
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        try read(type, key) { try $0.integer(type, $1, parent: $2) }
    }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 {
        try read(type, key) { try $0.integer(type, $1, parent: $2) }
    }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 {
        try read(type, key) { try $0.integer(type, $1, parent: $2) }
    }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 {
        try read(type, key) { try $0.integer(type, $1, parent: $2) }
    }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        try read(type, key) { try $0.integer(type, $1, parent: $2) }
    }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt {
        try read(type, key) { try $0.integer(type, $1, parent: $2) }
    }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 {
        try read(type, key) { try $0.integer(type, $1, parent: $2) }
    }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
        try read(type, key) { try $0.integer(type, $1, parent: $2) }
    }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
        try read(type, key) { try $0.integer(type, $1, parent: $2) }
    }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
        try read(type, key) { try $0.integer(type, $1, parent: $2) }
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
        let record = unsafe session.typeRecord(type)
        if unsafe record.pointee.kind == .documentID {
            return try session.decodable(type, ValueRange(start: 0, end: 0), parent: unsafe slot.pointee.frame)
        }
        let value = try value(key)
        return try unsafe session.decode(type, value, record, parent: slot.pointee.frame)
    }

    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try readIfPresent(key) { try $0.boolean($1, parent: $2) }
    }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try readIfPresent(key) { try $0.string($1, parent: $2) }
    }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try readIfPresent(key) { try $0.double($1, parent: $2) }
    }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? {
        try readIfPresent(key) { try $0.float($1, parent: $2) }
    }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try readIfPresent(key) { try $0.integer(type, $1, parent: $2) }
    }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? {
        try readIfPresent(key) { try $0.integer(type, $1, parent: $2) }
    }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? {
        try readIfPresent(key) { try $0.integer(type, $1, parent: $2) }
    }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? {
        try readIfPresent(key) { try $0.integer(type, $1, parent: $2) }
    }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try readIfPresent(key) { try $0.integer(type, $1, parent: $2) }
    }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? {
        try readIfPresent(key) { try $0.integer(type, $1, parent: $2) }
    }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? {
        try readIfPresent(key) { try $0.integer(type, $1, parent: $2) }
    }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? {
        try readIfPresent(key) { try $0.integer(type, $1, parent: $2) }
    }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? {
        try readIfPresent(key) { try $0.integer(type, $1, parent: $2) }
    }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? {
        try readIfPresent(key) { try $0.integer(type, $1, parent: $2) }
    }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        try readIfPresent(key) { try $0.decode(type, $1, parent: $2) }
    }

    // MARK: Nested containers

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try decoder(of: try value(key)).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try decoder(of: try value(key)).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { try superDecoder(ofEntry: findByName(PathKey.superKey)) }

    func superDecoder(forKey key: Key) throws -> any Decoder { try superDecoder(ofEntry: find(key)) }

    /// A missing value is seen as null.
    private func superDecoder(ofEntry entry: Int) throws -> WireDecoder {
        try decoder(of: entry < 0 ? ValueRange(start: 0, end: 0) : session.value(ofEntry: entry))
    }

    /// The decoder of the value of the key that was asked for last. Its path stays when this container reads on.
    private func decoder(of value: ValueRange) throws -> WireDecoder {
        WireDecoder(session: session, value: value, parent: try session.pin(unsafe slot.pointee.frame))
    }
}
