// Where a query starts and ends within its order: by values, or by a document. The last call for a side wins.

import DocumentCoding
import DocumentModel
import Foundation

extension Query {
    /// Starts with the documents whose ordered fields equal the values, in the order of the `order(by:)` calls.
    @discardableResult
    public func start(at values: [Any]) -> Query { starting(CursorRules.values(values, before: true)) }

    /// Starts after the documents whose ordered fields equal the values.
    @discardableResult
    public func start(after values: [Any]) -> Query { starting(CursorRules.values(values, before: false)) }

    /// Ends before the documents whose ordered fields equal the values.
    @discardableResult
    public func end(before values: [Any]) -> Query { ending(CursorRules.values(values, before: true)) }

    /// Ends with the documents whose ordered fields equal the values.
    @discardableResult
    public func end(at values: [Any]) -> Query { ending(CursorRules.values(values, before: false)) }

    /// Starts with the document, which must exist and have all fields of the order.
    @discardableResult
    public func start(atDocument document: DocumentSnapshot) -> Query {
        starting(CursorRules.document(document, before: true))
    }

    /// Starts after the document, which must exist and have all fields of the order.
    @discardableResult
    public func start(afterDocument document: DocumentSnapshot) -> Query {
        starting(CursorRules.document(document, before: false))
    }

    /// Ends before the document, which must exist and have all fields of the order.
    @discardableResult
    public func end(beforeDocument document: DocumentSnapshot) -> Query {
        ending(CursorRules.document(document, before: true))
    }

    /// Ends with the document, which must exist and have all fields of the order.
    @discardableResult
    public func end(atDocument document: DocumentSnapshot) -> Query {
        ending(CursorRules.document(document, before: false))
    }

    private func starting(_ position: CursorRules) -> Query {
        changed { (_) throws(RuleViolation) in try definition(startingAt: position) }
    }

    func definition(startingAt position: CursorRules) throws(RuleViolation) -> QueryDescription {
        var query = definition
        query.startAt = try position.cursor(for: query, firestore: firestore)
        return query
    }

    private func ending(_ position: CursorRules) -> Query {
        changed { (query) throws(RuleViolation) in
            var query = query
            query.endAt = try position.cursor(for: query, firestore: firestore)
            return query
        }
    }
}

/// A position in a query's order as the program gives it.
enum CursorRules {
    case values([Any], before: Bool)
    case document(DocumentSnapshot, before: Bool)

    func cursor(for query: QueryDescription, firestore: Firestore) throws(RuleViolation) -> DocumentModel.Cursor {
        switch self {
        case .values(let values, let before):
            try QueryRules.checkCursorCount(values.count, of: query)
            var encoded: [EncodedValue] = []
            for (value, order) in zip(values, query.orders) {
                encoded.append(try Self.encode(value, order, query, firestore))
            }
            return DocumentModel.Cursor(values: encoded, before: before)
        case .document(let snapshot, let before):
            return DocumentModel.Cursor(values: try Self.values(of: snapshot, query, firestore), before: before)
        }
    }

    private static func encode(
        _ value: Any, _ order: DocumentModel.Order, _ query: QueryDescription, _ firestore: Firestore
    ) throws(RuleViolation) -> EncodedValue {
        guard order.field.isDocumentName else { return try QueryValues.encode(value, firestore: firestore) }
        if let reference = value as? DocumentReference {
            try firestore.checkOwns(reference)
            return QueryValues.reference(reference.name)
        }
        guard let id = value as? String else {
            throw RuleViolation("Invalid query. Expected a string for the document ID.")
        }
        return QueryValues.reference(firestore.resourceName(try QueryRules.documentIDCursor(id, in: query)))
    }

    /// The document's values in the whole effective order.
    private static func values(
        of snapshot: DocumentSnapshot, _ query: QueryDescription, _ firestore: Firestore
    ) throws(RuleViolation) -> [EncodedValue] {
        guard let document = snapshot.stored else {
            throw RuleViolation(
                "Invalid query. You are trying to start or end a query using a document that doesn't exist.")
        }
        try firestore.checkOwns(snapshot.reference)
        var values: [EncodedValue] = []
        for order in query.effectiveOrders {
            if order.field.isDocumentName {
                values.append(QueryValues.reference(snapshot.reference.name))
            } else if document.hasEstimate(at: order.field) {
                throw RuleViolation(
                    "Invalid query. You are trying to start or end a query using a document for which the field "
                        + "'\(order.field)' is an uncommitted server timestamp, whose value is not known yet.")
            } else if let value = document.encodedValue(at: order.field) {
                values.append(value)
            } else {
                throw RuleViolation(
                    "Invalid query. You are trying to start or end a query for which the field '\(order.field)' (used "
                        + "as the order by) does not exist.")
            }
        }
        return values
    }
}
