// A Firestore value as a Swift value tree, for those who need one.

/// One value of any type.
///
/// Requests, stored documents and query results never become trees: they stay wire bytes. This is for transforms, tools
/// and tests. `==` compares what is stored (3 and 3.0 differ, NaN equals NaN, 0.0 and -0.0 differ, strings by bytes);
/// Firestore's own equality, in which 3 = 3.0, is ``ValueOrder``'s.
package indirect enum Value: Sendable {
    case null
    case boolean(Bool)
    case integer(Int64)
    case double(Double)
    case timestamp(TimestampValue)
    case string(String)
    case bytes([UInt8])
    /// A full document name: `projects/…/databases/…/documents/…`.
    case reference(String)
    case geoPoint(GeoPointValue)
    case array([Value])
    /// A map; a vector is the map `{__type__: "__vector__", value: [doubles]}`.
    case map(MapValue)
}

extension Value: Equatable {
    package static func == (left: Value, right: Value) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.boolean(let left), .boolean(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.double(let left), .double(let right)):
            left.bitPattern == right.bitPattern || (left.isNaN && right.isNaN)
        case (.timestamp(let left), .timestamp(let right)): left == right
        case (.string(let left), .string(let right)): left.hasSameUTF8(as: right)
        case (.bytes(let left), .bytes(let right)): left == right
        case (.reference(let left), .reference(let right)): left.hasSameUTF8(as: right)
        case (.geoPoint(let left), .geoPoint(let right)):
            left.latitude.bitPattern == right.latitude.bitPattern
                && left.longitude.bitPattern == right.longitude.bitPattern
        case (.array(let left), .array(let right)): left == right
        case (.map(let left), .map(let right)): left == right
        default: false
        }
    }
}

// MARK: Vectors

extension Value {
    /// The key and text that mark a map as a vector, and the key of its elements.
    package static let vectorTypeKey = "__type__"
    package static let vectorTypeName = "__vector__"
    package static let vectorElementsKey = "value"

    /// The sentinel map of a vector.
    package static func vector(_ elements: [Double]) -> Value {
        .map([
            vectorTypeKey: .string(vectorTypeName),
            vectorElementsKey: .array(elements.map { .double($0) }),
        ])
    }

    /// The elements, if this is the sentinel map of a vector.
    package var vectorElements: [Double]? {
        guard case .map(let map) = self, map.count == 2,
            case .string(Value.vectorTypeName)? = map[Value.vectorTypeKey],
            case .array(let values)? = map[Value.vectorElementsKey]
        else { return nil }
        var elements: [Double] = []
        elements.reserveCapacity(values.count)
        for value in values {
            guard case .double(let element) = value else { return nil }
            elements.append(element)
        }
        return elements
    }
}

// MARK: Literals, for tests and tools

extension Value: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByStringLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    package init(nilLiteral: ()) { self = .null }
    package init(booleanLiteral value: Bool) { self = .boolean(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(floatLiteral value: Double) { self = .double(value) }
    package init(stringLiteral value: String) { self = .string(value) }
    package init(arrayLiteral elements: Value...) { self = .array(elements) }
    package init(dictionaryLiteral elements: (String, Value)...) {
        self = .map(MapValue(elements.map { (key: $0.0, value: $0.1) }))
    }
}
