// Numbers as Firestore compares them: integers and doubles on one line, exactly.

/// An integer or a double.
///
/// Both stand on one number line by their exact values: 2^53 + 1 as an integer lies between the doubles 2^53 and
/// 2^53 + 2, where a conversion to double would call it equal to one. NaN equals itself and lies below everything;
/// minus zero equals zero.
package enum Number: Sendable {
    case integer(Int64)
    case double(Double)

    /// Order by exact value: negative, 0 or positive.
    package static func compare(_ left: Number, _ right: Number) -> Int {
        switch (left, right) {
        case (.integer(let left), .integer(let right)): left < right ? -1 : left > right ? 1 : 0
        case (.double(let left), .double(let right)): compare(left, right)
        case (.integer(let left), .double(let right)): compare(left, right)
        case (.double(let left), .integer(let right)): -compare(right, left)
        }
    }

    static func compare(_ left: Double, _ right: Double) -> Int {
        if left < right { return -1 }
        if left > right { return 1 }
        if left == right { return 0 }
        // At least one is NaN.
        return (left.isNaN ? 0 : 1) - (right.isNaN ? 0 : 1)
    }

    private static func compare(_ left: Int64, _ right: Double) -> Int {
        if right.isNaN { return 1 }
        if right >= 0x1p63 { return -1 }
        if right < -0x1p63 { return 1 }
        // In range now: cutting the fraction off is exact, and decides unless the integers are equal.
        let whole = Int64(right)
        if left != whole { return left < whole ? -1 : 1 }
        let fraction = right - Double(whole)
        return fraction > 0 ? -1 : fraction < 0 ? 1 : 0
    }
}
