// What one case of a query says about its documents.

internal import DocumentModel
internal import Expressions

/// The facts of one case, by field. A case has one spelling for each field whose value is known.
final class CaseFacts: Sendable {
    private let facts: [FieldPath: FieldFacts]
    private let known: [FieldPath: Operand]

    init(_ facts: [FieldPath: FieldFacts], known: [FieldPath: Operand]) {
        self.facts = facts
        self.known = known
    }

    /// The cases of a conjunction: one for each combination of spellings of the numbers that it equals.
    ///
    /// - Returns: nil if there are more than ``RulesLimits/proofCases``.
    static func cases(of conditions: [Condition]) -> [CaseFacts]? {
        let facts = facts(of: conditions)
        var combinations: [[FieldPath: Operand]] = [[:]]
        for (path, fact) in facts {
            guard let spellings = fact.exact else { continue }
            if combinations.count * spellings.count > RulesLimits.proofCases { return nil }
            combinations = combinations.flatMap { known in
                spellings.map { known.merging([path: $0]) { _, new in new } }
            }
        }
        return combinations.map { CaseFacts(facts, known: $0) }
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
        let facts = CaseFacts(facts(of: conditions), known: [:])
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
        if let value = known[path] { return value }
        guard has(path) else { throw .unproven }
        return .object(FieldConstraint(path, facts[path] ?? FieldFacts(), in: self))
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
