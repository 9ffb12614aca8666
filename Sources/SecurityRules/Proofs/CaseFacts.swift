// What one case of a query says about its documents.

internal import DocumentModel
internal import Expressions
internal import Synchronization

/// The facts of one case, by field. A case has one spelling for each field whose value is known.
///
/// A number that the query equals has several spellings. One is chosen when a rule reads the field, and ``next()`` has
/// the next one: what no rule reads makes no further cases. Used by one judgement at a time.
final class CaseFacts: Sendable {
    /// One of the spellings of a field.
    private struct Choice {
        let path: FieldPath
        var index: Int
        let count: Int
    }

    private let facts: [FieldPath: FieldFacts]
    /// Of the fields that were read and have several spellings, in the order in which they were read first.
    private let choices: Mutex<[Choice]>

    private init(_ facts: [FieldPath: FieldFacts], _ choices: [Choice] = []) {
        self.facts = facts
        self.choices = Mutex(choices)
    }

    /// The first case of a conjunction.
    convenience init(of conditions: [Condition]) { self.init(Self.facts(of: conditions)) }

    /// The case after this one, which has been judged: with the next spelling of the field that was read last of those
    /// that have another one. The spellings of the fields read before it stay, so each combination that makes a
    /// difference occurs once.
    ///
    /// - Returns: nil if there is none.
    func next() -> CaseFacts? {
        var next = choices.withLock { $0 }
        while var last = next.popLast() {
            last.index += 1
            if last.index < last.count { return CaseFacts(facts, next + [last]) }
        }
        return nil
    }

    private static func facts(of conditions: [Condition]) -> [FieldPath: FieldFacts] {
        var facts: [FieldPath: FieldFacts] = [:]
        for condition in conditions {
            let path = condition.path
            if !path.isDocumentName { facts[path, default: FieldFacts()].add(condition) }
        }
        return facts
    }

    /// Whether no document meets all of the conditions, as far as that is seen here.
    static func areImpossible(_ conditions: [Condition]) -> Bool {
        let names = Set(conditions.compactMap(\.documentPath))
        if names.count > 1 { return true }
        let facts = CaseFacts(of: conditions)
        return facts.facts.contains { path, fact in
            fact.isImpossible || (facts.isMap(path) && fact.classes.isDisjoint(with: FieldConstraint.mapClasses))
        }
    }

    /// Whether every document has the field.
    func has(_ path: FieldPath) -> Bool { facts.keys.contains { path.isPrefix(of: $0) } }

    /// Whether every document has a map in the field.
    func isMap(_ path: FieldPath) -> Bool { facts.keys.contains { path.isPrefix(of: $0) && $0.count > path.count } }

    /// The value of a field as far as it is known; throws if not every document has it.
    func value(of path: FieldPath) throws(ExpressionError) -> Operand {
        if let spellings = facts[path]?.exact { return spellings[spelling(of: path, count: spellings.count)] }
        guard has(path) else { throw .unproven }
        return .object(FieldConstraint(path, facts[path] ?? FieldFacts(), in: self))
    }

    /// The number of the spelling that a field has in this case.
    private func spelling(of path: FieldPath, count: Int) -> Int {
        if count == 1 { return 0 }
        return choices.withLock { choices in
            if let known = choices.first(where: { $0.path == path }) { return known.index }
            choices.append(Choice(path: path, index: 0, count: count))
            return 0
        }
    }
}

extension Condition {
    var path: FieldPath {
        switch self {
        case .compared(let path, _, _), .tested(let path, _), .exists(let path): path
        }
    }

    /// The path of the document whose name is demanded, below its database; nil if none is.
    fileprivate var documentPath: [String]? {
        guard case .compared(let path, .equal, let operand) = self, path.isDocumentName,
            case .reference(let name) = Operand(operand), let path = RulesPath(reference: name)?.values
        else { return nil }
        return Array(path.dropFirst(3))
    }
}

/// `resource` of a query: a document of which the facts are known.
final class QueriedDocument: UnprovenValue {
    private let facts: CaseFacts

    init(_ facts: CaseFacts) { self.facts = facts }

    func member(_ name: String) throws(ExpressionError) -> Operand {
        switch name {
        case "data": return .object(QueriedFields(facts, below: nil))
        case "id": return .object(UnknownValue(.string))
        case "__name__": return .object(UnknownValue(.path))
        default: throw .undefinedProperty(name)
        }
    }

    func contains(_ element: Operand) throws(ExpressionError) -> Bool {
        guard case .string(let name) = element else { throw .unproven }
        return ["data", "id", "__name__"].contains(name)
    }

    /// A query returns no document that does not exist.
    func equals(_ other: Operand, _ mode: RulesEquality.Mode) throws(ExpressionError) -> Bool {
        try UnknownValue(.map).equals(other, mode)
    }

    func isOfType(_ type: RulesType) -> Bool { type == .map }
}

/// `resource.data` of a query, or a map in it.
final class QueriedFields: UnprovenValue {
    private let facts: CaseFacts
    private let path: FieldPath?

    init(_ facts: CaseFacts, below path: FieldPath?) {
        self.facts = facts
        self.path = path
    }

    private func field(_ name: String) throws(ExpressionError) -> FieldPath {
        do {
            return try FieldPath(segments: (path?.segments ?? []) + [name])
        } catch {
            throw .undefinedProperty(name)
        }
    }

    func member(_ name: String) throws(ExpressionError) -> Operand { try facts.value(of: try field(name)) }

    func contains(_ element: Operand) throws(ExpressionError) -> Bool {
        guard case .string(let name) = element, facts.has(try field(name)) else { throw .unproven }
        return true
    }

    func equals(_ other: Operand, _ mode: RulesEquality.Mode) throws(ExpressionError) -> Bool {
        try UnknownValue(.map).equals(other, mode)
    }

    func isOfType(_ type: RulesType) -> Bool { type == .map }
}
