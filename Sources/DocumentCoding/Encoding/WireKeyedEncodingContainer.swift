// The container that the fields of structures are written to.

/// Writes entries to the map of the frame that its slot is lent for.
@safe struct WireKeyedEncodingContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    // Owner: the thread's tables. Lifetime: never freed.
    private let slot: UnsafeMutablePointer<KeyedEncodingSlot>

    init(slot: UnsafeMutablePointer<KeyedEncodingSlot>) {
        unsafe self.slot = unsafe slot
    }

    var codingPath: [any CodingKey] {
        let slot = unsafe slot.pointee
        return slot.frame < 0 ? [] : slot.session.codingPath(toFrame: slot.frame)
    }

    /// Opens the entry of a key, by its ready-made head if there is one.
    @inline(__always)
    private func open(_ key: Key) throws -> OpenEntry {
        let session = unsafe slot.pointee.session
        if unsafe session.top != slot.pointee.frame { encodingHandleOutlived() }
        let table = unsafe slot.pointee.table
        if unsafe table.pointee.isEnumeration && session.state.pointee.usesDefaultKeys {
            let index = KeyTable.index(of: key)
            if unsafe index < table.pointee.headCapacity {
                let head = unsafe table.pointee.heads[index]
                if unsafe head.bytes != nil { return unsafe session.openEntry(head, table: table, index: index) }
            }
        }
        return try openByName(key)
    }

    @inline(never)
    private func openByName(_ key: Key) throws -> OpenEntry {
        let session = unsafe slot.pointee.session
        let table = unsafe slot.pointee.table
        if unsafe session.state.pointee.usesDefaultKeys {
            let name = key.stringValue
            let entry = try session.openEntry(named: name)
            if unsafe table.pointee.isEnumeration && !session.state.pointee.isTree {
                unsafe table.pointee.addHead(at: KeyTable.index(of: key), name: name, key: key)
            }
            return entry
        }
        let entry = try session.openEntry(named: session.convertedName(of: key))
        session.noteSwiftKey(key)
        return entry
    }

    @inline(__always)
    private func scalar(_ key: Key, _ put: (EncodingSession) -> Void) throws {
        let entry = try open(key)
        let session = unsafe slot.pointee.session
        put(session)
        session.closeEntry(entry)
    }

    @inline(__always)
    private func throwingScalar(_ key: Key, _ put: (EncodingSession) throws -> Void) throws {
        let entry = try open(key)
        let session = unsafe slot.pointee.session
        do {
            try put(session)
            session.closeEntry(entry)
        } catch {
            session.dropPart(from: entry.start)
            throw error
        }
    }

    mutating func encodeNil(forKey key: Key) throws { try scalar(key) { $0.putNull() } }
    mutating func encode(_ value: Bool, forKey key: Key) throws { try scalar(key) { $0.put(boolean: value) } }
    mutating func encode(_ value: String, forKey key: Key) throws { try scalar(key) { $0.put(string: value) } }
    mutating func encode(_ value: Double, forKey key: Key) throws {
        try throwingScalar(key) { try $0.put(double: value) }
    }
    mutating func encode(_ value: Float, forKey key: Key) throws {
        try throwingScalar(key) { try $0.put(double: Double(value)) }
    }
    mutating func encode(_ value: Int, forKey key: Key) throws { try scalar(key) { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int8, forKey key: Key) throws { try scalar(key) { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int16, forKey key: Key) throws { try scalar(key) { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int32, forKey key: Key) throws { try scalar(key) { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: Int64, forKey key: Key) throws { try scalar(key) { $0.put(integer: value) } }
    mutating func encode(_ value: UInt, forKey key: Key) throws {
        try throwingScalar(key) { try $0.put(unsigned: UInt64(value)) }
    }
    mutating func encode(_ value: UInt8, forKey key: Key) throws { try scalar(key) { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: UInt16, forKey key: Key) throws { try scalar(key) { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: UInt32, forKey key: Key) throws { try scalar(key) { $0.put(integer: Int64(value)) } }
    mutating func encode(_ value: UInt64, forKey key: Key) throws {
        try throwingScalar(key) { try $0.put(unsigned: value) }
    }

    mutating func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
        let session = unsafe slot.pointee.session
        let record = unsafe session.typeRecord(T.self)
        if unsafe record.pointee.kind == .documentID { return }
        let entry = try open(key)
        do {
            if try unsafe session.put(value, record) {
                session.closeEntry(entry)
            } else {
                session.closeSentinel(entry)
            }
        } catch {
            session.forgetSentinels()
            session.dropPart(from: entry.start)
            throw error
        }
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        child(key).container(keyedBy: type)
    }

    mutating func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        child(key).unkeyedContainer()
    }

    mutating func superEncoder() -> any Encoder {
        child(PathKey.superKey)
    }

    mutating func superEncoder(forKey key: Key) -> any Encoder {
        child(key)
    }

    private func child(_ key: some CodingKey) -> WireEncoder {
        let frame = unsafe slot.pointee.frame
        if frame < 0 { encodingHandleOutlived() }
        return unsafe slot.pointee.session.entryChild(of: frame, key: key)
    }
}
