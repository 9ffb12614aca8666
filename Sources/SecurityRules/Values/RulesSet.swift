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
        var (added, removed, changed, unchanged): ([String], [String], [String], [String]) = ([], [], [], [])
        let (new, old) = (map.entries, other.entries)
        var (atNew, atOld) = (0, 0)
        // Both are sorted by their keys.
        while atNew < new.count || atOld < old.count {
            let order =
                atNew == new.count ? 1 : atOld == old.count ? -1 : new[atNew].key.compareUTF8(old[atOld].key)
            if order < 0 {
                added.append(new[atNew].key)
            } else if order > 0 {
                removed.append(old[atOld].key)
            } else if RulesEquality.equal(new[atNew].value, old[atOld].value, .member) {
                unchanged.append(new[atNew].key)
            } else {
                changed.append(new[atNew].key)
            }
            if order <= 0 { atNew += 1 }
            if order >= 0 { atOld += 1 }
        }
        (self.added, self.removed, self.changed, self.unchanged) = (added, removed, changed, unchanged)
    }

    static func from(_ operand: Operand) -> MapDifference? {
        if case .object(let object) = operand { object as? MapDifference } else { nil }
    }
}
