import DocumentCoding
import DocumentModel
import Foundation

/// The operands of filters: values that a program compares with fields, checked and encoded.
enum OperandRules {
    /// The condition that a filter of the API stands for.
    static func filter(
        _ path: DocumentCoding.FieldPath, _ relation: ComparisonOperator, _ operand: Any, query: QueryDescription,
        firestore: Firestore
    ) throws(RuleViolation) -> DocumentModel.Filter {
        let field = try path.model()
        if relation.wire.takesList, (operand as? [Any])?.isEmpty ?? true {
            throw RuleViolation("Invalid Query. A non-empty array is required for '\(relation.name)' filters.")
        }
        if path.isDocumentID {
            return .field(field, relation.wire, try documentIDOperand(relation, operand, query, firestore))
        }
        // The elements of these two lists are whole values of the field, so they may be arrays.
        let value = try QueryValues.encode(
            operand, firestore: firestore, allowsNestedArrays: relation == .isIn || relation == .notIn)
        if relation == .equal || relation == .notEqual, let special = QueryValues.special(value) {
            switch (special, relation == .equal) {
            case (.null, true): return .unary(field, .isNull)
            case (.null, false): return .unary(field, .isNotNull)
            case (.notANumber, true): return .unary(field, .isNaN)
            case (.notANumber, false): return .unary(field, .isNotNaN)
            }
        }
        return .field(field, relation.wire, value)
    }

    private static func documentIDOperand(
        _ relation: ComparisonOperator, _ operand: Any, _ query: QueryDescription, _ firestore: Firestore
    ) throws(RuleViolation) -> EncodedValue {
        switch relation {
        case .arrayContains, .arrayContainsAny:
            throw RuleViolation(
                "Invalid query. You can't perform \(relation.name) queries on document ID since document IDs are not "
                    + "arrays.")
        case .isIn, .notIn:
            var references: [EncodedValue] = []
            for element in operand as? [Any] ?? [] {
                references.append(try reference(element, query, firestore))
            }
            return QueryValues.array(references)
        default:
            return try reference(operand, query, firestore)
        }
    }

    private static func reference(
        _ operand: Any, _ query: QueryDescription, _ firestore: Firestore
    ) throws(RuleViolation) -> EncodedValue {
        if let reference = operand as? DocumentReference {
            try firestore.checkOwns(reference)
            return QueryValues.reference(reference.name)
        }
        guard let id = operand as? String else {
            throw RuleViolation(
                "Invalid query. When querying by document ID you must provide a valid string or DocumentReference, "
                    + "but it was of type: \(type(of: operand))")
        }
        let segments = try QueryRules.documentIDOperand(id, in: query)
        return QueryValues.reference(firestore.resourceName(segments))
    }
}
