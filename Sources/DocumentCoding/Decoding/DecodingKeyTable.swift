// What the decoder knows of a key type: names as bytes, where they were found last, and containers to lend.

import Glibc

/// A key of an enumeration type.
@safe struct DecodingKey {
    /// Owner: the table. Nil: not met yet.
    var name: UnsafeMutableRawPointer?
    var count: Int
    /// Where the last map had it, counted from the map's first entry.
    var position: Int
}

/// One per key type and thread; never freed.
@safe struct DecodingKeyTable {
    /// See `KeyTable.isEnumeration`.
    let isEnumeration: Bool
    var names: UnsafeMutablePointer<DecodingKey>
    var nameCapacity: Int
    /// The keys themselves, for coding paths.
    var keys: [(any CodingKey)?] = []
    /// Containers that nobody uses.
    var idle: UnsafeMutablePointer<KeyedDecodingSlot>?

    init<Key: CodingKey>(for type: Key.Type) {
        isEnumeration = MemoryLayout<Key>.size <= 1 && _isPOD(Key.self)
        nameCapacity = isEnumeration ? 8 : 0
        unsafe names = .allocate(capacity: max(nameCapacity, 1))
        unsafe names.initialize(repeating: DecodingKey(name: nil, count: 0, position: 0), count: nameCapacity)
    }

    mutating func addName(at index: Int, of key: any CodingKey) {
        if index >= nameCapacity {
            let larger = max(nameCapacity * 2, index + 1)
            let moved = UnsafeMutablePointer<DecodingKey>.allocate(capacity: larger)
            unsafe moved.moveInitialize(from: names, count: nameCapacity)
            unsafe (moved + nameCapacity).initialize(
                repeating: DecodingKey(name: nil, count: 0, position: 0), count: larger - nameCapacity)
            unsafe names.deallocate()
            unsafe names = unsafe moved
            nameCapacity = larger
        }
        while keys.count <= index { keys.append(nil) }
        keys[index] = key
        var string = key.stringValue
        unsafe names[index] = string.withUTF8 { utf8 in
            let bytes = UnsafeMutableRawPointer.allocate(byteCount: utf8.count + 1, alignment: 8)
            if let start = utf8.baseAddress { unsafe bytes.copyMemory(from: start, byteCount: utf8.count) }
            return unsafe DecodingKey(name: bytes, count: utf8.count, position: index)
        }
    }
}

/// What a keyed container points to: the frame it reads now.
@safe struct KeyedDecodingSlot {
    var session: DecodingSession
    let table: UnsafeMutablePointer<DecodingKeyTable>
    /// The frame it is lent for, or -1.
    var frame = -1
    /// Where the container lies as the standard library has it: one reference to the object it was boxed in.
    var box: UnsafeMutablePointer<AnyObject?>?
    /// Hands out copies of that container: a `ContainerLender<KeyedDecodingContainer<Key>>`.
    var lender: Unmanaged<AnyObject>?
    /// The next of the frame's slots, or of the idle ones.
    var next: UnsafeMutablePointer<KeyedDecodingSlot>?
}

extension DecodingSession {
    @inline(__always)
    func keyTable<Key: CodingKey>(_ type: Key.Type) -> UnsafeMutablePointer<DecodingKeyTable> {
        let address = unsafe metadataAddress(of: type)
        if let known = unsafe state.pointee.tables.pointee.keyTables.find(address) {
            return unsafe known.assumingMemoryBound(to: DecodingKeyTable.self)
        }
        return unsafe addKeyTable(type)
    }

    @inline(never)
    private func addKeyTable<Key: CodingKey>(_ type: Key.Type) -> UnsafeMutablePointer<DecodingKeyTable> {
        let table = UnsafeMutablePointer<DecodingKeyTable>.allocate(capacity: 1)
        unsafe table.initialize(to: DecodingKeyTable(for: type))
        unsafe state.pointee.tables.pointee.keyTables.insert(metadataAddress(of: type), table)
        return unsafe table
    }

    /// Lends a container that reads the map of the given frame.
    @inline(__always)
    func lendContainer<Key: CodingKey>(_ type: Key.Type, frame: Int) -> KeyedDecodingContainer<Key> {
        let table = unsafe keyTable(type)
        let slot = unsafe table.pointee.idle ?? addSlot(type, table)
        unsafe table.pointee.idle = unsafe slot.pointee.next
        unsafe slot.pointee.session = self
        unsafe slot.pointee.frame = frame
        unsafe slot.pointee.next = unsafe state.pointee.frames[frame].slots
        unsafe state.pointee.frames[frame].slots = unsafe slot
        // The lender was made for this key type by `addSlot`.
        return unsafe slot.pointee.lender.unsafelyUnwrapped._withUnsafeGuaranteedRef { lender in
            unsafe reinterpret(lender, as: ContainerLender<KeyedDecodingContainer<Key>>.self).lend()
        }
    }

    /// Makes a container and its slot.
    @inline(never)
    private func addSlot<Key: CodingKey>(
        _ type: Key.Type, _ table: UnsafeMutablePointer<DecodingKeyTable>
    ) -> UnsafeMutablePointer<KeyedDecodingSlot> {
        precondition(
            MemoryLayout<KeyedDecodingContainer<Key>>.size == MemoryLayout<AnyObject?>.size,
            "KeyedDecodingContainer is no longer a single reference")
        let slot = UnsafeMutablePointer<KeyedDecodingSlot>.allocate(capacity: 1)
        unsafe slot.initialize(to: KeyedDecodingSlot(session: self, table: table))
        let container = UnsafeMutablePointer<KeyedDecodingContainer<Key>>.allocate(capacity: 1)
        unsafe container.initialize(to: KeyedDecodingContainer(WireKeyedDecodingContainer<Key>(slot: slot)))
        unsafe slot.pointee.box = unsafe UnsafeMutableRawPointer(container).assumingMemoryBound(to: AnyObject?.self)
        unsafe slot.pointee.lender = unsafe Unmanaged.passRetained(ContainerLender(container))
        return unsafe slot
    }

    /// Takes back containers that code kept and whose frames have ended.
    ///
    /// - Returns: whether all of them have come back.
    @inline(__always)
    func takeBackContainers(_ first: UnsafeMutablePointer<KeyedDecodingSlot>?) -> Bool {
        var allAreBack = true
        var next = unsafe first
        while let slot = unsafe next {
            unsafe next = unsafe slot.pointee.next
            unsafe slot.pointee.frame = -1
            if unsafe isKnownUniquelyReferenced(&slot.pointee.box.unsafelyUnwrapped.pointee) {
                let table = unsafe slot.pointee.table
                unsafe slot.pointee.next = unsafe table.pointee.idle
                unsafe table.pointee.idle = unsafe slot
            } else {
                // It may be lent again when that has ended.
                unsafe slot.pointee.next = unsafe state.pointee.tables.pointee.kept
                unsafe state.pointee.tables.pointee.kept = unsafe slot
                allAreBack = false
            }
        }
        return allAreBack
    }
}
