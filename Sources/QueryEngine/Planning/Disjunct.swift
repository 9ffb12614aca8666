// A filter in disjunctive normal form: the alternatives of which at least one must hold, each a list of conditions.
//
//     a == 1 AND (b == 2 OR c > 3)     a == 1 AND b == 2;  a == 1 AND c > 3
//     a in [1, 2]                      a == 1;  a == 2
//
// The rules allow thirty alternatives (`FilterRules`).

import DocumentModel

/// Conditions that must hold together.
struct Disjunct: Sendable {
    var fieldTests: [FieldTest] = []
    var nameTests: [NameTest] = []

    /// The alternatives of a filter, lists taken apart; those that nothing can meet are left out.
    static func all(of filter: CompiledFilter) -> [Disjunct] {
        expand(filter).filter { disjunct in !disjunct.fieldTests.contains { $0.condition.isNever } }
    }

    private static func expand(_ filter: CompiledFilter) -> [Disjunct] {
        var disjuncts = [Disjunct(nameTests: filter.nameTests)]
        for test in filter.fieldTests {
            let members = test.members
            disjuncts = disjuncts.flatMap { disjunct in
                members.map { member in
                    var longer = disjunct
                    longer.fieldTests.append(member)
                    return longer
                }
            }
        }
        for group in filter.alternatives {
            let alternatives = group.flatMap(expand)
            disjuncts = disjuncts.flatMap { disjunct in
                alternatives.map { alternative in
                    Disjunct(
                        fieldTests: disjunct.fieldTests + alternative.fieldTests,
                        nameTests: disjunct.nameTests + alternative.nameTests)
                }
            }
        }
        return disjuncts
    }

    /// The values that the field may have by the conditions on it; everything if there are none.
    func intervals(of field: FieldPath) -> ValueIntervals {
        fieldTests.reduce(.all) { intervals, test in
            guard test.path == field, test.condition.isOfValue else { return intervals }
            return intervals.intersection(ValueIntervals(test))
        }
    }

    /// Whether the conditions hold.
    func matches(path: RawSpan, fields: RawSpan) -> Bool {
        for index in fieldTests.indices where !fieldTests[index].matches(fields: fields) { return false }
        for index in nameTests.indices where !nameTests[index].matches(path: path) { return false }
        return true
    }
}

extension FieldTest {
    /// The condition itself, or for a list that one member is to be equal to, one condition for each member.
    fileprivate var members: [FieldTest] {
        switch condition {
        case .isIn, .containsAny: list.map { FieldTest(self, member: $0) }
        default: [self]
        }
    }
}

extension FieldTest.Condition {
    fileprivate var isNever: Bool {
        if case .never = self { true } else { false }
    }

    /// Whether it is the value that is compared, not the elements of an array.
    var isOfValue: Bool {
        if case .containsAny = self { false } else { true }
    }
}
