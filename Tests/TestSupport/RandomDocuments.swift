// Random documents of every type, leaning towards the edges: empty and long strings, the ends of number ranges, text
// whose UTF-8, UTF-16 and canonical-equivalence orders differ, deep nesting, vectors, numeric ids.

package import DocumentModel

/// An endless supply of valid values, fields and names; the same seed gives the same ones.
package struct RandomDocuments {
    package var generator: SeededGenerator
    /// The database that names and references lie in.
    package var database = "projects/p/databases/(default)"

    package init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
    }

    // MARK: Values

    package static let integers: [Int64] = [
        0, 1, -1, 2, 3, 127, 128, 255, 256, 1 << 53 - 1, 1 << 53, 1 << 53 + 1, -(1 << 53) - 1, -(1 << 53), .max,
        .max - 1,
        .max - 1023, .max - 1024, .min, .min + 1, .min + 1024, 1 << 62, -(1 << 62) - 1,
    ]
    package static let doubles: [Double] = [
        0, -0.0, 1, -1, 3, 0.5, -0.5, 1.5, 0x1p53, 0x1p53 + 2, -0x1p53, 0x1p63, -0x1p63, 0x1p64, -0x1p64, .infinity,
        -.infinity,
        .nan, .greatestFiniteMagnitude, -.greatestFiniteMagnitude, .leastNonzeroMagnitude, -.leastNonzeroMagnitude,
        (0x1p63).nextDown, (-0x1p63).nextUp, 0.1, 1e300,
    ]
    package static let texts: [String] = [
        "", "a", "aa", "ab", "b", "A", "\u{0}", "\u{0}\u{0}", "\u{1}", "\u{2}", "a\u{0}", "a\u{0}b", "a\u{1}b",
        "a\u{2}", "é",
        "e\u{301}", "\u{7f}", "\u{80}", "\u{ffff}", "\u{10000}", "😀", "日本", "eight ch", "more than eight é",
        "exactly 16 bytes",
    ]

    package mutating func integer() -> Int64 {
        switch generator.below(3) {
        case 0: generator.pick(Self.integers)
        case 1: Int64.random(in: -1000...1000, using: &generator)
        default: Int64.random(in: .min ... .max, using: &generator) >> Int64(generator.below(64))
        }
    }

    package mutating func double() -> Double {
        switch generator.below(4) {
        case 0: return generator.pick(Self.doubles)
        case 1: return Double(integer())
        case 2: return Double(Int64.random(in: -1000...1000, using: &generator)) / 8
        default:
            let any = Double(bitPattern: generator.next())
            return any.isNaN ? .nan : any
        }
    }

    package mutating func text(charactersMax: Int = 24) -> String {
        if generator.oneIn(2) { return generator.pick(Self.texts) }
        let alphabet: [Character] = ["a", "b", "c", "z", "0", "_", "-", " ", "`", ".", "\u{0}", "\u{1}", "é", "日", "😀"]
        return String((0..<generator.below(charactersMax + 1)).map { _ in generator.pick(alphabet) })
    }

    package mutating func byteArray(countMax: Int = 24) -> [UInt8] {
        (0..<generator.below(countMax + 1)).map { _ in
            generator.oneIn(3) ? generator.pick([0, 1, 2, 0xff]) : UInt8(truncatingIfNeeded: generator.next())
        }
    }

    /// A valid time in whole microseconds.
    package mutating func timestamp() -> TimestampValue {
        let edges: [Int64] = [0, 1, -1, 999_999, -999_999, 1_000_000, -1_000_000, 1_700_000_000_123_456]
        let earliest = Limits.earliestSecond * 1_000_000
        let latest = Limits.latestSecond * 1_000_000 + 999_999
        return TimestampValue(
            microseconds: generator.oneIn(2)
                ? generator.pick(edges + [earliest, latest]) : Int64.random(in: earliest...latest, using: &generator))
    }

    package mutating func geoPoint() -> GeoPointValue {
        let latitudes: [Double] = [0, -0.0, 90, -90, 47.5]
        let longitudes: [Double] = [0, -0.0, 180, -180, 8.25]
        return generator.oneIn(2)
            ? GeoPointValue(latitude: generator.pick(latitudes), longitude: generator.pick(longitudes))
            : GeoPointValue(
                latitude: Double.random(in: -90...90, using: &generator),
                longitude: Double.random(in: -180...180, using: &generator))
    }

    package mutating func vector() -> Value {
        .vector((0..<generator.below(5)).map { _ in double() })
    }

    /// A value of any type.
    ///
    /// - Parameter depth: levels of maps and arrays allowed below; 20 at most for stored values.
    package mutating func value(depth: Int = 3, inArray: Bool = false) -> Value {
        switch generator.below(depth > 0 ? 16 : 11) {
        case 0: return .null
        case 1: return .boolean(generator.oneIn(2))
        case 2, 3: return .integer(integer())
        case 4, 5: return .double(double())
        case 6: return .timestamp(timestamp())
        case 7: return .bytes(byteArray())
        case 8: return .reference(documentName())
        case 9: return .geoPoint(geoPoint())
        case 10: return .string(text())
        case 11: return depth >= 2 ? vector() : .string(text())
        case 12 where !inArray, 13 where !inArray:
            return .array((0..<generator.below(5)).map { _ in value(depth: depth - 1, inArray: true) })
        default: return .map(fields(depth: depth - 1))
        }
    }

    package mutating func fieldName() -> String {
        while true {
            let name =
                generator.oneIn(2) ? generator.pick(["a", "b", "c", "value", "é", "a-b", "`", "_", "____"]) : text()
            if !name.isEmpty, !isReserved(name) { return name }
        }
    }

    /// Fields of a document or map.
    package mutating func fields(depth: Int = 3, countMax: Int = 6) -> MapValue {
        MapValue((0..<generator.below(countMax + 1)).map { _ in (fieldName(), value(depth: depth)) })
    }

    /// A value with maps and arrays in turn, `levels` of them.
    package mutating func nested(levels: Int) -> Value {
        var result = Value.integer(integer())
        for level in 0..<levels { result = level % 2 == 0 ? .map([fieldName(): result]) : .array([result]) }
        return result
    }

    // MARK: Names

    package mutating func id() -> String {
        while true {
            let id: String
            switch generator.below(4) {
            case 0: id = "__id\(integer())__"
            case 1: id = generator.pick(["a", "b", "users", "a!", "a\u{0}", "é", "😀"])
            default: id = text().replacing("/", with: "-")
            }
            let isNumeric = id.hasPrefix("__id") && id.hasSuffix("__") && Int64(id.dropFirst(4).dropLast(2)) != nil
            if !id.isEmpty, id != ".", id != "..", isNumeric || !isReserved(id) { return id }
        }
    }

    /// A full document name.
    package mutating func documentName() -> String {
        let segments = (0..<2 * (1 + generator.below(3))).map { _ in id() }
        return "\(database)/documents/\(segments.joined(separator: "/"))"
    }

    private func isReserved(_ name: String) -> Bool {
        name.utf8.count > 4 && name.hasPrefix("__") && name.hasSuffix("__")
    }
}
