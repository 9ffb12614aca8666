/// A small open-addressing hash table from addresses of type metadata to heap blocks.
///
/// The coders use it to find what they know about a type in a few nanoseconds. Entries are added and never removed. The
/// owner of the table owns the blocks.
@safe struct PointerMap {
    @safe private struct Slot {
        var key: UnsafeRawPointer?
        var value: UnsafeMutableRawPointer?
    }

    // Owner: this value, whose owner never frees it (see `EncodingTables`). Bounds: mask + 1 slots.
    private var slots: UnsafeMutablePointer<Slot>
    private var mask: UInt
    private var count: UInt = 0

    init() {
        unsafe slots = .allocate(capacity: 64)
        unsafe slots.initialize(repeating: Slot(key: nil, value: nil), count: 64)
        mask = 63
    }

    /// Metadata lies at multiples of 8 or more; the bits above tell types of one image apart.
    @inline(__always)
    private func place(of key: UnsafeRawPointer) -> UInt {
        let address = UInt(bitPattern: key)
        return (address >> 4 ^ address >> 11) & mask
    }

    @inline(__always)
    func find(_ key: UnsafeRawPointer) -> UnsafeMutableRawPointer? {
        var place = unsafe place(of: key)
        while true {
            let slot = unsafe slots[Int(place)]
            if unsafe slot.key == key { return unsafe slot.value }
            if unsafe slot.key == nil { return nil }
            place = (place + 1) & mask
        }
    }

    mutating func insert(_ key: UnsafeRawPointer, _ value: UnsafeMutableRawPointer) {
        if count * 2 > mask { grow() }
        var place = unsafe place(of: key)
        while unsafe slots[Int(place)].key != nil { place = (place + 1) & mask }
        unsafe slots[Int(place)] = Slot(key: key, value: value)
        count += 1
    }

    private mutating func grow() {
        let old = unsafe UnsafeMutableBufferPointer(start: slots, count: Int(mask) + 1)
        mask = mask * 2 + 1
        unsafe slots = .allocate(capacity: Int(mask) + 1)
        unsafe slots.initialize(repeating: Slot(key: nil, value: nil), count: Int(mask) + 1)
        count = 0
        // The formatter would join `unsafe` and the name.
        // swift-format-ignore
        for unsafe slot in unsafe old {
            if let key = unsafe slot.key, let value = unsafe slot.value { unsafe insert(key, value) }
        }
        unsafe old.baseAddress?.deallocate()
    }
}

/// The address of a type's metadata.
@inline(__always)
func metadataAddress<T>(of type: T.Type) -> UnsafeRawPointer {
    // A metatype of a concrete type is that address.
    unsafe unsafeBitCast(type, to: UnsafeRawPointer.self)
}

/// The bits of a value as another type of the same size, which the caller knows to be the value's own type.
@unsafe @inline(__always)
func reinterpret<From, To>(_ value: From, as type: To.Type) -> To {
    unsafe unsafeBitCast(value, to: type)
}
