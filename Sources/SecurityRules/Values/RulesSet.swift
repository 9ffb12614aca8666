// Sets, and what `diff()` returns.

internal import Basics
internal import Expressions

/// A set of values: the result of `toSet()` and of the methods of a map difference.
final class RulesSet: LanguageValue {
    let members: Set<OperandKey>

    var operandTypes: OperandTypes { .set }

    init(_ members: Set<OperandKey>) { self.members = members }

    init(_ operands: some Sequence<Operand>) { members = Set(operands.map { OperandKey($0, .member) }) }

    static func from(_ operand: Operand) -> RulesSet? {
        if case .object(let object) = operand { object as? RulesSet } else { nil }
    }
}

/// The difference of two maps, by keys.
final class MapDifference: LanguageValue {
    let added: [String]
    let removed: [String]
    let changed: [String]
    let unchanged: [String]

    var operandTypes: OperandTypes { .mapDifference }

    /// - Parameters:
    ///   - map: the map whose method was called: the newer one.
    ///   - other: the map that it is compared with.
    init(of map: OperandMap, to other: OperandMap) {
        var (added, changed, unchanged): ([String], [String], [String]) = ([], [], [])
        for (key, value) in map.entries {
            guard let old = other[key] else {
                added.append(key)
                continue
            }
            if RulesEquality.equal(value, old, .member) { unchanged.append(key) } else { changed.append(key) }
        }
        removed = other.keys.filter { map[$0] == nil }
        (self.added, self.changed, self.unchanged) = (added, changed, unchanged)
    }

    static func from(_ operand: Operand) -> MapDifference? {
        if case .object(let object) = operand { object as? MapDifference } else { nil }
    }
}
