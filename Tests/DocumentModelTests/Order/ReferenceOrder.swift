// The order of values once more, on trees, written from the semantics page alone: the referee of the fast ones.

import DocumentModel

enum ReferenceOrder {
    static func rank(_ value: Value) -> Int {
        switch value {
        case .null: 1
        case .boolean: 2
        case .integer, .double: 3
        case .timestamp: 4
        case .string: 5
        case .bytes: 6
        case .reference: 7
        case .geoPoint: 8
        case .array: 9
        case .map: value.vectorElements == nil ? 11 : 10
        }
    }

    static func compare(_ left: Value, _ right: Value) -> Int {
        if rank(left) != rank(right) { return rank(left) - rank(right) }
        if let left = left.vectorElements, let right = right.vectorElements {
            if left.count != right.count { return left.count - right.count }
            return sequence(left, right, number)
        }
        switch (left, right) {
        case (.boolean(let left), .boolean(let right)): return (left ? 1 : 0) - (right ? 1 : 0)
        case (.integer(let left), .integer(let right)): return left < right ? -1 : left == right ? 0 : 1
        case (.double(let left), .double(let right)): return number(left, right)
        case (.integer(let left), .double(let right)): return mixed(left, right)
        case (.double(let left), .integer(let right)): return -mixed(right, left)
        case (.timestamp(let left), .timestamp(let right)):
            return left.microseconds < right.microseconds ? -1 : left.microseconds == right.microseconds ? 0 : 1
        case (.string(let left), .string(let right)): return bytes(Array(left.utf8), Array(right.utf8))
        case (.bytes(let left), .bytes(let right)): return bytes(left, right)
        case (.reference(let left), .reference(let right)):
            return sequence(left.split(separator: "/"), right.split(separator: "/"), segment)
        case (.geoPoint(let left), .geoPoint(let right)):
            let latitude = number(left.latitude, right.latitude)
            return latitude == 0 ? number(left.longitude, right.longitude) : latitude
        case (.array(let left), .array(let right)): return sequence(left, right, compare)
        case (.map(let left), .map(let right)):
            return sequence(left.entries, right.entries) { left, right in
                let key = bytes(Array(left.key.utf8), Array(right.key.utf8))
                return key == 0 ? compare(left.value, right.value) : key
            }
        default: return 0
        }
    }

    private static func sequence<Element>(
        _ left: [Element], _ right: [Element], _ order: (Element, Element) -> Int
    ) -> Int {
        for (left, right) in zip(left, right) {
            let result = order(left, right)
            if result != 0 { return result }
        }
        return left.count - right.count
    }

    private static func bytes(_ left: [UInt8], _ right: [UInt8]) -> Int {
        sequence(left, right) { Int($0) - Int($1) }
    }

    private static func number(_ left: Double, _ right: Double) -> Int {
        if left.isNaN || right.isNaN { return (left.isNaN ? 0 : 1) - (right.isNaN ? 0 : 1) }
        return left < right ? -1 : left == right ? 0 : 1
    }

    /// The standard library compares integers with floating point exactly.
    private static func mixed(_ left: Int64, _ right: Double) -> Int {
        if right.isNaN { return 1 }
        if right == .infinity { return -1 }
        if right == -.infinity { return 1 }
        if let exact = Int64(exactly: right.rounded(.down)) {
            if left != exact { return left < exact ? -1 : 1 }
            return right == right.rounded(.down) ? 0 : -1
        }
        return right > 0 ? -1 : 1
    }

    private static func segment(_ left: Substring, _ right: Substring) -> Int {
        func numeric(_ id: Substring) -> Int64? {
            id.hasPrefix("__id") && id.hasSuffix("__") ? Int64(id.dropFirst(4).dropLast(2)) : nil
        }
        switch (numeric(left), numeric(right)) {
        case (let left?, let right?): return left < right ? -1 : left == right ? 0 : 1
        case (nil, nil): return bytes(Array(left.utf8), Array(right.utf8))
        case (_?, nil): return -1
        case (nil, _?): return 1
        }
    }
}
