package import Basics

/// The order-preserving key of a value, for indexes, sort keys and cursors.
///
///     | type      | key                                                                        |
///     | null      | 05                                                                         |
///     | boolean   | 0a 00 or 0a 01                                                             |
///     | NaN       | 0d                                                                         |
///     | number    | 0f, number                                                                 |
///     | timestamp | 14, microseconds as 8 bytes                                                |
///     | string    | 19, escaped text                                                           |
///     | bytes     | 1e, escaped bytes                                                          |
///     | reference | 25, escaped project, escaped database, then per id 3c and the escaped id,  |
///     |           | or 3a and 8 bytes for a numeric id; 02                                     |
///     | geo point | 2d, latitude and longitude as numbers                                      |
///     | array     | 32, the elements' keys; 02                                                 |
///     | vector    | 35, dimension as 2 bytes, then each element as NaN or number               |
///     | map       | 37, per entry 19, the escaped name and the value's key; 02                 |
///     | min, max  | 07; 3d                                                                     |
///     | BSON time | 16, seconds and increment as 4 bytes each                                  |
///     | binary    | 21, escaped subtype and bytes                                              |
///     | object id | 29, escaped text                                                           |
///     | regex     | 2f, escaped pattern, escaped options                                       |
package enum ValueKey {
    /// Leads the key of NaN, below all other numbers.
    static let notANumber: UInt8 = 13
    static let numericSegment: UInt8 = 58
    static let segment: UInt8 = 60

    /// Appends the key of a canonical `Value` message: keys compare as bytes like the values do by ``ValueOrder``, and
    /// equal values (3 and 3.0) have equal keys.
    ///
    /// For validated values; of others the key is some bytes, or none. With `descending` every bit is inverted, which
    /// turns the order around.
    package static func append(wireValue: RawSpan, descending: Bool = false, into writer: inout ByteBuffer) {
        let start = writer.count
        append(wireValue, into: &writer, depth: 0, end: .max)
        if descending { writer.invertBits(from: start) }
    }

    /// Appends the first bytes of a value's key: all of it if it has less than `bytesMax`, else exactly so many. The
    /// work is bounded by `bytesMax`, however long the value is.
    package static func appendPrefix(
        wireValue: RawSpan, bytesMax: Int, descending: Bool = false, into writer: inout ByteBuffer
    ) {
        let start = writer.count
        append(wireValue, into: &writer, depth: 0, end: start + bytesMax)
        if writer.count > start + bytesMax { writer.truncate(to: start + bytesMax) }
        if descending { writer.invertBits(from: start) }
    }

    /// Appends the key of a full resource name, as that of a reference to it.
    package static func append(resourceName: RawSpan, descending: Bool = false, into writer: inout ByteBuffer) {
        let start = writer.count
        writer.append(byte: TypeClass.reference.rawValue)
        append(name: resourceName, into: &writer)
        if descending { writer.invertBits(from: start) }
    }

    /// The key of a value tree, ascending.
    package static func key(of value: Value) -> [UInt8] {
        var wire = ByteBuffer()
        value.encode(into: &wire)
        var key = ByteBuffer()
        append(wireValue: wire.bytes, into: &key)
        return key.copyBytes()
    }

    /// - Parameter end: the writer's count from which on nothing more is needed.
    private static func append(_ bytes: RawSpan, into writer: inout ByteBuffer, depth: Int, end: Int) {
        // Validated values do not nest deeper; the bound only keeps hostile bytes from the stack.
        guard depth <= Limits.nestingDepth + 1, let value = WireValue(bytes) else { return }
        if value.isNaN { return writer.append(byte: notANumber) }
        writer.append(byte: value.typeClass.rawValue)
        switch value.typeClass {
        case .null, .minKey, .maxKey: break
        case .bsonTimestamp: writer.append(bigEndian: SentinelBytes.timestamp(mapEntries: value.payload))
        case .binary, .objectID:
            if let content = WireValue(SentinelBytes.content(mapEntries: value.payload)) {
                KeyEncoding.append(escaped: content.payload, into: &writer)
            }
        case .regex:
            KeyEncoding.append(escaped: SentinelBytes.text("pattern", mapEntries: value.payload), into: &writer)
            KeyEncoding.append(escaped: SentinelBytes.text("options", mapEntries: value.payload), into: &writer)
        case .boolean: writer.append(byte: value.bits == 0 ? 0 : 1)
        case .number:
            if let number = value.number { KeyEncoding.append(number: number, into: &writer) }
        case .timestamp: KeyEncoding.append(integer: value.timestamp?.microseconds ?? 0, into: &writer)
        case .string, .bytes:
            // Each byte gives one at least.
            let needed = max(0, min(value.payload.byteCount, end - writer.count))
            KeyEncoding.append(escaped: value.payload.extracting(first: needed), into: &writer)
        case .reference: append(name: value.payload, into: &writer)
        case .geoPoint:
            let point = value.geoPoint ?? GeoPointValue(latitude: 0, longitude: 0)
            KeyEncoding.append(number: .double(point.latitude), into: &writer)
            KeyEncoding.append(number: .double(point.longitude), into: &writer)
        case .array:
            var elements = ArrayElements(value.payload)
            while writer.count < end, let element = elements.next() {
                append(element, into: &writer, depth: depth + 1, end: end)
            }
            writer.append(byte: KeyEncoding.terminator)
        case .vector:
            let dimension = VectorBytes.dimension(mapEntries: value.payload)
            writer.append(bigEndian: UInt16(clamping: dimension))
            var elements = VectorBytes.elements(mapEntries: value.payload)
            while writer.count < end, let element = elements.next() {
                append(element, into: &writer, depth: depth + 1, end: end)
            }
        case .map:
            var entries = MapEntries(value.payload)
            while writer.count < end, let entry = entries.next() {
                writer.append(byte: TypeClass.string.rawValue)
                KeyEncoding.append(escaped: entry.key, into: &writer)
                append(entry.value, into: &writer, depth: depth + 1, end: end)
            }
            writer.append(byte: KeyEncoding.terminator)
        }
    }

    private static func append(name: RawSpan, into writer: inout ByteBuffer) {
        if let parts = DatabaseName.parts(of: name) {
            KeyEncoding.append(escaped: name.extracting(parts.project), into: &writer)
            KeyEncoding.append(escaped: name.extracting(parts.database), into: &writer)
            let path = min(parts.database.upperBound + ResourceNameView.documentsSuffixBytes + 1, name.byteCount)
            append(path: name.extracting(path..<name.byteCount), into: &writer)
        }
        writer.append(byte: KeyEncoding.terminator)
    }

    /// Appends the ids of a relative path, each with its label; numeric ids sort before all others.
    package static func append(path: RawSpan, into writer: inout ByteBuffer) {
        var segments = PathSegments(path)
        while let id = segments.next() {
            if let number = ResourceID.numericID(id) {
                writer.append(byte: numericSegment)
                KeyEncoding.append(integer: number, into: &writer)
            } else {
                writer.append(byte: segment)
                KeyEncoding.append(escaped: id, into: &writer)
            }
        }
    }
}
