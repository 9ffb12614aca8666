// A hash table from byte strings to integers, for tables of the commit thread.
//
// Why not Dictionary<[UInt8], Int>: a look-up would have to make an array of the key first, and each entry would own
// one. Here keys lie back to back in one buffer, a look-up takes any span, and emptying the table frees nothing.
//
// Open addressing with linear probing; the power-of-two table of slots holds entry positions plus one, 0 for free.
// Entries are never removed one by one: callers clear the table, or mark values themselves.

/// Maps byte strings to `Int`s. Not thread-safe.
package struct ByteTable: ~Copyable {
    private struct Entry {
        var hash: UInt64
        var keyOffset: Int
        var keyCount: Int
        var value: Int
    }

    private var entries: [Entry] = []
    private var slots: [UInt32]
    private var keys: ByteBuffer

    /// - Parameters:
    ///   - slotCount: a power of two; grows as needed.
    ///   - keyBytes: room for keys to begin with.
    package init(slotCount: Int = 64, keyBytes: Int = 1024) {
        keys = ByteBuffer(capacity: keyBytes)
        precondition(slotCount > 0 && slotCount & (slotCount - 1) == 0, "a table has a power of two of slots")
        slots = [UInt32](repeating: 0, count: slotCount)
    }

    package var count: Int { entries.count }

    /// Bytes of all keys.
    package var keyBytes: Int { keys.count }

    /// Hash of a byte string: a multiply-and-fold over words, good enough for tables of keys that we encoded ourselves.
    /// The seed is drawn per process, so that nobody can prepare collisions.
    package static func hash(_ key: RawSpan) -> UInt64 {
        var state = seed ^ UInt64(truncatingIfNeeded: key.byteCount)
        var offset = 0
        while offset + 8 <= key.byteCount {
            // In bounds by the loop's condition.
            let word = unsafe key.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self)
            state = fold(state ^ word)
            offset += 8
        }
        var tail: UInt64 = 0
        while offset < key.byteCount {
            tail = tail << 8 | UInt64(key[byteAt: offset])
            offset += 1
        }
        return fold(state ^ tail)
    }

    private static func fold(_ value: UInt64) -> UInt64 {
        let product = value.multipliedFullWidth(by: 0x9e37_79b9_7f4a_7c15)
        return product.high ^ product.low ^ (value &>> 32)
    }

    private static let seed = UInt64.random(in: .min ... .max)

    /// The value of a key, or nil.
    package func value(of key: RawSpan, hash: UInt64) -> Int? {
        let slot = slot(of: key, hash: hash)
        return slots[slot] == 0 ? nil : entries[Int(slots[slot]) - 1].value
    }

    package func value(of key: RawSpan) -> Int? {
        entries.isEmpty ? nil : value(of: key, hash: ByteTable.hash(key))
    }

    /// Sets the value of a key.
    package mutating func set(_ key: RawSpan, hash: UInt64, to value: Int) {
        let slot = slot(of: key, hash: hash)
        if slots[slot] != 0 {
            entries[Int(slots[slot]) - 1].value = value
            return
        }
        add(key, hash: hash, value: value, at: slot)
    }

    /// Sets the value of a key that has none.
    /// - Returns: the value that the key has already and keeps; nil if it had none.
    package mutating func insert(_ key: RawSpan, hash: UInt64, value: Int) -> Int? {
        let slot = slot(of: key, hash: hash)
        if slots[slot] != 0 { return entries[Int(slots[slot]) - 1].value }
        add(key, hash: hash, value: value, at: slot)
        return nil
    }

    /// Adds a key, for a table that is a set.
    /// - Returns: whether it is new.
    package mutating func insert(_ key: RawSpan) -> Bool { insert(key, hash: ByteTable.hash(key), value: 0) == nil }

    private mutating func add(_ key: RawSpan, hash: UInt64, value: Int, at slot: Int) {
        entries.append(Entry(hash: hash, keyOffset: keys.count, keyCount: key.byteCount, value: value))
        keys.append(key)
        slots[slot] = UInt32(entries.count)
        if entries.count * 2 > slots.count { grow() }
    }

    package mutating func set(_ key: RawSpan, to value: Int) {
        set(key, hash: ByteTable.hash(key), to: value)
    }

    /// Appends the key of the n-th entry, in order of arrival.
    package func appendKey(at position: Int, to writer: inout ByteBuffer) {
        let entry = entries[position]
        writer.append(keys.bytes.extracting(entry.keyOffset..<(entry.keyOffset + entry.keyCount)))
    }

    package func value(at position: Int) -> Int { entries[position].value }

    /// Forgets everything and keeps the memory, unless it has become much.
    package mutating func removeAll() {
        if entries.isEmpty { return }
        // To empty a table that was large once costs more than a few entries do.
        let isSparse = slots.count > 4_096 && entries.count < slots.count / 32
        entries.removeAll(keepingCapacity: entries.count < 65_536)
        keys.reset(keeping: 4 << 20)
        if slots.count > 131_072 || isSparse {
            slots = [UInt32](repeating: 0, count: 64)
        } else {
            for slot in slots.indices { slots[slot] = 0 }
        }
    }

    private func slot(of key: RawSpan, hash: UInt64) -> Int {
        let mask = slots.count - 1
        var slot = Int(truncatingIfNeeded: hash) & mask
        while slots[slot] != 0 {
            let entry = entries[Int(slots[slot]) - 1]
            if entry.hash == hash, entry.keyCount == key.byteCount,
                keys.bytes.extracting(entry.keyOffset..<(entry.keyOffset + entry.keyCount)).equalsBytes(key)
            {
                return slot
            }
            slot = (slot + 1) & mask
        }
        return slot
    }

    private mutating func grow() {
        let mask = slots.count * 2 - 1
        slots = [UInt32](repeating: 0, count: mask + 1)
        for (position, entry) in entries.enumerated() {
            var slot = Int(truncatingIfNeeded: entry.hash) & mask
            while slots[slot] != 0 { slot = (slot + 1) & mask }
            slots[slot] = UInt32(position + 1)
        }
    }
}
