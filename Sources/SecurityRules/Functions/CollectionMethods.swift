// Methods of lists, sets, maps, map differences and paths.

internal import Basics
internal import Expressions

extension Functions {
    static let listMethods: [ExpressionFunction] = [
        method(
            "concat",
            overload(.list, .list) { evaluation, operands throws(ExpressionError) in
                let joined = try evaluation.elements(operands[0]) + evaluation.elements(operands[1])
                try evaluation.spendMemory(32 * joined.count)
                return .list(joined)
            }),
        method(
            "hasAll",
            overload(.list, .list) { evaluation, operands throws(ExpressionError) in
                let elements = findable(try keys(evaluation, operands[0]))
                return .boolean(try keys(evaluation, operands[1]).allSatisfy(elements.contains))
            },
            overload(.set, [.list, .set]) { evaluation, operands throws(ExpressionError) in
                let all = try members(evaluation, operands[0])
                return .boolean(try members(evaluation, operands[1]).isSubset(of: all))
            },
            overload(.constraint, .list) { evaluation, operands throws(ExpressionError) in
                for element in try evaluation.elements(operands[1]) {
                    if try operands[0].unproven?.contains(element) != true { throw .unproven }
                }
                return .boolean(true)
            }),
        method(
            "hasAny",
            overload(.list, .list) { evaluation, operands throws(ExpressionError) in
                let elements = findable(try keys(evaluation, operands[0]))
                return .boolean(try keys(evaluation, operands[1]).contains(where: elements.contains))
            },
            overload(.set, [.list, .set]) { evaluation, operands throws(ExpressionError) in
                let all = try members(evaluation, operands[0])
                return .boolean(try !members(evaluation, operands[1]).isDisjoint(with: all))
            },
            overload(.constraint, .list) { evaluation, operands throws(ExpressionError) in
                for element in try evaluation.elements(operands[1]) {
                    // One element decides; those that are not proven do not matter then.
                    if let isMember = try? operands[0].unproven?.contains(element), isMember { return .boolean(true) }
                }
                throw .unproven
            }),
        method(
            "hasOnly",
            // Nothing else, but not all: `[].hasOnly(['a'])` is true.
            overload(.list, .list) { evaluation, operands throws(ExpressionError) in
                let allowed = findable(try keys(evaluation, operands[1]))
                return .boolean(try keys(evaluation, operands[0]).allSatisfy(allowed.contains))
            },
            overload(.set, [.list, .set]) { evaluation, operands throws(ExpressionError) in
                let allowed = try members(evaluation, operands[1])
                return .boolean(try members(evaluation, operands[0]).isSubset(of: allowed))
            }),
        method(
            "join",
            overload(.list, .string) { evaluation, operands throws(ExpressionError) in
                var text = ""
                for (index, element) in try evaluation.elements(operands[0]).enumerated() {
                    let part = try (index > 0 ? operands[1].text : "") + Conversions.text(element)
                    try evaluation.spendMemory(part.utf8.count)
                    text += part
                }
                return .string(text)
            }),
        method(
            "removeAll",
            overload(.list, .list) { evaluation, operands throws(ExpressionError) in
                let removed = findable(try keys(evaluation, operands[1]))
                return .list(try keys(evaluation, operands[0]).filter { !removed.contains($0) }.map(\.operand))
            }),
        method(
            "toSet",
            overload(.list) { evaluation, operands throws(ExpressionError) in
                .object(RulesSet(try members(evaluation, operands[0])))
            }),
        method(
            "difference",
            overload(.set, .set) { evaluation, operands throws(ExpressionError) in
                let removed = try members(evaluation, operands[1])
                return .object(RulesSet(try members(evaluation, operands[0]).subtracting(removed)))
            }),
        method(
            "intersection",
            overload(.set, .set) { evaluation, operands throws(ExpressionError) in
                let kept = try members(evaluation, operands[1])
                return .object(RulesSet(try members(evaluation, operands[0]).intersection(kept)))
            }),
        method(
            "union",
            overload(.set, .set) { evaluation, operands throws(ExpressionError) in
                let added = try members(evaluation, operands[1])
                return .object(RulesSet(try members(evaluation, operands[0]).union(added)))
            }),
    ]

    /// The members of a set, or the elements of a list as members of one, paid for.
    private static func members(
        _ evaluation: Evaluation, _ operand: Operand
    ) throws(ExpressionError) -> Set<OperandKey> {
        if let set = RulesSet.from(operand) {
            try evaluation.spendReading(operand)
            return set.members
        }
        return Set(try keys(evaluation, operand, .member))
    }

    /// The elements of a list as keys of one equality, paid for.
    private static func keys(
        _ evaluation: Evaluation, _ list: Operand, _ mode: RulesEquality.Mode = .contained
    ) throws(ExpressionError) -> [OperandKey] {
        try evaluation.spendReading(list)
        let elements = try evaluation.elements(list)
        try evaluation.spendMemory(64 * elements.count)
        try evaluation.spendWork(Evaluation.hashWork * elements.count)
        return elements.map { OperandKey($0, mode) }
    }

    /// The keys that can be found. Those that equal nothing have one hash and would be compared with each other.
    private static func findable(_ keys: [OperandKey]) -> Set<OperandKey> {
        Set(keys.filter(\.equalsItself))
    }

    static let mapMethods: [ExpressionFunction] = [
        method(
            "get",
            overload(.map, .string, .any) { evaluation, operands throws(ExpressionError) in
                try member(evaluation, [operands[1]], of: operands[0]) ?? operands[2]
            },
            overload(.map, .list, .any) { evaluation, operands throws(ExpressionError) in
                try member(evaluation, try evaluation.elements(operands[1]), of: operands[0]) ?? operands[2]
            },
            overload(.constraint, .string, .any) { _, operands throws(ExpressionError) in
                try provenMember([operands[1]], of: operands[0])
            },
            overload(.constraint, .list, .any) { evaluation, operands throws(ExpressionError) in
                try provenMember(try evaluation.elements(operands[1]), of: operands[0])
            }),
        method(
            "keys",
            overload(.map) { evaluation, operands throws(ExpressionError) in
                .list(try evaluation.entries(operands[0]).keys.map { .string($0) })
            }),
        method(
            "values",
            overload(.map) { evaluation, operands throws(ExpressionError) in
                .list(try evaluation.entries(operands[0]).entries.map(\.value))
            }),
        method(
            "diff",
            overload(.map, .map) { evaluation, operands throws(ExpressionError) in
                try evaluation.spendReading(operands[0])
                try evaluation.spendReading(operands[1])
                let (map, other) = (try evaluation.entries(operands[0]), try evaluation.entries(operands[1]))
                return .object(MapDifference(of: map, to: other))
            }),
        differenceMethod("addedKeys") { $0.added },
        differenceMethod("removedKeys") { $0.removed },
        differenceMethod("changedKeys") { $0.changed },
        differenceMethod("unchangedKeys") { $0.unchanged },
        differenceMethod("affectedKeys") { $0.added + $0.removed + $0.changed },
        method(
            "bind",
            overload(.path, .map) { evaluation, operands throws(ExpressionError) in
                let values = try evaluation.entries(operands[1])
                guard let path = RulesPath.from(operands[0]) else { return .null }
                try evaluation.spendMemory(path.memoryBytes)
                return .object(try path.binding(values))
            }),
    ]

    private static func differenceMethod(
        _ name: String, _ keys: @escaping @Sendable (MapDifference) -> [String]
    ) -> ExpressionFunction {
        method(
            name,
            overload(.mapDifference) { evaluation, operands throws(ExpressionError) in
                let names = MapDifference.from(operands[0]).map(keys) ?? []
                try evaluation.spendMemory(64 * names.count)
                return .object(RulesSet(names.map { .string($0) }))
            })
    }

    /// The part of a map that a list of names leads to; nil if there is none.
    private static func member(
        _ evaluation: Evaluation, _ names: [Operand], of map: Operand
    ) throws(ExpressionError) -> Operand? {
        // All names count, those below an absent one too.
        let names = try names.map { (name) throws(ExpressionError) -> String in
            if case .string(let text) = name { return text }
            throw .failed("Type error. Received: [\(RulesType(name).rawValue)] Expected: [string].")
        }
        var part = map
        for name in names {
            switch part {
            case .map(let map):
                guard let value = map[name] else { return nil }
                part = value
            case .encodedMap(let slice):
                try evaluation.spendMemberSearch(in: part)
                part = slice.member(name)
                if case .absent = part { return nil }
            default: return nil
            }
        }
        return part
    }

    /// The part of the fields of unknown documents; throws unless each of them has it.
    private static func provenMember(_ names: [Operand], of fields: Operand) throws(ExpressionError) -> Operand {
        var part = fields
        for name in names {
            guard case .string(let name) = name else { throw .unproven }
            part = try Subscripts.member(name, of: part)
        }
        return part
    }
}
