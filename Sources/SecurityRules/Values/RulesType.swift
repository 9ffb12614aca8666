// The types of the rules language.

internal import Expressions

extension OperandTypes {
    static let path: OperandTypes = [.reference, .language(0)]
    static let duration = OperandTypes.language(1)
    static let set = OperandTypes.language(2)
    static let mapDifference = OperandTypes.language(3)
    /// A field of the documents that a query can return, of which only the query's conditions are known.
    static let constraint = OperandTypes.language(4)
}

/// A type as the language names it.
enum RulesType: String, CaseIterable, Sendable {
    case bool, bytes, constraint, duration, float, int, latlng, list, vector, set, number, map, string, timestamp, path
    case mapDifference = "map_diff"
    /// Cannot be written after `is`.
    case null

    /// The names that may follow `is`.
    static let testable = allCases.filter { $0 != .null }

    /// The type of an operand; numbers are `int` or `float`, vectors are `map`.
    init(_ operand: Operand) {
        self = Self.byTypes.first { !$0.types.isDisjoint(with: operand.types) }?.type ?? .null
    }

    private static let byTypes: [(types: OperandTypes, type: RulesType)] = [
        (.string, .string), (.map, .map), (.boolean, .bool), (.integer, .int), (.double, .float), (.path, .path),
        (.list, .list), (.timestamp, .timestamp), (.duration, .duration), (.set, .set), (.bytes, .bytes),
        (.geoPoint, .latlng), (.mapDifference, .mapDifference), (.constraint, .constraint),
    ]

    /// Whether `operand is TYPE` holds.
    func includes(_ operand: Operand) -> Bool {
        switch self {
        case .number: !operand.types.isDisjoint(with: .number)
        case .vector: Self.isVector(operand)
        // No value passes for one of these.
        case .constraint, .set: false
        default: RulesType(operand) == self
        }
    }

    private static func isVector(_ operand: Operand) -> Bool {
        guard case .encodedMap(let map) = operand, case .string(let type) = map.member("__type__") else { return false }
        return type == "__vector__"
    }
}
