// The walk's second half: one value, of each type.

extension DocumentWalk {
    /// Walks one `Value` message from `from` to `end`.
    ///
    /// - Parameter depth: levels of maps and arrays around the value.
    @_lifetime(self: copy self)
    mutating func value(_ from: Int, _ end: Int, depth: Int, inArray: Bool) throws(WalkFailure) {
        var at = from
        let tag: UInt32
        if at < end, byte(at) < 0x80 {
            tag = UInt32(byte(at))
            at &+= 1
        } else if end &- at >= 2, byte(at &+ 1) &- 1 < 0x7f {
            tag = UInt32(byte(at) & 0x7f) | UInt32(byte(at &+ 1)) << 7
            at &+= 2
        } else {
            return try irregularValue(from, end, depth: depth, inArray: inArray)
        }
        if try !payload(tag, &at, end, depth: depth, inArray: inArray) {
            try irregularValue(from, end, depth: depth, inArray: inArray)
        }
    }

    /// Walks a string, which most values are, in its shortest spelling. False for anything else; nothing is counted
    /// then.
    @inline(__always)
    @_lifetime(self: copy self)
    mutating func string(_ from: Int, _ end: Int) throws(WalkFailure) -> Bool {
        guard end &- from >= 3, UInt32(byte(from) & 0x7f) | UInt32(byte(from &+ 1)) << 7 == ValueTag.string,
            byte(from) >= 0x80
        else { return false }
        var at = from &+ 2
        return try stringPayload(&at, end)
    }

    @inline(__always)
    @_lifetime(self: copy self)
    private mutating func stringPayload(_ at: inout Int, _ end: Int) throws(WalkFailure) -> Bool {
        if try length(&at, end) != end { return false }
        if end &- at > Limits.stringOrBytesValueBytes { throw WalkFailure(.stringTooLong, at) }
        if !isUTF8(at, end) { throw WalkFailure(.invalidUTF8, at) }
        size &+= end &- at &+ 1
        return true
    }

    /// Walks the payload of one typed field when it reaches exactly to `end`, and says whether it did. False also for a
    /// tag that is not a value's; nothing is counted then.
    @inline(__always)
    @_lifetime(self: copy self)
    private mutating func payload(
        _ tag: UInt32, _ at: inout Int, _ end: Int, depth: Int, inArray: Bool
    ) throws(WalkFailure) -> Bool {
        switch tag {
        case ValueTag.string: return try stringPayload(&at, end)
        case ValueTag.integer:
            _ = try varint(&at, end)
            if at != end { return false }
            size &+= 8
        case ValueTag.double:
            if end &- at != 8 { return false }
            let bits = word(at)
            if bits & 0x7fff_ffff_ffff_ffff > 0x7ff0_0000_0000_0000, bits != Double.nan.bitPattern {
                isCanonical = false
            }
            size &+= 8
        case ValueTag.boolean:
            let value = try varint(&at, end)
            if at != end { return false }
            if value > 1 { isCanonical = false }
            size &+= 1
        case ValueTag.null:
            let value = try varint(&at, end)
            if at != end { return false }
            if value != 0 { isCanonical = false }
            size &+= 1
        case ValueTag.timestamp:
            if try length(&at, end) != end { return false }
            try timestamp(at, end)
        case ValueTag.map:
            if try length(&at, end) != end { return false }
            if depth >= Limits.nestingDepth { throw WalkFailure(.nestedTooDeeply, at) }
            size &+= DocumentSize.mapOverhead
            elementDepth = inArray ? depth &+ 1 : -1
            try entries(at, end, tag: DocumentTag.mapEntry, depth: depth &+ 1)
        case ValueTag.array:
            if inArray { throw WalkFailure(.arrayInArray, at) }
            if try length(&at, end) != end { return false }
            if depth >= Limits.nestingDepth { throw WalkFailure(.nestedTooDeeply, at) }
            try array(at, end, depth: depth &+ 1)
        case ValueTag.bytes:
            if try length(&at, end) != end { return false }
            if end &- at > Limits.stringOrBytesValueBytes { throw WalkFailure(.bytesTooLong, at) }
            size &+= end &- at
        case ValueTag.reference:
            if try length(&at, end) != end { return false }
            try reference(at, end)
        case ValueTag.geoPoint:
            if try length(&at, end) != end { return false }
            try geoPoint(at, end)
        default:
            return false
        }
        return true
    }

    /// A value that is not exactly one typed field in its shortest spelling: the last type set counts.
    @inline(never)
    @_lifetime(self: copy self)
    private mutating func irregularValue(
        _ from: Int, _ end: Int, depth: Int, inArray: Bool
    ) throws(WalkFailure) {
        isCanonical = false
        var at = from
        var found: (tag: UInt32, payload: Int, end: Int)?
        while at < end {
            let start = at
            let tag = try tag(&at, end)
            let payload = at
            at = try skip(tag, payload, end)
            switch ValueKind.classify(tag) {
            case .type: found = (tag, payload, at)
            case .unknown: break
            case .wrongWireType: throw WalkFailure(.wrongWireType, start)
            case .pipeline: throw WalkFailure(.pipelineValue, start)
            }
        }
        guard var found else { throw WalkFailure(.valueTypeMissing, from) }
        // The payload ends at the end that the scan found, so this cannot come back here.
        _ = try payload(found.tag, &found.payload, found.end, depth: depth, inArray: inArray)
    }

    /// What a tag in a `Value` message stands for.
    private enum ValueKind {
        case type
        case unknown
        case wrongWireType
        case pipeline

        static func classify(_ tag: UInt32) -> ValueKind {
            switch tag {
            case ValueTag.null, ValueTag.boolean, ValueTag.integer, ValueTag.double, ValueTag.timestamp,
                ValueTag.string, ValueTag.bytes, ValueTag.reference, ValueTag.geoPoint, ValueTag.array, ValueTag.map:
                .type
            default:
                switch tag >> 3 {
                case 1, 2, 3, 5, 6, 8, 9, 10, 11, 17, 18: .wrongWireType
                case 19...22: .pipeline
                default: .unknown
                }
            }
        }
    }

    // MARK: Types with special rules

    @_lifetime(self: copy self)
    private mutating func array(_ from: Int, _ end: Int, depth: Int) throws(WalkFailure) {
        var at = from
        while at < end {
            if byte(at) != DocumentTag.arrayElement {
                at = try unknownField(at, end, entryTag: DocumentTag.arrayElement)
                continue
            }
            at &+= 1
            let elementEnd = try length(&at, end)
            try value(at, elementEnd, depth: depth, inArray: true)
            at = elementEnd
        }
    }

    @_lifetime(self: copy self)
    private mutating func timestamp(_ from: Int, _ end: Int) throws(WalkFailure) {
        var at = from
        var seconds: UInt64 = 0
        var nanoseconds: UInt64 = 0
        // Seconds, then nanoseconds, each left out when zero.
        if at < end, byte(at) == 0x08 {
            at &+= 1
            seconds = try varint(&at, end)
            if seconds == 0 { isCanonical = false }
        }
        if at < end, byte(at) == 0x10 {
            at &+= 1
            nanoseconds = try varint(&at, end)
            if nanoseconds == 0 { isCanonical = false }
        }
        while at < end {
            // Out of order, repeated or unknown fields.
            isCanonical = false
            let start = at
            let tag = try tag(&at, end)
            switch tag {
            case 0x08: seconds = try varint(&at, end)
            case 0x10: nanoseconds = try varint(&at, end)
            default:
                if tag >> 3 <= 2 { throw WalkFailure(.wrongWireType, start) }
                at = try skip(tag, at, end)
            }
        }
        // The field is an int32: protobuf drops the upper bits.
        let fraction = Int32(truncatingIfNeeded: nanoseconds)
        if nanoseconds > 999_999_999 || fraction % 1000 != 0 { isCanonical = false }
        let time = TimestampValue(seconds: Int64(bitPattern: seconds), nanoseconds: fraction)
        if !time.isValid { throw WalkFailure(.timestampOutOfRange, from) }
        size &+= 8
    }

    @_lifetime(self: copy self)
    private mutating func geoPoint(_ from: Int, _ end: Int) throws(WalkFailure) {
        var at = from
        var point = GeoPointValue(latitude: 0, longitude: 0)
        var previous: UInt32 = 0
        while at < end {
            let start = at
            let tag = try tag(&at, end)
            let payload = at
            at = try skip(tag, payload, end)
            switch tag {
            case 0x09: point.latitude = Double(bitPattern: word(payload))
            case 0x11: point.longitude = Double(bitPattern: word(payload))
            default:
                if tag >> 3 <= 2 { throw WalkFailure(.wrongWireType, start) }
                isCanonical = false
            }
            // Latitude, then longitude, each left out when it is plus zero.
            if tag <= previous || (tag <= 0x11 && word(payload) == 0) { isCanonical = false }
            previous = tag
        }
        if !point.isValid { throw WalkFailure(.geoPointOutOfRange, from) }
        size &+= DocumentSize.geoPoint
    }

    @_lifetime(self: copy self)
    private mutating func reference(_ from: Int, _ end: Int) throws(WalkFailure) {
        do {
            let name = try ResourceNameView(span(from, end), rules: rules)
            if !name.isDocument { throw NameProblem.notADocument }
            size &+= DocumentSize.name(name)
        } catch {
            throw WalkFailure(.invalidReference, from)
        }
    }

    /// A map with a `__type__`: exactly the sentinel map of a vector, and nothing else.
    @inline(never)
    @_lifetime(self: copy self)
    mutating func vector(_ from: Int, _ end: Int) throws(WalkFailure) {
        var at = from
        var type: (from: Int, end: Int)?
        var elements: (from: Int, end: Int)?
        var order = 0
        while at < end {
            if byte(at) != DocumentTag.mapEntry {
                at = try unknownField(at, end, entryTag: DocumentTag.mapEntry)
                continue
            }
            at &+= 1
            let entryEnd = try length(&at, end)
            let entry = try entry(at, entryEnd)
            at = entryEnd
            let key = span(entry.key, entry.keyEnd)
            if key.equalsUTF8("__type__") {
                if order != 0 { isCanonical = false }
                type = (entry.value, entry.valueEnd)
            } else if key.equalsUTF8("value") {
                if order != 1 { isCanonical = false }
                elements = (entry.value, entry.valueEnd)
            } else {
                throw WalkFailure(.invalidVector, entry.key)
            }
            order += 1
        }
        guard let type, let elements else { throw WalkFailure(.invalidVector, from) }
        let name = try single(ValueTag.string, type.from, type.end)
        guard span(name.from, name.end).equalsUTF8("__vector__") else { throw WalkFailure(.invalidVector, name.from) }
        let array = try single(ValueTag.array, elements.from, elements.end)
        try vectorElements(array.from, array.end)
    }

    /// A map with the key of a sentinel map: that entry and nothing else.
    @inline(never)
    @_lifetime(self: copy self)
    mutating func sentinel(_ kind: SentinelKind, _ from: Int, _ end: Int, depth: Int) throws(WalkFailure) {
        var at = from
        var isFirst = true
        while at < end {
            if byte(at) != DocumentTag.mapEntry {
                at = try unknownField(at, end, entryTag: DocumentTag.mapEntry)
                continue
            }
            at &+= 1
            let entryEnd = try length(&at, end)
            let entry = try entry(at, entryEnd)
            at = entryEnd
            guard isFirst, span(entry.key, entry.keyEnd).equalsUTF8(kind.key) else {
                throw WalkFailure(.invalidSentinel, entry.key)
            }
            isFirst = false
            size &+= entry.keyEnd &- entry.key &+ 1
            try value(entry.value, entry.valueEnd, depth: depth, inArray: false)
            guard let content = try? Value(wire: span(entry.value, entry.valueEnd)) else {
                throw WalkFailure(.invalidSentinel, entry.value)
            }
            if let problem = kind.problem(with: content) { throw WalkFailure(problem, entry.value) }
            if kind == .decimal128, case .string(let text) = content, SentinelKind.canonicalDecimal(text) != text {
                isCanonical = false
            }
        }
    }

    /// The elements of a vector: doubles only, at most `Limits.vectorDimension` of them.
    @_lifetime(self: copy self)
    private mutating func vectorElements(_ from: Int, _ end: Int) throws(WalkFailure) {
        var at = from
        var dimension = 0
        while at < end {
            if byte(at) != DocumentTag.arrayElement {
                at = try unknownField(at, end, entryTag: DocumentTag.arrayElement)
                continue
            }
            at &+= 1
            let elementEnd = try length(&at, end)
            let element = try single(ValueTag.double, at, elementEnd)
            let sizeBefore = size
            var payload = element.from
            _ = try self.payload(ValueTag.double, &payload, element.end, depth: 0, inArray: true)
            if rules == .request, Double(bitPattern: word(element.from)).isNaN {
                throw WalkFailure(.vectorWithNaN, element.from)
            }
            size = sizeBefore
            dimension += 1
            at = elementEnd
        }
        if dimension > Limits.vectorDimension { throw WalkFailure(.vectorTooLong, from) }
        // A vector counts its elements alone; the caller has counted a map.
        size &+= dimension &* 8 &- DocumentSize.mapOverhead
    }

    /// The payload of a value that must be of one type, without its length.
    @_lifetime(self: copy self)
    private mutating func single(
        _ wanted: UInt32, _ from: Int, _ end: Int
    ) throws(WalkFailure) -> (from: Int, end: Int) {
        var at = from
        var found: (from: Int, end: Int)?
        while at < end {
            let start = at
            let tag = try tag(&at, end)
            var payload = at
            at = try skip(tag, payload, end)
            switch ValueKind.classify(tag) {
            case .type:
                // An earlier type is overridden.
                if found != nil || tag != wanted { isCanonical = false }
                if tag & 7 == 2 { _ = try length(&payload, end) }
                found = tag == wanted ? (payload, at) : nil
            case .unknown: isCanonical = false
            case .wrongWireType, .pipeline: throw WalkFailure(.invalidVector, start)
            }
        }
        guard let found else { throw WalkFailure(.invalidVector, from) }
        return found
    }
}
