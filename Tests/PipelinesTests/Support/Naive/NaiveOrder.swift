// Equality and order of values, for the naive evaluator.

import DocumentModel

extension NaiveEvaluator {
    static func same(_ left: Value?, _ right: Value?) -> Bool {
        switch (left, right) {
        case (nil, nil): return true
        case (nil, _), (_, nil): return false
        case (.null?, .null?): return true
        case (.boolean(let left)?, .boolean(let right)?): return left == right
        case (.string(let left)?, .string(let right)?): return Array(left.utf8) == Array(right.utf8)
        case (.bytes(let left)?, .bytes(let right)?): return left == right
        case (.timestamp(let left)?, .timestamp(let right)?): return left == right
        case (.reference(let left)?, .reference(let right)?): return left == right
        case (.geoPoint(let left)?, .geoPoint(let right)?): return left == right
        case (.array(let left)?, .array(let right)?):
            return left.count == right.count && zip(left, right).allSatisfy { same($0, $1) }
        case (.map(let left)?, .map(let right)?):
            return left.entries.count == right.entries.count
                && zip(left.entries, right.entries).allSatisfy { $0.key == $1.key && same($0.value, $1.value) }
        case (let left?, let right?):
            if isNaN(left) || isNaN(right) { return isNaN(left) && isNaN(right) }
            return order(left, right) == 0
        }
    }

    /// -1, 0 or 1 for numbers that are not NaN; nil for other values.
    static func order(_ left: Value, _ right: Value) -> Int? {
        switch (left, right) {
        case (.integer(let left), .integer(let right)): return left < right ? -1 : left > right ? 1 : 0
        case (.double(let left), .double(let right)):
            return left.isNaN || right.isNaN ? nil : left < right ? -1 : left > right ? 1 : 0
        case (.integer(let integer), .double(let double)):
            if double.isNaN { return nil }
            if double >= 0x1p63 { return -1 }
            if double < -0x1p63 { return 1 }
            let whole = Int64(double.rounded(.down))
            return integer < whole ? -1 : integer > whole ? 1 : double > double.rounded(.down) ? -1 : 0
        case (.double, .integer): return order(right, left).map { -$0 }
        default: return nil
        }
    }

    static func isLess(_ left: Value?, _ right: Value?) -> Bool {
        switch (left, right) {
        case (.boolean(let left)?, .boolean(let right)?): return !left && right
        case (.string(let left)?, .string(let right)?): return left.utf8.lexicographicallyPrecedes(right.utf8)
        case (.bytes(let left)?, .bytes(let right)?): return left.lexicographicallyPrecedes(right)
        case (.timestamp(let left)?, .timestamp(let right)?):
            return (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
        case (.geoPoint(let left)?, .geoPoint(let right)?):
            return (left.latitude, left.longitude) < (right.latitude, right.longitude)
        case (.array(let lefts)?, .array(let rights)?): return total(.array(lefts), .array(rights)) < 0
        case (.map(let lefts)?, .map(let rights)?):
            return rank(.map(lefts)) == rank(.map(rights)) && total(.map(lefts), .map(rights)) < 0
        case (.reference(let left)?, .reference(let right)?): return total(.reference(left), .reference(right)) < 0
        case (let left?, let right?): return order(left, right) == -1
        default: return false
        }
    }

    /// -1, 0 or 1 in the order of all values (docs/values.md).
    static func total(_ left: Value, _ right: Value) -> Int {
        if same(left, right) { return 0 }
        if rank(left) != rank(right) { return rank(left) < rank(right) ? -1 : 1 }
        switch (left, right) {
        case (.array(let lefts), .array(let rights)):
            return zip(lefts, rights).map(total).first { $0 != 0 } ?? (lefts.count < rights.count ? -1 : 1)
        case (.reference(let left), .reference(let right)):
            let (lefts, rights) = (left.split(separator: "/"), right.split(separator: "/"))
            for (left, right) in zip(lefts, rights) where left != right {
                return left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1
            }
            return lefts.count < rights.count ? -1 : 1
        case (.map(let lefts), .map(let rights)):
            if let left = vector(.map(lefts)), let right = vector(.map(rights)) {
                if left.count != right.count { return left.count < right.count ? -1 : 1 }
                return zip(left, right).map { total(.double($0), .double($1)) }.first { $0 != 0 } ?? 0
            }
            for (left, right) in zip(lefts.entries, rights.entries) {
                let keys = total(.string(left.key), .string(right.key))
                let order = keys != 0 ? keys : total(left.value, right.value)
                if order != 0 { return order }
            }
            return lefts.entries.count < rights.entries.count ? -1 : 1
        // NaN comes before all numbers.
        default: return isNaN(left) || isLess(left, right) ? -1 : 1
        }
    }

    static func rank(_ value: Value) -> Int {
        switch value {
        case .null: 0
        case .boolean: 1
        case .integer, .double: 2
        case .timestamp: 3
        case .string: 4
        case .bytes: 5
        case .reference: 6
        case .geoPoint: 7
        case .array: 8
        case .map: vector(value) == nil ? 10 : 9
        }
    }

    /// The elements of a vector; nil for any other value.
    static func vector(_ value: Value) -> [Double]? {
        guard case .map(let map) = value, map["__type__"] == "__vector__", case .array(let elements)? = map["value"]
        else { return nil }
        return elements.compactMap { if case .double(let number) = $0 { number } else { nil } }
    }
}
