import Basics

/// What the walk found wrong: a rule and a byte offset. It becomes an ``InvalidDocument`` with a field path.
struct WalkFailure: Error {
    var reason: InvalidDocument.Reason
    var offset: Int

    @inline(never)
    init(_ reason: InvalidDocument.Reason, _ offset: Int) {
        self.reason = reason
        self.offset = offset
    }
}

/// The walk over document bytes: it checks every rule, determines whether the bytes are canonical, and computes the
/// size.
///
/// The walk reads forwards, once, and builds nothing. It compares every length with the remaining bytes before it uses
/// it, so no input can lead out of bounds. It recurses into nested maps and arrays only, at most `Limits.nestingDepth`
/// levels. Legal protobuf that is not canonical (unknown fields, several types in one value, long varints, unsorted or
/// repeated keys) takes slower paths. Each of these scans a level before it descends once, so the time is proportional
/// to depth times length.
///
/// Offsets count from the start of `bytes`; `end` arguments never exceed its length.
struct DocumentWalk: ~Escapable {
    let bytes: RawSpan
    let rules: NameRules
    /// Whether everything read so far is laid out canonically.
    var isCanonical = true
    /// Size of what was read, by the published formula.
    var size = 0
    /// The depth of the map being walked if it is an element of an array; -1 otherwise.
    var elementDepth = -1

    @_lifetime(copy bytes)
    init(_ bytes: RawSpan, rules: NameRules) {
        self.bytes = bytes
        self.rules = rules
    }

    // MARK: Bytes

    /// The byte at an offset below some `end`.
    @inline(__always)
    func byte(_ offset: Int) -> UInt8 {
        // In bounds: the caller has compared the offset with an end within the span.
        unsafe bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
    }

    /// Eight bytes at an offset at least eight below some `end`.
    @inline(__always)
    func word(_ offset: Int) -> UInt64 {
        // In bounds as above.
        unsafe UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
    }

    @inline(__always)
    @_lifetime(copy self)
    func span(_ from: Int, _ to: Int) -> RawSpan {
        // In bounds: both come from comparisons with an end within the span.
        unsafe bytes.extracting(unchecked: from..<to)
    }

    /// Reads a varint and moves past it; one that is longer than it must be is not canonical.
    @inline(__always)
    @_lifetime(self: copy self)
    mutating func varint(_ at: inout Int, _ end: Int) throws(WalkFailure) -> UInt64 {
        if at < end {
            let first = byte(at)
            if first < 0x80 {
                at &+= 1
                return UInt64(first)
            }
        }
        let long = try longVarint(at, end)
        at = long.next
        return long.value
    }

    /// Not inlined, and by value, so that the position stays in a register on the short way.
    @inline(never)
    @_lifetime(self: copy self)
    private mutating func longVarint(_ start: Int, _ end: Int) throws(WalkFailure) -> (value: UInt64, next: Int) {
        var next = start
        var result: UInt64 = 0
        var shift: UInt64 = 0
        while next < end {
            let piece = byte(next)
            next &+= 1
            // The tenth byte has room for the top bit alone.
            if shift == 63, piece > 1 { throw WalkFailure(.varintTooLong, start) }
            result |= UInt64(piece & 0x7f) &<< shift
            if piece < 0x80 {
                if piece == 0, shift > 0 { isCanonical = false }
                return (result, next)
            }
            shift &+= 7
        }
        throw WalkFailure(.truncated, start)
    }

    /// Reads a length and returns where the bytes that follow it end.
    @inline(__always)
    @_lifetime(self: copy self)
    mutating func length(_ at: inout Int, _ end: Int) throws(WalkFailure) -> Int {
        if at < end {
            let first = Int(byte(at))
            let next = at &+ 1
            if first < 0x80, first <= end &- next {
                at = next
                return next &+ first
            }
        }
        let long = try longLength(at, end)
        at = long.from
        return long.to
    }

    @inline(never)
    @_lifetime(self: copy self)
    private mutating func longLength(_ start: Int, _ end: Int) throws(WalkFailure) -> (from: Int, to: Int) {
        // Most have two bytes.
        if end &- start >= 2, byte(start) >= 0x80, byte(start &+ 1) &- 1 < 0x7f {
            let at = start &+ 2
            let length = Int(byte(start) & 0x7f) | Int(byte(start &+ 1)) &<< 7
            if length <= end &- at { return (at, at &+ length) }
        }
        var at = start
        let length = try varint(&at, end)
        if length > UInt64(truncatingIfNeeded: end &- at) { throw WalkFailure(.truncated, start) }
        return (at, at &+ Int(truncatingIfNeeded: length))
    }

    /// Reads a tag that may be any.
    @_lifetime(self: copy self)
    mutating func tag(_ at: inout Int, _ end: Int) throws(WalkFailure) -> UInt32 {
        let start = at
        let raw = try varint(&at, end)
        if raw < 8 || raw > 0xffff_ffff || raw & 7 > 5 { throw WalkFailure(.invalidTag, start) }
        return UInt32(truncatingIfNeeded: raw)
    }

    /// Steps over a field's payload and returns where it ends.
    @_lifetime(self: copy self)
    mutating func skip(_ tag: UInt32, _ from: Int, _ end: Int) throws(WalkFailure) -> Int {
        var at = from
        switch tag & 7 {
        case 0: _ = try varint(&at, end)
        case 1: at += 8
        case 2: return try length(&at, end)
        case 5: at += 4
        default: throw WalkFailure(.groupNotSupported, from)
        }
        if at > end { throw WalkFailure(.truncated, from) }
        return at
    }

    // MARK: Entries of a map

    /// Walks the entries of a document (`tag` 0x12) or of a nested map (0x0a) from `from` to `end`.
    ///
    /// - Parameter depth: levels of maps and arrays around the entries' values.
    @_lifetime(self: copy self)
    mutating func entries(_ from: Int, _ end: Int, tag entryTag: UInt8, depth: Int) throws(WalkFailure) {
        let sizeBefore = size
        var at = from
        var previousKey = 0
        var previousEnd = -1
        while at < end {
            if byte(at) != entryTag {
                at = try unknownField(at, end, entryTag: entryTag)
                continue
            }
            at &+= 1
            let entryEnd = try length(&at, end)
            let entry = try entry(at, entryEnd)
            try key(entry.key, entry.keyEnd)
            if previousEnd >= 0, !keyIsAbove(entry.key, entry.keyEnd, previousKey, previousEnd) { isCanonical = false }
            previousKey = entry.key
            previousEnd = entry.keyEnd
            if byte(entry.key) == UInt8(ascii: "_"), ResourceID.isReserved(span(entry.key, entry.keyEnd)) {
                guard entryTag == DocumentTag.mapEntry else { throw WalkFailure(.fieldNameReserved, entry.key) }
                size = sizeBefore
                if span(entry.key, entry.keyEnd).equalsUTF8("__type__") {
                    if rules == .request, depth == elementDepth { throw WalkFailure(.vectorInArray, entry.key) }
                    return try vector(from, end)
                }
                guard let kind = SentinelKind(key: span(entry.key, entry.keyEnd)) else {
                    throw WalkFailure(.fieldNameReserved, entry.key)
                }
                return try sentinel(kind, from, end, depth: depth)
            }
            size &+= entry.keyEnd &- entry.key &+ 1
            if try !string(entry.value, entry.valueEnd) {
                try value(entry.value, entry.valueEnd, depth: depth, inArray: false)
            }
            at = entryEnd
        }
    }

    /// Whether a key lies above the one before it, as canonical order demands.
    @inline(__always)
    private func keyIsAbove(_ key: Int, _ keyEnd: Int, _ previous: Int, _ previousEnd: Int) -> Bool {
        // Keys mostly differ in their first bytes, which compare as one number; what follows a short key is cut off.
        // The previous key lies before this one, so its eight bytes are there when this one's are.
        if bytes.byteCount &- key >= 8 {
            let new = word(key).byteSwapped & ~0 &<< UInt64(64 &- 8 &* min(8, keyEnd &- key))
            let old = word(previous).byteSwapped & ~0 &<< UInt64(64 &- 8 &* min(8, previousEnd &- previous))
            if new != old { return new > old }
        }
        return span(key, keyEnd).compareBytes(span(previous, previousEnd)) > 0
    }

    /// Where key and value of one map entry stand; an absent key is an empty one.
    struct Entry {
        var key: Int
        var keyEnd: Int
        var value: Int
        var valueEnd: Int
    }

    /// Splits one map entry.
    @inline(__always)
    @_lifetime(self: copy self)
    mutating func entry(_ from: Int, _ end: Int) throws(WalkFailure) -> Entry {
        var at = from
        if at < end, byte(at) == DocumentTag.entryKey {
            at &+= 1
            let keyEnd = try length(&at, end)
            let key = at
            at = keyEnd
            if at < end, byte(at) == DocumentTag.entryValue {
                at &+= 1
                let valueEnd = try length(&at, end)
                if valueEnd == end { return Entry(key: key, keyEnd: keyEnd, value: at, valueEnd: valueEnd) }
            }
        }
        return try irregularEntry(from, end)
    }

    /// An entry whose fields are not exactly key and value in this order: the last of each counts.
    @inline(never)
    @_lifetime(self: copy self)
    private mutating func irregularEntry(_ from: Int, _ end: Int) throws(WalkFailure) -> Entry {
        isCanonical = false
        var entry = Entry(key: from, keyEnd: from, value: -1, valueEnd: -1)
        var at = from
        while at < end {
            let tag = try tag(&at, end)
            let payload = at
            at = try skip(tag, payload, end)
            switch tag >> 3 {
            case 1, 2:
                guard tag & 7 == 2 else { throw WalkFailure(.wrongWireType, payload) }
                var start = payload
                _ = try length(&start, end)
                if tag >> 3 == 1 {
                    (entry.key, entry.keyEnd) = (start, at)
                } else {
                    (entry.value, entry.valueEnd) = (start, at)
                }
            default: break
            }
        }
        if entry.value < 0 { throw WalkFailure(.valueTypeMissing, from) }
        return entry
    }

    /// Something else where an entry or an element should begin: skipped when it is an unknown field, refused when it
    /// is the entry's own field with a wrong wire type or with a tag of more bytes than needed (no encoder writes
    /// that).
    @inline(never)
    @_lifetime(self: copy self)
    mutating func unknownField(_ from: Int, _ end: Int, entryTag: UInt8) throws(WalkFailure) -> Int {
        isCanonical = false
        var at = from
        let tag = try tag(&at, end)
        if tag >> 3 == UInt32(entryTag >> 3) {
            throw WalkFailure(tag == UInt32(entryTag) ? .invalidTag : .wrongWireType, from)
        }
        return try skip(tag, at, end)
    }

    /// Checks a field name, all but the reserved ones.
    @inline(__always)
    @_lifetime(self: copy self)
    private mutating func key(_ from: Int, _ end: Int) throws(WalkFailure) {
        if from == end { throw WalkFailure(.fieldNameEmpty, from) }
        if end &- from > Limits.fieldNameBytes { throw WalkFailure(.fieldNameTooLong, from) }
        if !isUTF8(from, end) { throw WalkFailure(.invalidUTF8, from) }
    }

    /// Whether the bytes are well-formed UTF-8; ASCII is settled here, eight bytes at a time.
    @inline(__always)
    func isUTF8(_ from: Int, _ end: Int) -> Bool {
        let high: UInt64 = 0x8080_8080_8080_8080
        let count = end &- from
        if count >= 8 {
            // The last eight bytes overlap those before them if the length is not a multiple of eight.
            var all = word(end &- 8)
            var at = from
            while at < end &- 8 {
                all |= word(at)
                at &+= 8
            }
            return all & high == 0 || UTF8Validation.isValid(span(from, end))
        }
        if count == 0 { return true }
        // Eight bytes from the start when the span has them, without those that follow the text.
        if bytes.byteCount &- from >= 8 {
            let text = word(from) & (~0 &>> UInt64(64 &- 8 &* count))
            return text & high == 0 || UTF8Validation.isValid(span(from, end))
        }
        return UTF8Validation.isValid(span(from, end))
    }
}
