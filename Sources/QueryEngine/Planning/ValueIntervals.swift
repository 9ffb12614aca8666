// What a condition on a field means in its index: intervals of keys.
//
//     n > 5            (5, end of numbers)                 n == "x"      ["x", "x"]
//     n != 5           (null, 5) (5, end)                  n in [1, 2]   [1, 1] [2, 2]
//     t array-contains "x"    ["x", "x"] among the elements of t
//
// Keys are order-preserving (`ValueKey`) and cut where they are long (`IndexKey`), so an interval may hold entries
// that do not meet the condition, and then reports it; it never lacks one that does.

internal import Basics
import DocumentModel
internal import Indexing
internal import StoreFormat

/// A half-open range of bytes: of what follows an index's prefix in the keys of its entries.
package struct ByteInterval: Sendable, Equatable {
    /// The first bytes in the range.
    package var lower: [UInt8]
    /// The first bytes after the range.
    package var upper: [UInt8]

    package var isEmpty: Bool { lower.byteSpan.compareBytes(upper.byteSpan) >= 0 }

    /// Everything: no value's key begins with the byte ff.
    static let all = ByteInterval(lower: [], upper: [KeyLayout.afterEverything])

    /// The entries of one value.
    init(value: IndexedKey) {
        lower = value.bytes
        upper = value.end
    }

    init(lower: [UInt8], upper: [UInt8]) {
        self.lower = lower
        self.upper = upper
    }

    /// The interval of the keys with every bit inverted. It contains the key at the upper end too.
    ///
    /// An inverted key can have the byte ff after the bytes of the lower end: that of the empty string has. Therefore
    /// the upper end is the first key after all keys that begin with the inverted lower end.
    var inverted: ByteInterval {
        var end = lower.map { ~$0 }
        while end.last == 0xff { end.removeLast() }
        if end.isEmpty { return ByteInterval(lower: upper.map { ~$0 }, upper: [KeyLayout.afterEverything]) }
        end[end.count - 1] += 1
        return ByteInterval(lower: upper.map { ~$0 }, upper: end)
    }

    func intersection(_ other: ByteInterval) -> ByteInterval? {
        let both = ByteInterval(
            lower: lower.byteSpan.compareBytes(other.lower.byteSpan) >= 0 ? lower : other.lower,
            upper: upper.byteSpan.compareBytes(other.upper.byteSpan) <= 0 ? upper : other.upper)
        return both.isEmpty ? nil : both
    }
}

/// A value in the form of index keys.
struct IndexedKey: Sendable, Equatable {
    package let bytes: [UInt8]
    /// Other values may have the same bytes.
    let isCut: Bool

    init(_ value: EncodedValue) {
        var writer = ByteBuffer(capacity: 64)
        IndexKey.append(value: value.span, into: &writer)
        bytes = writer.copyBytes()
        isCut = bytes.count == IndexKey.valueBytesMax
    }

    /// The first bytes after those of all entries with this value.
    var end: [UInt8] { bytes + [KeyLayout.afterEverything] }
}

/// The intervals in which the values lie that meet a condition: in order, disjoint.
package struct ValueIntervals: Sendable, Equatable {
    /// By their lower ends. None if no value meets the condition.
    package var intervals: [ByteInterval]
    /// Every value in the intervals meets the condition.
    var isExact = true
    /// The intervals are of array elements, not of values.
    var isOfElements = false

    static let all = ValueIntervals(intervals: [.all])

    func intersection(_ other: ValueIntervals) -> ValueIntervals {
        var both = ValueIntervals(intervals: [], isExact: isExact && other.isExact)
        for left in intervals {
            for right in other.intervals {
                if let shared = left.intersection(right) { both.intervals.append(shared) }
            }
        }
        return both
    }

    func union(_ other: ValueIntervals) -> ValueIntervals {
        var merged: [ByteInterval] = []
        let sorted = (intervals + other.intervals).sorted { $0.lower.byteSpan.compareBytes($1.lower.byteSpan) < 0 }
        for interval in sorted {
            if let last = merged.last, last.upper.byteSpan.compareBytes(interval.lower.byteSpan) >= 0 {
                if last.upper.byteSpan.compareBytes(interval.upper.byteSpan) < 0 {
                    merged[merged.count - 1].upper = interval.upper
                }
            } else {
                merged.append(interval)
            }
        }
        return ValueIntervals(intervals: merged, isExact: isExact && other.isExact)
    }

    /// Leaves out the values of the keys; one that is cut stays.
    fileprivate func without(_ keys: [IndexedKey]) -> ValueIntervals {
        var rest = self
        for key in keys {
            if key.isCut {
                rest.isExact = false
                continue
            }
            rest.intervals = rest.intervals.flatMap { interval in
                [
                    interval.intersection(ByteInterval(lower: [], upper: key.bytes)),
                    interval.intersection(ByteInterval(lower: key.end, upper: [KeyLayout.afterEverything])),
                ].compactMap { $0 }
            }
        }
        return rest
    }

    /// All values but null.
    private static let notNull = ValueIntervals(
        intervals: [ByteInterval(lower: [TypeClass.null.rawValue + 1], upper: [KeyLayout.afterEverything])])

    init(intervals: [ByteInterval], isExact: Bool = true, isOfElements: Bool = false) {
        self.intervals = intervals
        self.isExact = isExact
        self.isOfElements = isOfElements
    }

    /// The intervals of a condition.
    package init(_ test: FieldTest) {
        switch test.condition {
        case .equal, .isIn: self.init(points: test.points)
        case .containsAny:
            self.init(points: test.points)
            isOfElements = true
        case .isNull, .isNaN: self.init(points: test.points)
        case .never: self.init(intervals: [])
        case .isNotNull: self = .notNull
        case .isNotNaN: self = ValueIntervals.notNull.without([IndexedKey(EncodedValue(.double(.nan)))])
        case .notEqual, .notIn: self = ValueIntervals.notNull.without(test.points)
        case .less, .lessOrEqual, .greater, .greaterOrEqual:
            let key = IndexedKey(test.operand)
            // A range matches values of the operand's type class, whose keys begin with its label.
            let label = test.operandClass.rawValue
            let (start, end) = ([label], [label + 1])
            let interval =
                switch test.condition {
                case .less: ByteInterval(lower: start, upper: key.isCut ? key.end : key.bytes)
                case .lessOrEqual: ByteInterval(lower: start, upper: key.end)
                case .greater: ByteInterval(lower: key.isCut ? key.bytes : key.end, upper: end)
                default: ByteInterval(lower: key.bytes, upper: end)
                }
            self.init(intervals: interval.isEmpty ? [] : [interval], isExact: !key.isCut)
        }
    }

    private init(points: [IndexedKey]) {
        let none = ValueIntervals(intervals: [])
        self = points.reduce(none) { $0.union(ValueIntervals(intervals: [ByteInterval(value: $1)])) }
        isExact = !points.contains(where: \.isCut)
    }
}

extension FieldTest {
    /// The values that the condition names: those to be equal to, or those to differ from.
    var points: [IndexedKey] {
        switch condition {
        case .equal, .notEqual: [IndexedKey(operand)]
        case .isIn, .notIn, .containsAny: list.map { IndexedKey($0) }
        case .isNull: [IndexedKey(EncodedValue.null)]
        case .isNaN: [IndexedKey(EncodedValue(.double(.nan)))]
        default: []
        }
    }

    /// Whether the condition is met by documents with one of a few values.
    var isEquality: Bool {
        switch condition {
        case .equal, .isIn, .containsAny, .isNull, .isNaN: true
        default: false
        }
    }
}
