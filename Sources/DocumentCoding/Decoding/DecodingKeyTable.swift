// What the decoder knows of a key type: heads of entries, which key follows which, and containers to lend.

import Glibc

/// A key of an enumeration type.
///
/// Its head is what an entry begins with if encoders wrote it: the tag, the length in one byte, the tag and the length
/// of the name, the name, the tag of the value. Entries are compared with heads, see `KeyHead` of the encoder.
@safe struct DecodingKey {
    /// The key that the last map had after this one; -1 if there was none.
    var next = -1
    /// Owner: the table. Bounds: `headCount` bytes and 16 more. Nil: not met yet.
    private var head: UnsafeMutableRawPointer?
    private(set) var headCount = 0
    /// The first sixteen bytes of the head, with zeros in place of the length and after the end of the head.
    private var words: (UInt64, UInt64) = (0, 0)
    /// Which of these bytes are compared.
    private var masks: (UInt64, UInt64) = (0, 0)

    /// Bytes from the start of an entry that must be readable: sixteen of a head, and the lengths of entry and value.
    static var headRoom: Int { 20 }

    init() {}

    init(name string: String) {
        var bytes: [UInt8] = [0, 0, ValueWireTag.entryKey, UInt8(truncatingIfNeeded: string.utf8.count)]
        bytes += string.utf8
        bytes.append(ValueWireTag.entryValue)
        headCount = bytes.count
        bytes += [UInt8](repeating: 0, count: 16)
        let head = UnsafeMutableRawPointer.allocate(byteCount: bytes.count, alignment: 16)
        unsafe head.copyMemory(from: bytes, byteCount: bytes.count)
        unsafe self.head = unsafe head
        words = unsafe head.load(as: (UInt64, UInt64).self)
        let mask = (0..<16).map { UInt8($0 != 1 && $0 < headCount ? 0xff : 0) }
        masks = unsafe mask.withUnsafeBytes { unsafe $0.loadUnaligned(as: (UInt64, UInt64).self) }
        // Names of 128 bytes and more have a longer length: no entry has this head.
        if string.utf8.count >= 0x80 { (words, masks) = ((.max, .max), (.max, .max)) }
    }

    /// The name, in the head. Nil: not met yet.
    @inline(__always)
    var name: UnsafeRawBufferPointer? {
        unsafe head.map { unsafe UnsafeRawBufferPointer(start: $0 + 4, count: headCount &- 5) }
    }

    /// Whether an entry starts with the first sixteen bytes of the head, the length apart.
    ///
    /// - Parameter mask: which bytes of the first eight count.
    @inline(__always)
    func isHead(_ start: UnsafeRawPointer, _ tag: UInt64, mask: UInt64) -> Bool {
        let first = unsafe start.loadUnaligned(as: UInt64.self)
        let second = unsafe start.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
        return (first ^ (words.0 | tag)) & masks.0 & mask | (second ^ words.1) & masks.1 == 0
    }

    /// Whether an entry has the bytes of the head after the first sixteen.
    @inline(__always)
    func isHeadEnd(_ start: UnsafeRawPointer) -> Bool {
        unsafe head.map { unsafe memcmp(start + 16, $0 + 16, headCount - 16) == 0 } ?? false
    }
}

/// One per key type and thread; never freed.
@safe struct DecodingKeyTable {
    /// See `KeyTable.isEnumeration`.
    let isEnumeration: Bool
    /// By the key's byte.
    var names: UnsafeMutablePointer<DecodingKey>
    var nameCapacity: Int
    /// How many names it has.
    var nameCount = 0
    /// The key that the last map had first; -1 if there was none.
    var first = -1
    /// The keys themselves, for coding paths.
    var keys: [(any CodingKey)?] = []
    /// Containers that nobody uses.
    var idle: UnsafeMutablePointer<KeyedDecodingSlot>?

    init<Key: CodingKey>(for type: Key.Type) {
        isEnumeration = MemoryLayout<Key>.size <= 1 && _isPOD(Key.self)
        nameCapacity = isEnumeration ? 8 : 0
        unsafe names = .allocate(capacity: max(nameCapacity, 1))
        unsafe names.initialize(repeating: DecodingKey(), count: nameCapacity)
    }

    mutating func addName(at index: Int, of key: any CodingKey) {
        if index >= nameCapacity {
            let larger = max(nameCapacity * 2, index + 1)
            unsafe names.grow(from: nameCapacity, to: larger)
            unsafe (names + nameCapacity).initialize(repeating: DecodingKey(), count: larger - nameCapacity)
            nameCapacity = larger
        }
        while keys.count <= index { keys.append(nil) }
        keys[index] = key
        nameCount += 1
        unsafe names[index] = DecodingKey(name: key.stringValue)
    }
}

/// What a keyed container points to: the frame it reads now.
@safe struct KeyedDecodingSlot {
    var session: DecodingSession
    let table: UnsafeMutablePointer<DecodingKeyTable>
    /// The frame it is lent for, or -1.
    var frame = -1
    /// How many keys of the table have a place. It is 0 while the slot is not lent, if the keys are not an enumeration,
    /// and if the key strategy is not the default.
    var placeCount = 0
    /// How many names the table had when the places were given.
    var nameCount = 0
    /// Where the frame's map has each key of the table, counted on the stack of entries; -1: nowhere, or the table has
    /// not met the key yet. Owner: the slot. Bounds: `placeCapacity`.
    var places: UnsafeMutablePointer<Int32>
    var placeCapacity: Int
    /// Where the container lies as the standard library has it: one reference to the object it was boxed in.
    var box: UnsafeMutablePointer<AnyObject?>?
    /// Hands out copies of that container: a `ContainerLender<KeyedDecodingContainer<Key>>`.
    var lender: Unmanaged<AnyObject>?
    /// The next of the idle or kept slots.
    var next: UnsafeMutablePointer<KeyedDecodingSlot>?

    init(session: DecodingSession, table: UnsafeMutablePointer<DecodingKeyTable>) {
        self.session = session
        unsafe self.table = unsafe table
        placeCapacity = unsafe table.pointee.nameCapacity
        unsafe places = .allocate(capacity: max(placeCapacity, 1))
    }

    /// Gives every key of the table a place: nowhere.
    @inline(__always)
    mutating func clearPlaces() {
        placeCount = unsafe table.pointee.nameCapacity
        nameCount = unsafe table.pointee.nameCount
        if placeCount > placeCapacity { growPlaces() }
        unsafe places.update(repeating: -1, count: placeCount)
    }

    /// Makes the container unusable: its frame has ended.
    @inline(__always)
    mutating func detach() {
        frame = -1
        placeCount = 0
    }

    @inline(never)
    private mutating func growPlaces() {
        unsafe places.deallocate()
        placeCapacity = placeCount
        unsafe places = .allocate(capacity: placeCapacity)
    }
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

    /// A slot for keys of a type, not yet lent.
    @inline(__always)
    func idleSlot<Key: CodingKey>(_ type: Key.Type) -> UnsafeMutablePointer<KeyedDecodingSlot> {
        let table = unsafe keyTable(type)
        return unsafe table.pointee.idle ?? addSlot(type, table)
    }

    /// Lends the container of the first idle slot of a table, for the given frame.
    @inline(__always)
    func lendContainer<Key: CodingKey>(
        _ type: Key.Type, _ slot: UnsafeMutablePointer<KeyedDecodingSlot>, frame: Int
    ) -> KeyedDecodingContainer<Key> {
        unsafe slot.pointee.table.pointee.idle = unsafe slot.pointee.next
        unsafe slot.pointee.session = self
        unsafe slot.pointee.frame = frame
        unsafe state.pointee.frames[frame].slot = unsafe slot
        // The lender was made for this key type by `addSlot`.
        return unsafe slot.pointee.lender.unsafelyUnwrapped._withUnsafeGuaranteedRef { lender in
            unsafe reinterpret(lender, as: ContainerLender<KeyedDecodingContainer<Key>>.self).lend()
        }
    }

    /// Makes a container and its slot, and adds it to the idle ones.
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
        unsafe slot.pointee.next = unsafe table.pointee.idle
        unsafe table.pointee.idle = unsafe slot
        return unsafe slot
    }

    /// Takes back the container of a frame that has ended, if nobody holds it any more.
    ///
    /// - Returns: whether it has come back.
    @inline(__always)
    func reclaim(_ slot: UnsafeMutablePointer<KeyedDecodingSlot>) -> Bool {
        if unsafe !isKnownUniquelyReferenced(&slot.pointee.box.unsafelyUnwrapped.pointee) { return false }
        unsafe slot.pointee.detach()
        let table = unsafe slot.pointee.table
        unsafe slot.pointee.next = unsafe table.pointee.idle
        unsafe table.pointee.idle = unsafe slot
        return true
    }

    /// Notes a container that is still held after the document was decoded. It may be lent again when that has ended.
    @inline(never)
    func keep(_ slot: UnsafeMutablePointer<KeyedDecodingSlot>) {
        unsafe slot.pointee.detach()
        unsafe slot.pointee.next = unsafe state.pointee.tables.pointee.kept
        unsafe state.pointee.tables.pointee.kept = unsafe slot
    }

    /// Takes back kept containers that nobody holds any more.
    @inline(never)
    func reclaimKept() {
        var next = unsafe state.pointee.tables.pointee.kept
        unsafe state.pointee.tables.pointee.kept = nil
        while let slot = unsafe next {
            unsafe next = unsafe slot.pointee.next
            if unsafe !reclaim(slot) { unsafe keep(slot) }
        }
    }
}
