// Filters as objects, which can be combined with AND and OR.

import DocumentCoding
import DocumentModel
public import Foundation

/// A condition on documents. Immutable and thread-safe.
public final class Filter: NSObject, @unchecked Sendable {
    // Unchecked: operands are `Any` as in the SDK; they are read when the filter joins a query and must not be changed
    // by their owner before that.

    private indirect enum Node {
        case field(DocumentCoding.FieldPath, ComparisonOperator, Any)
        case all([Filter])
        case any([Filter])
    }
    private let node: Node

    init(_ path: DocumentCoding.FieldPath, _ relation: ComparisonOperator, _ operand: Any) {
        node = .field(path, relation, operand)
    }

    private init(_ node: Node) { self.node = node }

    /// Accepts the documents that all of the filters accept.
    @discardableResult
    public class func andFilter(_ filters: [Filter]) -> Filter { Filter(.all(filters)) }

    /// Accepts the documents that at least one of the filters accepts.
    @discardableResult
    public class func orFilter(_ filters: [Filter]) -> Filter { Filter(.any(filters)) }

    /// The condition for the server, or `nil` for one without any part.
    func compiled(
        for query: QueryDescription, in firestore: Firestore
    ) throws(RuleViolation) -> DocumentModel.Filter? {
        switch node {
        case .field(let path, let relation, let operand):
            return try OperandRules.filter(path, relation, operand, query: query, firestore: firestore)
        case .all(let parts):
            let compiled = try Self.compile(parts, for: query, in: firestore)
            return compiled.count > 1 ? .and(compiled) : compiled.first
        case .any(let parts):
            let compiled = try Self.compile(parts, for: query, in: firestore)
            return compiled.count > 1 ? .or(compiled) : compiled.first
        }
    }

    private static func compile(
        _ parts: [Filter], for query: QueryDescription, in firestore: Firestore
    ) throws(RuleViolation) -> [DocumentModel.Filter] {
        var compiled: [DocumentModel.Filter] = []
        for part in parts {
            if let filter = try part.compiled(for: query, in: firestore) { compiled.append(filter) }
        }
        return compiled
    }
}
