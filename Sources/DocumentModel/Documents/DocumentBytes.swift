// Looking into document bytes in place.

/// Finding fields in canonical document bytes (or in any that are well formed: then the first entry of a name counts).
package enum DocumentBytes {
    /// The bytes of the `Value` message at a path, or nil when the field is absent or a map on the way is not a plain
    /// map.
    ///
    /// Reads the entries up to the one wanted and nothing else. Malformed bytes give nil or some bytes, never a trap.
    @_lifetime(copy fields)
    package static func value(at path: FieldPath, in fields: RawSpan) -> RawSpan? {
        var entries = fields
        var tag = DocumentTag.field
        let last = path.utf8Segments.count - 1
        for index in 0..<last {
            // Only the lookup of the last segment gives a value; those before it lead through maps.
            let name = path.utf8Segments[index]
            guard let value = entryValue(unsafe name.span.bytes, in: entries, tag: tag),
                let map = plainMapEntries(of: value)
            else { return nil }
            entries = map
            tag = DocumentTag.mapEntry
        }
        let name = path.utf8Segments[last]
        return entryValue(unsafe name.span.bytes, in: entries, tag: tag)
    }

    /// The entries of a map that paths lead into; nil for any other value. A vector or a BSON value is one value, not a
    /// map.
    @_lifetime(copy value)
    package static func plainMapEntries(of value: RawSpan) -> RawSpan? {
        guard let entries = mapEntries(of: value), isPlain(mapEntries: entries) else { return nil }
        return entries
    }

    /// Whether paths lead into the map with these entries.
    package static func isPlain(mapEntries: RawSpan) -> Bool {
        !VectorBytes.isVector(mapEntries: mapEntries) && SentinelBytes.kind(mapEntries: mapEntries) == nil
    }

    /// The entries of a value that is a map, be it a vector or a BSON value, or nil for any other.
    @_lifetime(copy value)
    package static func mapEntries(of value: RawSpan) -> RawSpan? {
        guard value.byteCount > 0, value[byteAt: 0] == UInt8(ValueTag.map) else { return nil }
        var reader = WireReader(value)
        reader.position = 1
        guard let entries = try? reader.lengthDelimited() else { return nil }
        return entries
    }

    /// The value of the entry with a name among the entries of a document (`tag` 0x12) or of a nested map (0x0a).
    @_lifetime(copy entries)
    package static func entryValue(_ name: RawSpan, in entries: RawSpan, tag: UInt8) -> RawSpan? {
        let count = entries.byteCount
        let nameCount = name.byteCount
        var at = 0
        // In bounds: every load below is preceded by a comparison with `count` or with an entry's end, which is at
        // most `count`.
        while at < count {
            guard unsafe entries.unsafeLoad(fromUncheckedByteOffset: at, as: UInt8.self) == tag else { return nil }
            at &+= 1
            guard let end = length(in: entries, &at, count), at < end,
                unsafe entries.unsafeLoad(fromUncheckedByteOffset: at, as: UInt8.self) == DocumentTag.entryKey
            else { return nil }
            at &+= 1
            guard let keyEnd = length(in: entries, &at, end) else { return nil }
            if keyEnd &- at == nameCount, isEqual(entries, at, name, nameCount) {
                at = keyEnd
                guard at < end,
                    unsafe entries.unsafeLoad(fromUncheckedByteOffset: at, as: UInt8.self) == DocumentTag.entryValue
                else { return nil }
                at &+= 1
                guard let valueEnd = length(in: entries, &at, end) else { return nil }
                return unsafe entries.extracting(unchecked: at..<valueEnd)
            }
            at = end
        }
        return nil
    }

    /// Whether `count` bytes of `entries` from `at` on are those of `name`; both have that many.
    @inline(__always)
    private static func isEqual(_ entries: RawSpan, _ at: Int, _ name: RawSpan, _ count: Int) -> Bool {
        // In bounds: offsets stay at least the size of the load below `count`.
        var offset = 0
        while count &- offset >= 8 {
            let entryWord = unsafe entries.unsafeLoadUnaligned(fromUncheckedByteOffset: at &+ offset, as: UInt64.self)
            let nameWord = unsafe name.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self)
            if entryWord != nameWord { return false }
            offset &+= 8
        }
        while offset < count {
            let entryByte = unsafe entries.unsafeLoad(fromUncheckedByteOffset: at &+ offset, as: UInt8.self)
            let nameByte = unsafe name.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            if entryByte != nameByte { return false }
            offset &+= 1
        }
        return true
    }

    /// Reads a length below `end` and returns where its bytes end, or nil when they do not fit.
    @inline(__always)
    private static func length(in bytes: RawSpan, _ at: inout Int, _ end: Int) -> Int? {
        if at < end {
            // In bounds by the comparison.
            let first = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: at, as: UInt8.self)
            if first < 0x80, Int(first) < end &- at {
                at &+= 1
                return at &+ Int(first)
            }
        }
        var reader = WireReader(bytes)
        reader.position = at
        guard let valueEnd = try? reader.endOfLengthDelimited(), valueEnd <= end else { return nil }
        at = reader.position
        return valueEnd
    }
}
