// Maps: where their entries are, and which of them has a key.

import Glibc

extension DecodingSession {
    // MARK: Opening

    /// Notes the entries of a map and opens a frame for it.
    func openMap(_ body: ValueRange, entryTag: UInt8, parent: Int) throws -> Int {
        let first = unsafe state.pointee.entryCount
        var cursor = cursor(body)
        var names = NameOrder()
        do throws(MalformedBytes) {
            while let (key, value) = try cursor.nextEntry(entryTag) {
                names.add(keyPrefix(key))
                _ = noteEntry(key, value)
            }
        } catch {
            throw malformed(error, parent: parent)
        }
        if names.mayRepeat { dropRepeatedEntries(from: first) }
        let frame = try pushFrame(.map, parent: parent, firstEntry: first)
        if unsafe !state.pointee.usesDefaultKeys { convertKeys(of: frame) }
        return frame
    }

    /// Opens a map and gives each key of a slot's table its place.
    ///
    /// An entry is compared first with the key that followed the entry before it in the last map with such keys.
    func openMap(
        _ body: ValueRange, entryTag: UInt8, parent: Int, placesIn slot: UnsafeMutablePointer<KeyedDecodingSlot>
    ) throws -> Int {
        let table = unsafe slot.pointee.table
        if unsafe !table.pointee.isEnumeration || !state.pointee.usesDefaultKeys {
            unsafe slot.pointee.placeCount = 0
            return try openMap(body, entryTag: entryTag, parent: parent)
        }
        unsafe slot.pointee.clearPlaces()
        let first = unsafe state.pointee.entryCount
        var cursor = cursor(body)
        let previous = unsafe noteExpectedEntries(&cursor, entryTag, slot, after: -1)
        let mayRepeat =
            cursor.isAtEnd ? false : try unsafe noteEntries(cursor, entryTag, slot, after: previous, parent: parent)
        let frame = try pushFrame(.map, parent: parent, firstEntry: first)
        if mayRepeat { unsafe dropRepeatedEntries(of: frame, placesIn: slot) }
        return frame
    }

    /// Notes entries of any form and with any names.
    ///
    /// - Parameter previous: the key of the entry before; -1 if there is none.
    /// - Returns: whether names may repeat.
    @inline(never)
    private func noteEntries(
        _ cursor: WireCursor, _ entryTag: UInt8, _ slot: UnsafeMutablePointer<KeyedDecodingSlot>, after previous: Int,
        parent: Int
    ) throws -> Bool {
        var cursor = cursor
        var previous = previous
        var others = NameOrder()
        var repeats = false
        do throws(MalformedBytes) {
            while let (name, value) = try cursor.nextEntry(entryTag) {
                let place = noteEntry(name, value)
                let key = unsafe search(name, in: slot.pointee.table, after: previous)
                if key < 0 {
                    others.add(keyPrefix(name))
                } else {
                    if unsafe slot.pointee.places[key] >= 0 { repeats = true }
                    unsafe slot.pointee.places[key] = Int32(truncatingIfNeeded: place)
                    previous = unsafe noteExpectedEntries(&cursor, entryTag, slot, after: key)
                }
            }
        } catch {
            throw malformed(error, parent: parent)
        }
        return repeats || others.mayRepeat
    }

    /// Notes entries up to the first that does not have the key that is expected there, or is not as encoders write it:
    /// key then value, with lengths of one or two bytes.
    ///
    /// - Parameter previous: the key of the entry before; -1 if there is none.
    /// - Returns: the key of the last entry.
    @inline(never)
    private func noteExpectedEntries(
        _ cursor: inout WireCursor, _ entryTag: UInt8, _ slot: UnsafeMutablePointer<KeyedDecodingSlot>,
        after previous: Int
    ) -> Int {
        let (base, end) = unsafe (cursor.base, cursor.base + cursor.end)
        let (names, places) = unsafe (slot.pointee.table.pointee.names, slot.pointee.places)
        let tag = UInt64(entryTag)
        // A head and the lengths around it are read without further checks of the bounds.
        let last = unsafe base + (state.pointee.byteCount &- DecodingKey.headRoom)
        let entries = unsafe state.pointee.entries
        let entriesEnd = unsafe state.pointee.entryCapacity
        var (at, place, previous) = unsafe (base + cursor.at, state.pointee.entryCount, previous)
        var index = unsafe previous < 0 ? slot.pointee.table.pointee.first : names[previous].next
        while index >= 0, unsafe at <= last, place < entriesEnd {
            let key = unsafe names + index
            var start = unsafe at
            var length = unsafe Int(start.load(fromByteOffset: 1, as: UInt8.self))
            if length < 0x80 {
                if unsafe !key.pointee.isHead(start, tag, mask: .max) { break }
            } else {
                // The head, whose first byte is in the place of the length's first.
                if unsafe start.load(as: UInt8.self) != entryTag { break }
                let second = unsafe Int(start.load(fromByteOffset: 2, as: UInt8.self))
                length = length & 0x7f | second << 7
                unsafe start += 1
                if unsafe second >= 0x80 || !key.pointee.isHead(start, 0, mask: ~0xff) { break }
            }
            let entryEnd = unsafe start + (length &+ 2)
            if unsafe entryEnd > end { break }
            let headCount = unsafe key.pointee.headCount
            if headCount > 16, unsafe at > last - headCount || !key.pointee.isHeadEnd(start) { break }
            var value = unsafe start + (headCount &+ 1)
            var valueCount = unsafe Int(value.load(fromByteOffset: -1, as: UInt8.self))
            if valueCount >= 0x80 {
                let second = unsafe Int(value.load(as: UInt8.self))
                if second >= 0x80 { break }
                valueCount = valueCount & 0x7f | second << 7
                unsafe value += 1
            }
            if unsafe value + valueCount != entryEnd || places[index] >= 0 { break }
            unsafe entries[place] = unsafe DecodedEntry(
                key: UInt32(truncatingIfNeeded: start + 4 - base), keyCount: UInt32(truncatingIfNeeded: headCount &- 5),
                value: UInt32(truncatingIfNeeded: value - base), valueEnd: UInt32(truncatingIfNeeded: entryEnd - base))
            unsafe places[index] = Int32(truncatingIfNeeded: place)
            unsafe at = unsafe entryEnd
            (place, previous) = (place &+ 1, index)
            index = unsafe key.pointee.next
        }
        cursor.at = unsafe at - base
        unsafe state.pointee.entryCount = place
        return previous
    }

    /// Adds an entry to the stack.
    ///
    /// - Returns: its place.
    @inline(__always)
    private func noteEntry(_ name: ValueRange, _ value: ValueRange) -> Int {
        let place = unsafe state.pointee.entryCount
        if unsafe place == state.pointee.entryCapacity { growEntries() }
        unsafe (state.pointee.entries + place).initialize(
            to: DecodedEntry(
                key: UInt32(truncatingIfNeeded: name.start),
                keyCount: UInt32(truncatingIfNeeded: name.end &- name.start),
                value: UInt32(truncatingIfNeeded: value.start), valueEnd: UInt32(truncatingIfNeeded: value.end)))
        unsafe state.pointee.entryCount = place &+ 1
        return place
    }

    /// Of entries with one name only the last counts. Canonical documents have no such entries.
    @inline(never)
    private func dropRepeatedEntries(from first: Int) {
        let end = unsafe state.pointee.entryCount
        let base = unsafe state.pointee.base
        /// Order by name, then by position.
        func isBefore(_ left: Int, _ right: Int) -> Bool {
            let order = compareNames(left, right)
            return order != 0 ? order < 0 : left < right
        }
        func compareNames(_ left: Int, _ right: Int) -> Int {
            let (leftEntry, rightEntry) = unsafe (state.pointee.entries[left], state.pointee.entries[right])
            let shared = Int(min(leftEntry.keyCount, rightEntry.keyCount))
            let order = unsafe memcmp(base + Int(leftEntry.key), base + Int(rightEntry.key), shared)
            return order != 0 ? Int(order) : Int(leftEntry.keyCount) - Int(rightEntry.keyCount)
        }
        let ordered = (first..<end).sorted(by: isBefore)
        let repeated = Set(zip(ordered, ordered.dropFirst()).filter { compareNames($0, $1) == 0 }.map(\.0))
        if repeated.isEmpty { return }
        var kept = first
        for index in first..<end where !repeated.contains(index) {
            unsafe state.pointee.entries[kept] = unsafe state.pointee.entries[index]
            kept += 1
        }
        unsafe state.pointee.entryCount = kept
    }

    @inline(never)
    private func growEntries() {
        let capacity = unsafe state.pointee.entryCapacity
        unsafe state.pointee.entries.grow(from: capacity, to: capacity * 2)
        unsafe state.pointee.entryCapacity = capacity * 2
    }

    /// Drops repeated entries of a map, and gives the keys their places again.
    @inline(never)
    private func dropRepeatedEntries(of frame: Int, placesIn slot: UnsafeMutablePointer<KeyedDecodingSlot>) {
        let first = unsafe state.pointee.frames[frame].firstEntry
        dropRepeatedEntries(from: first)
        let end = unsafe state.pointee.entryCount
        unsafe state.pointee.frames[frame].entryEnd = end
        unsafe slot.pointee.clearPlaces()
        for place in first..<end {
            let key = unsafe search(nameRange(ofEntry: place), in: slot.pointee.table, after: -1)
            if key >= 0 { unsafe slot.pointee.places[key] = Int32(truncatingIfNeeded: place) }
        }
    }

    // MARK: Names

    /// The first eight bytes of a name as a number that compares as they do; zeros fill up.
    @inline(__always)
    private func keyPrefix(_ key: ValueRange) -> UInt64 {
        let count = key.end &- key.start
        if unsafe key.start &+ 8 <= state.pointee.byteCount {
            let word = unsafe UInt64(
                bigEndian: state.pointee.base.loadUnaligned(fromByteOffset: key.start, as: UInt64.self))
            return count >= 8 ? word : count == 0 ? 0 : word & ~(UInt64.max >> UInt64(count &* 8))
        }
        var prefix: UInt64 = 0
        for offset in 0..<min(count, 8) {
            let byte = unsafe state.pointee.base.load(fromByteOffset: key.start + offset, as: UInt8.self)
            prefix |= UInt64(byte) << UInt64(56 - 8 * offset)
        }
        return prefix
    }

    /// Whether a name is that of a key. It is false if the key has no name yet.
    @inline(__always)
    private func isName(_ name: ValueRange, _ known: UnsafeRawBufferPointer?) -> Bool {
        let count = name.end &- name.start
        guard let known = unsafe known, count == known.count else { return false }
        guard let start = known.baseAddress else { return true }
        return unsafe memcmp(state.pointee.base + name.start, start, count) == 0
    }

    /// The place of the entry with a name in a frame's map; -1 if there is none.
    private func place(of name: UnsafeRawBufferPointer?, inFrame index: Int) -> Int {
        let frame = unsafe state.pointee.frames[index]
        for place in frame.firstEntry..<frame.entryEnd where unsafe isName(nameRange(ofEntry: place), name) {
            return place
        }
        return -1
    }

    /// The key with a name, or -1; the key is remembered as the one that follows another, or is the first.
    @inline(never)
    private func search(_ name: ValueRange, in table: UnsafeMutablePointer<DecodingKeyTable>, after previous: Int)
        -> Int
    {
        let expected = unsafe previous < 0 ? table.pointee.first : table.pointee.names[previous].next
        if expected >= 0, unsafe isName(name, table.pointee.names[expected].name) { return expected }
        for index in 0..<(unsafe table.pointee.nameCapacity) {
            if unsafe isName(name, table.pointee.names[index].name) {
                if previous < 0 {
                    unsafe table.pointee.first = index
                } else {
                    unsafe table.pointee.names[previous].next = index
                }
                return index
            }
        }
        return -1
    }

    @inline(__always)
    func value(ofEntry index: Int) -> ValueRange {
        let entry = unsafe state.pointee.entries[index]
        return ValueRange(start: Int(entry.value), end: Int(entry.valueEnd))
    }

    @inline(__always)
    func name(ofEntry index: Int) -> String {
        let range = nameRange(ofEntry: index)
        return cursor(range).text(range)
    }

    @inline(__always)
    private func nameRange(ofEntry index: Int) -> ValueRange {
        let entry = unsafe state.pointee.entries[index]
        return ValueRange(start: Int(entry.key), end: Int(entry.key) + Int(entry.keyCount))
    }

    // MARK: Key strategies

    private func convertKeys(of frame: Int) {
        let path = codingPath(ofFrame: frame)
        var converted: [String: Int] = [:]
        for index in unsafe state.pointee.frames[frame].firstEntry..<state.pointee.frames[frame].entryEnd {
            let name = name(ofEntry: index)
            let key =
                switch strategies?.values.key ?? .useDefaultKeys {
                case .useDefaultKeys: name
                case .convertFromSnakeCase: KeyConversion.camelCase(name)
                case .custom(let convert): convert(path + [PathKey(stringValue: name)]).stringValue
                }
            // Of names that collide the first stays.
            if converted[key] == nil { converted[key] = index }
        }
        unsafe state.pointee.convertedKeys[frame] = converted
    }

    // MARK: Finding

    /// The place of a key that has none in its slot. It is -1, unless the table did not know the name when the map was
    /// opened.
    @inline(never)
    func findUnplaced(_ index: Int, _ key: any CodingKey, _ slot: UnsafeMutablePointer<KeyedDecodingSlot>) -> Int {
        let table = unsafe slot.pointee.table
        if unsafe index >= table.pointee.nameCapacity || table.pointee.names[index].name == nil {
            unsafe table.pointee.addName(at: index, of: key)
        } else if unsafe slot.pointee.nameCount == table.pointee.nameCount {
            return -1
        }
        return unsafe place(of: table.pointee.names[index].name, inFrame: slot.pointee.frame)
    }

    /// Finds the entry of a name; -1 if there is none. Then the frame is at no key.
    func find(_ name: String, frame index: Int) -> Int {
        let frame = unsafe state.pointee.frames + index
        unsafe frame.pointee.keyTable = nil
        unsafe frame.pointee.hasDynamicKey = false
        var name = name
        let found = name.withUTF8 { unsafe place(of: UnsafeRawBufferPointer($0), inFrame: index) }
        if found >= 0 { unsafe frame.pointee.index = found }
        return found
    }

    /// Has a frame be at a key that neither a table nor an entry has.
    func note(_ key: any CodingKey, inFrame index: Int) {
        unsafe state.pointee.frames[index].hasDynamicKey = true
        unsafe state.pointee.dynamicKeys[index] = key
    }
}

/// Whether names that are added one after another may repeat.
struct NameOrder {
    private var last: UInt64 = 0
    private var isEmpty = true
    /// Names in order do not repeat.
    private(set) var mayRepeat = false

    /// - Parameter prefix: the first bytes of the name, see `DecodingSession.keyPrefix`.
    @inline(__always)
    mutating func add(_ prefix: UInt64) {
        if prefix <= last, !isEmpty { mayRepeat = true }
        last = prefix
        isEmpty = false
    }
}
