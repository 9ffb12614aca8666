/// The kinds of sentinel map: maps with one reserved key, with which Firestore represents BSON types.
///
///     {__min__: null}                        {__max__: null}
///     {__int__: 42}                          {__decimal128__: "123.45"}
///     {__oid__: "507f191e810c19729de860ea"}  {__binary__: bytes, the first one is the subtype}
///     {__regex__: {pattern, options}}        {__request_timestamp__: {seconds, increment}}
///
/// No other map may have such a key, so the key determines the kind. A 32-bit integer and a decimal are numbers; the
/// others are separate classes of the value order. Decimals are ordered by the nearest double.
package enum SentinelKind: Sendable, CaseIterable {
    case minKey, maxKey, int32, decimal128, objectID, binary, regex, timestamp

    /// The one key of the map.
    var key: StaticString {
        switch self {
        case .minKey: "__min__"
        case .maxKey: "__max__"
        case .int32: "__int__"
        case .decimal128: "__decimal128__"
        case .objectID: "__oid__"
        case .binary: "__binary__"
        case .regex: "__regex__"
        case .timestamp: "__request_timestamp__"
        }
    }

    /// The kind that a field name stands for, if any.
    package init?(key: RawSpan) {
        for kind in Self.allCases where key.equalsUTF8(kind.key) {
            self = kind
            return
        }
        return nil
    }

    var typeClass: TypeClass {
        switch self {
        case .minKey: .minKey
        case .maxKey: .maxKey
        case .int32, .decimal128: .number
        case .objectID: .objectID
        case .binary: .binary
        case .regex: .regex
        case .timestamp: .bsonTimestamp
        }
    }
}

/// The canonical bytes of sentinel maps.
package enum SentinelBytes {
    /// The kind of a canonical map by its entries; nil for an ordinary map.
    package static func kind(mapEntries: RawSpan) -> SentinelKind? {
        // 0a length 0a length "__": one look at the first key settles ordinary maps.
        var offset = 1
        while offset < min(mapEntries.byteCount, 5), mapEntries[byteAt: offset] >= 0x80 { offset += 1 }
        guard mapEntries.byteCount > offset + 4, mapEntries[byteAt: offset + 3] == UInt8(ascii: "_"),
            mapEntries[byteAt: offset + 4] == UInt8(ascii: "_")
        else { return nil }
        var entries = MapEntries(mapEntries)
        guard let entry = entries.next() else { return nil }
        return SentinelKind(key: entry.key)
    }

    /// What the one key holds.
    @_lifetime(copy mapEntries)
    package static func content(mapEntries: RawSpan) -> RawSpan {
        var entries = MapEntries(mapEntries)
        guard let entry = entries.next() else { return mapEntries.extracting(0..<0) }
        return entry.value
    }

    /// The number that a sentinel map stands for; nil if it is none.
    static func number(mapEntries: RawSpan) -> Number? {
        guard let value = WireValue(content(mapEntries: mapEntries)) else { return nil }
        switch kind(mapEntries: mapEntries) {
        case .int32: return value.integer.map(Number.integer)
        case .decimal128: return Double(String(repairingUTF8: value.payload)).map(Number.double)
        default: return nil
        }
    }

    /// Two members of the map that the one key holds, as they are ordered: pattern and options of a regex.
    @_lifetime(copy mapEntries)
    static func member(_ name: StaticString, mapEntries: RawSpan) -> RawSpan {
        if let map = WireValue(content(mapEntries: mapEntries)), map.tag == ValueTag.map {
            var entries = MapEntries(map.payload)
            while let entry = entries.next() {
                if entry.key.equalsUTF8(name) { return entry.value }
            }
        }
        return mapEntries.extracting(0..<0)
    }

    /// A BSON timestamp as one number: seconds, then increment.
    static func timestamp(mapEntries: RawSpan) -> UInt64 {
        let seconds = WireValue(member("seconds", mapEntries: mapEntries))?.bits ?? 0
        let increment = WireValue(member("increment", mapEntries: mapEntries))?.bits ?? 0
        return seconds << 32 | increment & 0xffff_ffff
    }

    /// Pattern or options of a regex.
    @_lifetime(copy mapEntries)
    static func text(_ name: StaticString, mapEntries: RawSpan) -> RawSpan {
        guard let value = WireValue(member(name, mapEntries: mapEntries)) else { return mapEntries.extracting(0..<0) }
        return value.payload
    }
}

extension SentinelKind {
    /// Checks what the key holds.
    /// - Returns: the broken rule, or nil.
    func problem(with content: Value) -> InvalidDocument.Reason? {
        switch (self, content) {
        case (.minKey, .null), (.maxKey, .null): nil
        case (.int32, .integer(let number)): Int32(exactly: number) == nil ? .invalidSentinel : nil
        case (.decimal128, .string(let text)): Self.canonicalDecimal(text) == nil ? .invalidSentinel : nil
        case (.objectID, .string(let text)):
            text.utf8.count == 24 && text.utf8.allSatisfy(Self.isHexadecimal) ? nil : .invalidSentinel
        case (.binary, .bytes(let bytes)): bytes.isEmpty ? .invalidSentinel : nil
        case (.regex, .map(let map)):
            if case .string? = map["pattern"], case .string(let options)? = map["options"], map.entries.count == 2 {
                options.utf8.allSatisfy("imsux".utf8.contains) ? nil : .invalidRegexOption
            } else {
                .invalidSentinel
            }
        case (.timestamp, .map(let map)):
            if case .integer(let seconds)? = map["seconds"], case .integer(let increment)? = map["increment"],
                map.entries.count == 2, UInt32(exactly: seconds) != nil, UInt32(exactly: increment) != nil
            {
                nil
            } else {
                .invalidSentinel
            }
        default: .invalidSentinel
        }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    /// The spelling in which a decimal is kept, or nil when the text is none: digits with sign, point and exponent as
    /// they are; infinities and not-a-number always alike.
    static func canonicalDecimal(_ text: String) -> String? {
        switch text.lowercased() {
        case "nan", "+nan", "-nan": return "NaN"
        case "inf", "+inf", "infinity", "+infinity": return "Infinity"
        case "-inf", "-infinity": return "-Infinity"
        default: break
        }
        var rest = text.utf8[...]
        func skipSign() {
            if let first = rest.first, first == UInt8(ascii: "-") || first == UInt8(ascii: "+") { rest.removeFirst() }
        }
        func skipDigits() -> Int {
            let digits = rest.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }.count
            rest.removeFirst(digits)
            return digits
        }
        skipSign()
        var digits = skipDigits()
        if rest.first == UInt8(ascii: ".") {
            rest.removeFirst()
            digits += skipDigits()
        }
        if digits == 0 { return nil }
        if let first = rest.first, first == UInt8(ascii: "e") || first == UInt8(ascii: "E") {
            rest.removeFirst()
            skipSign()
            if skipDigits() == 0 { return nil }
        }
        return rest.isEmpty && text.utf8.count <= 200 && Double(text) != nil ? text : nil
    }
}
