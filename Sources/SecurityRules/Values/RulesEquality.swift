// When two values are equal.

internal import Basics
internal import DocumentModel
internal import Expressions

/// The equalities of the rules language.
///
///     1 == 1.0                      true     ``Mode/compared``: numbers as doubles
///     [1] == [1.0], 1.0 in [1]      false    ``Mode/contained``: an integer is not a double
///     [1].toSet() == [1.0].toSet()  true     ``Mode/member``: by exact value, NaN equals NaN; also in `diff()`
enum RulesEquality {
    enum Mode: Sendable {
        case compared, contained, member
    }

    /// Levels of lists and maps that are compared; deeper ones count as different.
    private static let depthMax = 128

    static func equal(_ left: Operand, _ right: Operand, _ mode: Mode, depth: Int = 0) -> Bool {
        switch (left, right) {
        case (.null, .null): return true
        case (.boolean(let left), .boolean(let right)): return left == right
        case (.string(let left), .string(let right)): return left.hasSameUTF8(as: right)
        case (.bytes(let left), .bytes(let right)): return left == right
        case (.timestamp(let left), .timestamp(let right)): return left == right
        case (.geoPoint(let left), .geoPoint(let right)): return left == right
        case (.integer, .integer), (.integer, .double), (.double, .integer), (.double, .double):
            return areNumbersEqual(left, right, mode)
        default: break
        }
        if depth > depthMax { return false }
        // Numbers within lists and maps are compared more strictly than alone.
        let inner = mode == .compared ? .contained : mode
        if let left = left.elements, let right = right.elements {
            return left.count == right.count
                && zip(left, right).allSatisfy { equal($0, $1, inner, depth: depth + 1) }
        }
        if let left = left.entries, let right = right.entries {
            return left.count == right.count
                && zip(left.entries, right.entries).allSatisfy {
                    $0.key.hasSameUTF8(as: $1.key) && equal($0.value, $1.value, inner, depth: depth + 1)
                }
        }
        return areObjectsEqual(left, right)
    }

    private static func areNumbersEqual(_ left: Operand, _ right: Operand, _ mode: Mode) -> Bool {
        guard let left = Numbers.number(left), let right = Numbers.number(right) else { return false }
        switch (left, right, mode) {
        case (.integer(let left), .integer(let right), _): return left == right
        case (.double(let left), .double(let right), .contained): return left == right && left.sign == right.sign
        case (_, _, .member): return Number.compare(left, right) == 0
        case (.double(let left), .double(let right), _): return left == right
        case (_, _, .contained): return false
        default: return Numbers.asDouble(left) == Numbers.asDouble(right)
        }
    }

    private static func areObjectsEqual(_ left: Operand, _ right: Operand) -> Bool {
        if let left = RulesPath.from(left), let right = RulesPath.from(right) {
            guard let left = left.values, let right = right.values, left.count == right.count else { return false }
            return zip(left, right).allSatisfy { $0.hasSameUTF8(as: $1) }
        }
        if let left = RulesDuration.from(left), let right = RulesDuration.from(right) {
            return left.total == right.total
        }
        if let left = RulesSet.from(left), let right = RulesSet.from(right) { return left.members == right.members }
        return false
    }
}

/// An operand as a key of sets and dictionaries, by one of the equalities.
struct OperandKey: Hashable, Sendable {
    let operand: Operand
    let mode: RulesEquality.Mode

    init(_ operand: Operand, _ mode: RulesEquality.Mode) {
        self.operand = operand
        self.mode = mode
    }

    static func == (left: OperandKey, right: OperandKey) -> Bool {
        RulesEquality.equal(left.operand, right.operand, left.mode)
    }

    /// Whether the key equals itself. NaN does not in lists, nor does a list or a map that has it.
    var equalsItself: Bool { self == self }

    func hash(into hasher: inout Hasher) { Self.hash(operand, into: &hasher, depth: 0) }

    /// Levels of lists and maps that count; documents do not nest deeper.
    private static let depthMax = 24

    /// Equal by one of the equalities that keys have means equal hashes. All parts count, so that values which differ
    /// somewhere do not have to be compared with each other.
    private static func hash(_ operand: Operand, into hasher: inout Hasher, depth: Int) {
        switch operand {
        case .boolean(let value): hasher.combine(value)
        case .integer(let value): hasher.combine(value)
        case .double(let value):
            // An integer may equal it. Not as doubles: these are the same for many integers.
            if let whole = Int64(exactly: value) {
                hasher.combine(whole)
            } else {
                hasher.combine(value.isNaN ? .infinity : value)
            }
        case .string(let text): hash(text, into: &hasher)
        case .bytes(let bytes): hasher.combine(ByteKey(bytes))
        case .timestamp(let time): hasher.combine(time)
        case .geoPoint(let point):
            hasher.combine(point.latitude)
            hasher.combine(point.longitude)
        default: hashParts(of: operand, into: &hasher, depth: depth)
        }
    }

    private static func hash(_ text: String, into hasher: inout Hasher) {
        text.withUTF8Span { bytes in
            // The bytes are only read during the call.
            unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        }
    }

    private static func hashParts(of operand: Operand, into hasher: inout Hasher, depth: Int) {
        if depth > depthMax { return }
        if let elements = operand.elements {
            hasher.combine(elements.count)
            for element in elements { hash(element, into: &hasher, depth: depth + 1) }
        } else if let entries = operand.entries {
            hasher.combine(entries.count)
            for entry in entries.entries {
                hash(entry.key, into: &hasher)
                hash(entry.value, into: &hasher, depth: depth + 1)
            }
        } else if let path = RulesPath.from(operand) {
            for value in path.values ?? [] { hash(value, into: &hasher) }
        } else if let duration = RulesDuration.from(operand) {
            hasher.combine(duration.total)
        } else if let set = RulesSet.from(operand) {
            hasher.combine(set.members)
        }
    }
}
