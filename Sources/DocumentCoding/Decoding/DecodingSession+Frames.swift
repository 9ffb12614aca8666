// Frames: the maps and arrays being read.

import Glibc

extension DecodingSession {
    /// Opens a frame for an array, or for a map whose entries are noted already.
    @inline(__always)
    func pushFrame(_ kind: DecodingFrame.Kind, parent: Int, firstEntry: Int) throws -> Int {
        let index = unsafe state.pointee.frameCount
        if unsafe index == state.pointee.frameCapacity { try growFrames() }
        unsafe (state.pointee.frames + index).initialize(
            to: DecodingFrame(
                kind: kind, parent: parent, firstEntry: firstEntry, entryEnd: state.pointee.entryCount, index: 0,
                keyTable: nil, slots: nil))
        unsafe state.pointee.frameCount = index &+ 1
        return index
    }

    @inline(never)
    private func growFrames() throws {
        let capacity = unsafe state.pointee.frameCapacity
        if capacity >= Self.framesMax {
            throw DecodingError.dataCorrupted(
                .init(codingPath: [], debugDescription: "Too many containers were kept while decoding one document."))
        }
        let larger = UnsafeMutablePointer<DecodingFrame>.allocate(capacity: capacity * 2)
        unsafe larger.moveInitialize(from: state.pointee.frames, count: capacity)
        unsafe state.pointee.frames.deallocate()
        unsafe state.pointee.frames = unsafe larger
        unsafe state.pointee.frameCapacity = capacity * 2
    }

    /// Notes the entries of a map and opens a frame for it.
    func openMap(_ body: WireValue, entryTag: UInt8, parent: Int) throws -> Int {
        let firstEntry = unsafe state.pointee.entryCount
        var cursor = cursor(body)
        var lastPrefix: UInt64 = 0
        var mayRepeat = false
        do throws(MalformedBytes) {
            while let (key, value) = try cursor.nextEntry(entryTag) {
                let place = unsafe state.pointee.entryCount
                let prefix = keyPrefix(key)
                // Names in order do not repeat; the first may have an empty prefix.
                if prefix <= lastPrefix, place > firstEntry { mayRepeat = true }
                lastPrefix = prefix
                if unsafe place == state.pointee.entryCapacity { growEntries() }
                unsafe (state.pointee.entries + place).initialize(
                    to: DecodedEntry(
                        key: UInt32(truncatingIfNeeded: key.start),
                        keyCount: UInt32(truncatingIfNeeded: key.end &- key.start),
                        value: UInt32(truncatingIfNeeded: value.start), valueEnd: UInt32(truncatingIfNeeded: value.end))
                )
                unsafe state.pointee.entryCount = place &+ 1
            }
        } catch {
            throw malformed(error, parent: parent)
        }
        if mayRepeat { dropRepeatedEntries(from: firstEntry) }
        let frame = try pushFrame(.map, parent: parent, firstEntry: firstEntry)
        if unsafe !state.pointee.usesDefaultKeys { convertKeys(of: frame) }
        return frame
    }

    /// The first eight bytes of a name as a number that compares as they do; zeros fill up.
    @inline(__always)
    private func keyPrefix(_ key: WireValue) -> UInt64 {
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
        let larger = UnsafeMutablePointer<DecodedEntry>.allocate(capacity: capacity * 2)
        unsafe larger.moveInitialize(from: state.pointee.entries, count: capacity)
        unsafe state.pointee.entries.deallocate()
        unsafe state.pointee.entries = unsafe larger
        unsafe state.pointee.entryCapacity = capacity * 2
    }

    /// Gives up the frames from one on, unless a container of one of them was kept.
    @inline(__always)
    func closeFrames(downTo mark: Int) {
        if unsafe state.pointee.frameCount > mark { closeOpenFrames(downTo: mark) }
    }

    @inline(__always)
    private func closeOpenFrames(downTo mark: Int) {
        var index = unsafe state.pointee.frameCount
        while index > mark {
            index &-= 1
            let frame = unsafe state.pointee.frames + index
            if unsafe frame.pointee.slots != nil {
                if unsafe !areUnused(frame.pointee.slots) && state.pointee.depth > 0 { return }
                _ = unsafe takeBackContainers(frame.pointee.slots)
                unsafe frame.pointee.slots = nil
            }
            unsafe state.pointee.entryCount = unsafe frame.pointee.firstEntry
            unsafe state.pointee.frameCount = index
        }
    }

    /// Whether nobody holds the containers any more.
    @inline(__always)
    private func areUnused(_ first: UnsafeMutablePointer<KeyedDecodingSlot>?) -> Bool {
        var next = unsafe first
        while let slot = unsafe next {
            if unsafe !isKnownUniquelyReferenced(&slot.pointee.box.unsafelyUnwrapped.pointee) { return false }
            unsafe next = unsafe slot.pointee.next
        }
        return true
    }

    @inline(__always)
    func cursor(_ range: WireValue) -> WireCursor {
        unsafe WireCursor(state.pointee.base, range.start, range.end)
    }

    @inline(__always)
    func value(ofEntry index: Int) -> WireValue {
        let entry = unsafe state.pointee.entries[index]
        return WireValue(start: Int(entry.value), end: Int(entry.valueEnd))
    }

    @inline(__always)
    func name(ofEntry index: Int) -> String {
        let entry = unsafe state.pointee.entries[index]
        return cursor(WireValue(start: 0, end: 0)).text(
            WireValue(start: Int(entry.key), end: Int(entry.key) + Int(entry.keyCount)))
    }

    // MARK: Paths and errors

    /// The keys that lead to the value a frame holds.
    func codingPath(ofFrame frame: Int) -> [any CodingKey] {
        frame < 0 ? [] : unsafe codingPath(inFrame: state.pointee.frames[frame].parent)
    }

    /// The keys that lead to what is being read in a frame.
    func codingPath(inFrame frame: Int) -> [any CodingKey] {
        if frame < 0 { return [] }
        return codingPath(ofFrame: frame) + [currentKey(inFrame: frame)]
    }

    private func currentKey(inFrame index: Int) -> any CodingKey {
        let frame = unsafe state.pointee.frames[index]
        if frame.kind == .array { return PathKey(index: frame.index) }
        if let table = unsafe frame.keyTable {
            return unsafe table.pointee.keys[frame.index] ?? PathKey(stringValue: "")
        }
        if frame.hasDynamicKey, let key = unsafe state.pointee.dynamicKeys[index] { return key }
        return PathKey(stringValue: name(ofEntry: frame.index))
    }

    @inline(never)
    func malformed(_ error: MalformedBytes, parent: Int) -> DecodingError {
        .dataCorrupted(
            .init(
                codingPath: codingPath(inFrame: parent),
                debugDescription: "The document's bytes are malformed at offset \(error.offset)."))
    }

    // MARK: Key strategies

    private func convertKeys(of frame: Int) {
        let path = codingPath(ofFrame: frame)
        var converted: [String: Int] = [:]
        for index in unsafe state.pointee.frames[frame].firstEntry..<state.pointee.frames[frame].entryEnd {
            let name = name(ofEntry: index)
            let key =
                switch unsafe state.pointee.decoder?.keyDecodingStrategy ?? .useDefaultKeys {
                case .useDefaultKeys: name
                case .convertFromSnakeCase: KeyConversion.camelCase(name)
                case .custom(let convert): convert(path + [PathKey(stringValue: name)]).stringValue
                }
            // Of names that collide the first stays.
            if converted[key] == nil { converted[key] = index }
        }
        unsafe state.pointee.convertedKeys[frame] = converted
    }
}
