// What the encoder knows of a key type: ready-made heads of entries, and boxes of containers to lend.

/// The head of an entry, ready to be copied: tag, length to be filled in, key, tag of the value, length to be filled
/// in.
@safe struct KeyHead {
    /// Owner: the table. Bounds: `length` bytes, rounded up to a multiple of 16, and 16 more. Nil: not made yet.
    var bytes: UnsafeMutableRawPointer?
    var length = 0
    /// The first eight bytes of the name, big-endian.
    var prefix: UInt64 = 0
    /// Whether the last value had 128 bytes or more: then two bytes are reserved for each length.
    var isLong = false
}

/// One per key type and thread; never freed.
@safe struct KeyTable {
    /// Whether keys are of one byte without references, so that the byte stands for the key and its string: the
    /// enumerations that the compiler makes for synthesized conformances are.
    let isEnumeration: Bool
    /// Heads by the key's byte.
    var heads: UnsafeMutablePointer<KeyHead>
    var headCapacity: Int
    /// The keys themselves, for coding paths.
    var keys: [(any CodingKey)?] = []
    /// Containers that nobody uses.
    var idle: UnsafeMutablePointer<KeyedEncodingSlot>?

    init<Key: CodingKey>(for type: Key.Type) {
        isEnumeration = MemoryLayout<Key>.size <= 1 && _isPOD(Key.self)
        headCapacity = isEnumeration ? 8 : 0
        unsafe heads = .allocate(capacity: max(headCapacity, 1))
        unsafe heads.initialize(repeating: KeyHead(), count: headCapacity)
    }

    /// The byte that stands for a key of an enumeration type.
    @inline(__always)
    static func index<Key: CodingKey>(of key: Key) -> Int {
        // The caller knows from `isEnumeration` that the key is one plain byte, or none.
        MemoryLayout<Key>.size == 0 ? 0 : Int(unsafe unsafeBitCast(key, to: UInt8.self))
    }

    /// Makes the head of an entry for a key that is met for the first time.
    mutating func addHead(at index: Int, name: String, key: any CodingKey) {
        if index >= headCapacity {
            let larger = max(headCapacity * 2, index + 1)
            unsafe heads.grow(from: headCapacity, to: larger)
            unsafe (heads + headCapacity).initialize(repeating: KeyHead(), count: larger - headCapacity)
            headCapacity = larger
        }
        while keys.count <= index { keys.append(nil) }
        keys[index] = key
        var head: [UInt8] = [ValueWireTag.mapEntry, 0, ValueWireTag.entryKey]
        var length = name.utf8.count
        while length >= 0x80 {
            head.append(UInt8(truncatingIfNeeded: length) | 0x80)
            length >>= 7
        }
        head.append(UInt8(length))
        head.append(contentsOf: name.utf8)
        head += [ValueWireTag.entryValue, 0]
        let room = (head.count + 31) & ~15
        let bytes = UnsafeMutableRawPointer.allocate(byteCount: room, alignment: 16)
        unsafe bytes.initializeMemory(as: UInt8.self, repeating: 0, count: room)
        unsafe head.withUnsafeBytes { unsafe bytes.copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
        unsafe heads[index] = KeyHead(bytes: bytes, length: head.count, prefix: keyPrefix(of: name))
    }
}

/// The first eight bytes of a name as a number that compares as they do; zeros fill up.
func keyPrefix(of name: String) -> UInt64 {
    var prefix: UInt64 = 0
    var shift: UInt64 = 56
    for byte in name.utf8.prefix(8) {
        prefix |= UInt64(byte) << shift
        shift &-= 8
    }
    return prefix
}

/// What a keyed container points to: whose frame it writes to now.
@safe struct KeyedEncodingSlot {
    var session: EncodingSession
    let table: UnsafeMutablePointer<KeyTable>
    /// The frame it is lent for, or ``noFrame``.
    var frame = Self.noFrame
    /// Where the container lies as the standard library has it: one reference to the object it was boxed in. Owner: the
    /// slot.
    var box: UnsafeMutablePointer<AnyObject?>?
    /// Hands out copies of that container: a `ContainerLender<KeyedEncodingContainer<Key>>`.
    var lender: Unmanaged<AnyObject>?
    /// The next of the frame's slots, or of the idle ones.
    var next: UnsafeMutablePointer<KeyedEncodingSlot>?

    /// Negative, and not -1, which is the innermost frame of an idle session: a container that is kept writes to no
    /// frame of its session.
    static let noFrame = -2
}

/// Copies a container out of its slot.
///
/// Generic over the container's type and not over its key: code that knows only the key would have to ask the runtime
/// for the metadata of the container each time, which costs a tenth of all encoding. This object carries it.
@safe final class ContainerLender<Container> {
    // Owner: the slot, which is never freed.
    private let container: UnsafeMutablePointer<Container>

    init(_ container: UnsafeMutablePointer<Container>) {
        unsafe self.container = unsafe container
    }

    @inline(never)
    @_semantics("optimize.sil.specialize.generic.never")
    func lend() -> Container { unsafe container.pointee }
}

extension EncodingSession {
    @inline(__always)
    func keyTable<Key: CodingKey>(_ type: Key.Type) -> UnsafeMutablePointer<KeyTable> {
        let address = unsafe metadataAddress(of: type)
        if let known = unsafe state.pointee.tables.pointee.keyTables.find(address) {
            return unsafe known.assumingMemoryBound(to: KeyTable.self)
        }
        return unsafe addKeyTable(type)
    }

    @inline(never)
    private func addKeyTable<Key: CodingKey>(_ type: Key.Type) -> UnsafeMutablePointer<KeyTable> {
        let table = UnsafeMutablePointer<KeyTable>.allocate(capacity: 1)
        unsafe table.initialize(to: KeyTable(for: type))
        unsafe state.pointee.tables.pointee.keyTables.insert(metadataAddress(of: type), table)
        return unsafe table
    }

    /// Lends a container that writes to the map of the given frame.
    @inline(__always)
    func lendContainer<Key: CodingKey>(_ type: Key.Type, frame: Int) -> KeyedEncodingContainer<Key> {
        let table = unsafe keyTable(type)
        let slot = unsafe table.pointee.idle ?? addSlot(type, table)
        unsafe table.pointee.idle = unsafe slot.pointee.next
        unsafe slot.pointee.session = self
        unsafe slot.pointee.frame = frame
        unsafe slot.pointee.next = unsafe state.pointee.frames[frame].slots
        unsafe state.pointee.frames[frame].slots = unsafe slot
        // The lender was made for this key type by `addSlot`.
        return unsafe slot.pointee.lender.unsafelyUnwrapped._withUnsafeGuaranteedRef { lender in
            unsafe reinterpret(lender, as: ContainerLender<KeyedEncodingContainer<Key>>.self).lend()
        }
    }

    /// Makes a container and its slot.
    @inline(never)
    private func addSlot<Key: CodingKey>(
        _ type: Key.Type, _ table: UnsafeMutablePointer<KeyTable>
    ) -> UnsafeMutablePointer<KeyedEncodingSlot> {
        precondition(
            MemoryLayout<KeyedEncodingContainer<Key>>.size == MemoryLayout<AnyObject?>.size,
            "KeyedEncodingContainer is no longer a single reference")
        let slot = UnsafeMutablePointer<KeyedEncodingSlot>.allocate(capacity: 1)
        unsafe slot.initialize(to: KeyedEncodingSlot(session: self, table: table))
        let container = UnsafeMutablePointer<KeyedEncodingContainer<Key>>.allocate(capacity: 1)
        unsafe container.initialize(to: KeyedEncodingContainer(WireKeyedEncodingContainer<Key>(slot: slot)))
        unsafe slot.pointee.box = unsafe UnsafeMutableRawPointer(container).assumingMemoryBound(to: AnyObject?.self)
        unsafe slot.pointee.lender = unsafe Unmanaged.passRetained(ContainerLender(container))
        return unsafe slot
    }

    /// Takes back the containers lent for a frame that ends.
    @inline(__always)
    func reclaimContainers(_ first: UnsafeMutablePointer<KeyedEncodingSlot>?) {
        var next = unsafe first
        while let slot = unsafe next {
            unsafe next = unsafe slot.pointee.next
            unsafe slot.pointee.frame = KeyedEncodingSlot.noFrame
            if unsafe isKnownUniquelyReferenced(&slot.pointee.box.unsafelyUnwrapped.pointee) {
                let table = unsafe slot.pointee.table
                unsafe slot.pointee.next = unsafe table.pointee.idle
                unsafe table.pointee.idle = unsafe slot
            } else {
                // Code kept the container: it may be reused when that has ended.
                unsafe slot.pointee.next = unsafe state.pointee.tables.pointee.kept
                unsafe state.pointee.tables.pointee.kept = unsafe slot
            }
        }
    }

    /// Checks the containers that code kept.
    @inline(__always)
    func reclaimKeptContainers() {
        guard let first = unsafe state.pointee.tables.pointee.kept else { return }
        unsafe state.pointee.tables.pointee.kept = nil
        unsafe reclaimContainers(first)
    }
}
