import Basics

/// How one value stands to another.
@usableFromInline package enum Ordering: Int, Sendable {
    case less = -1
    case equal = 0
    case greater = 1

    /// From the sign of a `memcmp`-like result.
    @inlinable
    package init(sign: Int) {
        self = sign < 0 ? .less : sign > 0 ? .greater : .equal
    }

    /// The ordering of the operands exchanged; turns ascending into descending.
    @inlinable
    package var reversed: Ordering {
        switch self {
        case .less: .greater
        case .equal: .equal
        case .greater: .less
        }
    }
}

/// The total order and the equality of values, computed on their wire bytes.
///
///     null < min < boolean < number < timestamp < BSON timestamp < string < bytes < binary < reference < object id
///          < geo point < regex < array < vector < map < max
///
/// Within a class: numbers by exact value, NaN first; strings by UTF-8 bytes; references by project, database and ids;
/// arrays by elements and maps by keys and values, a prefix first; vectors by dimension, then by elements.
package enum ValueOrder {
    /// Order of two canonical `Value` messages.
    ///
    /// For validated values. Others never trap; bytes that are not a value come before all values.
    package static func compare(wireA: RawSpan, wireB: RawSpan) -> Ordering {
        Ordering(sign: compare(wireA, wireB, depth: 0))
    }

    /// Order of two value trees.
    package static func compare(_ left: Value, _ right: Value) -> Ordering {
        var leftWriter = ByteBuffer()
        var rightWriter = ByteBuffer()
        left.encode(into: &leftWriter)
        right.encode(into: &rightWriter)
        return compare(wireA: leftWriter.bytes, wireB: rightWriter.bytes)
    }

    /// Firestore's equality of two canonical `Value` messages: 3 = 3.0, 0.0 = -0.0, NaN = NaN, deep.
    package static func equal(wireA: RawSpan, wireB: RawSpan) -> Bool {
        wireA.equalsBytes(wireB) || compare(wireA, wireB, depth: 0) == 0
    }

    /// Firestore's equality of two value trees.
    package static func equal(_ left: Value, _ right: Value) -> Bool {
        compare(left, right) == .equal
    }

    private static func compare(_ left: RawSpan, _ right: RawSpan, depth: Int) -> Int {
        guard let left = WireValue(left) else { return WireValue(right) == nil ? 0 : -1 }
        guard let right = WireValue(right) else { return 1 }
        return compare(left, right, depth: depth)
    }

    private static func compare(
        _ left: borrowing WireValue, _ right: borrowing WireValue, depth: Int
    ) -> Int {
        if left.typeClass != right.typeClass { return left.typeClass < right.typeClass ? -1 : 1 }
        switch left.typeClass {
        case .null, .minKey, .maxKey: return 0
        case .boolean: return (left.bits == 0 ? 0 : 1) - (right.bits == 0 ? 0 : 1)
        case .number:
            guard let leftNumber = left.number, let rightNumber = right.number else { return 0 }
            return Number.compare(leftNumber, rightNumber)
        case .timestamp:
            guard let leftTime = left.timestamp, let rightTime = right.timestamp else { return 0 }
            return leftTime < rightTime ? -1 : leftTime > rightTime ? 1 : 0
        case .string, .bytes: return left.payload.compareBytes(right.payload)
        case .reference: return ResourcePath.compareNames(left.payload, right.payload)
        case .geoPoint:
            guard let leftPoint = left.geoPoint, let rightPoint = right.geoPoint else { return 0 }
            let latitude = Number.compare(leftPoint.latitude, rightPoint.latitude)
            return latitude != 0 ? latitude : Number.compare(leftPoint.longitude, rightPoint.longitude)
        case .array:
            return compareElements(ArrayElements(left.payload), ArrayElements(right.payload), depth: depth)
        case .vector:
            let dimension =
                VectorBytes.dimension(mapEntries: left.payload) - VectorBytes.dimension(mapEntries: right.payload)
            if dimension != 0 { return dimension }
            return compareElements(
                VectorBytes.elements(mapEntries: left.payload), VectorBytes.elements(mapEntries: right.payload),
                depth: depth)
        case .bsonTimestamp:
            let leftTime = SentinelBytes.timestamp(mapEntries: left.payload)
            let rightTime = SentinelBytes.timestamp(mapEntries: right.payload)
            return leftTime < rightTime ? -1 : leftTime > rightTime ? 1 : 0
        case .binary, .objectID:
            guard let leftContent = WireValue(SentinelBytes.content(mapEntries: left.payload)),
                let rightContent = WireValue(SentinelBytes.content(mapEntries: right.payload))
            else { return 0 }
            return leftContent.payload.compareBytes(rightContent.payload)
        case .regex:
            let patterns = SentinelBytes.text("pattern", mapEntries: left.payload)
                .compareBytes(SentinelBytes.text("pattern", mapEntries: right.payload))
            if patterns != 0 { return patterns }
            return SentinelBytes.text("options", mapEntries: left.payload)
                .compareBytes(SentinelBytes.text("options", mapEntries: right.payload))
        case .map: return compareMaps(left.payload, right.payload, depth: depth)
        }
    }

    private static func compareElements(
        _ left: consuming ArrayElements, _ right: consuming ArrayElements, depth: Int
    ) -> Int {
        // Validated values do not nest deeper; the bound only keeps hostile bytes from the stack.
        if depth > Limits.nestingDepth { return 0 }
        while true {
            guard let leftElement = left.next() else { return right.next() == nil ? 0 : -1 }
            guard let rightElement = right.next() else { return 1 }
            let order = compare(leftElement, rightElement, depth: depth + 1)
            if order != 0 { return order }
        }
    }

    private static func compareMaps(_ left: RawSpan, _ right: RawSpan, depth: Int) -> Int {
        if depth > Limits.nestingDepth { return 0 }
        var leftEntries = MapEntries(left)
        var rightEntries = MapEntries(right)
        while true {
            guard let leftEntry = leftEntries.next() else { return rightEntries.next() == nil ? 0 : -1 }
            guard let rightEntry = rightEntries.next() else { return 1 }
            let keys = leftEntry.key.compareBytes(rightEntry.key)
            if keys != 0 { return keys }
            let values = compare(leftEntry.value, rightEntry.value, depth: depth + 1)
            if values != 0 { return values }
        }
    }
}
