// Makes the calls of the conformance cases with the public API.

import Foundation

@testable import FirebaseFirestore

/// The API has no call for the case.
struct NotExpressible: Error {
    let reason: String
}

/// The calls of a case.
struct ConformanceCalls {
    let firestore: Firestore

    /// The project of the cases' names.
    static let project = "projectID"

    // MARK: Writes

    /// Makes the call of a write. It is sent when `waitForPendingWrites` returns.
    func make(_ test: ConformanceCase) throws {
        guard let write = test.write else { return }
        let document = document(write.docRefPath)
        if write.precondition != nil {
            throw NotExpressible(reason: "the API has no preconditions; transactions send update times")
        }
        if test.delete != nil {
            document.delete(completion: nil)
        } else if test.update != nil {
            document.updateData(try fields(write), completion: nil)
        } else if test.updatePaths != nil {
            document.updateData(try fieldsByPath(write), completion: nil)
        } else {
            try set(document, write)
        }
    }

    private func set(_ document: DocumentReference, _ write: ConformanceCase.Write) throws {
        let data = try fields(write)
        if let paths = write.option?.fields {
            document.setData(data, mergeFields: paths.map { FieldPath($0.field) }, completion: nil)
        } else {
            document.setData(data, merge: write.option?.all ?? false, completion: nil)
        }
    }

    private func fields(_ write: ConformanceCase.Write) throws -> [String: Any] {
        try JSONValue.data(write.jsonData ?? "{}") as? [String: Any] ?? [:]
    }

    private func fieldsByPath(_ write: ConformanceCase.Write) throws -> [AnyHashable: Any] {
        var fields: [AnyHashable: Any] = [:]
        for (path, value) in zip(write.fieldPaths ?? [], write.jsonValues ?? []) {
            let replaced = fields.updateValue(try JSONValue.data(value), forKey: FieldPath(path.field))
            if replaced != nil { throw NotExpressible(reason: "a dictionary has each path once") }
        }
        return fields
    }

    private func document(_ name: String) -> DocumentReference { firestore.document(path(name)) }

    /// The path after `…/documents/`.
    private func path(_ name: String) -> String {
        String(name[(name.range(of: "/documents/")?.upperBound ?? name.startIndex)...])
    }

    // MARK: Queries

    /// The query of a case.
    ///
    /// - Parameter snapshot: returns the snapshot of a document with these data.
    func query(
        _ query: ConformanceCase.Query, snapshot: (DocumentReference, [String: Any]) async throws -> DocumentSnapshot
    ) async throws -> Query {
        var made: Query = firestore.collection(path(query.collPath))
        for clause in query.clauses ?? [] {
            if clause.select != nil { throw NotExpressible(reason: "the API has no projections") }
            if clause.offset != nil { throw NotExpressible(reason: "the API has no offsets") }
            if let condition = clause.where { made = try filter(made, condition) }
            if let order = clause.orderBy {
                made = made.order(by: FieldPath(order.path.field), descending: order.direction == "desc")
            }
            if let limit = clause.limit { made = made.limit(to: limit) }
            let cursors: [(ConformanceCase.Cursor?, Bound)] = [
                (clause.startAt, .startAt), (clause.startAfter, .startAfter), (clause.endAt, .endAt),
                (clause.endBefore, .endBefore),
            ]
            for case (let cursor?, let bound) in cursors {
                if let document = cursor.docSnapshot {
                    let data = try JSONValue.data(document.jsonData) as? [String: Any] ?? [:]
                    made = cut(made, bound, at: try await snapshot(self.document(document.path), data))
                } else {
                    made = cut(made, bound, at: try (cursor.jsonValues ?? []).map { try JSONValue.data($0) })
                }
            }
        }
        return made
    }

    private enum Bound { case startAt, startAfter, endAt, endBefore }

    private func cut(_ query: Query, _ bound: Bound, at values: [Any]) -> Query {
        switch bound {
        case .startAt: query.start(at: values)
        case .startAfter: query.start(after: values)
        case .endAt: query.end(at: values)
        case .endBefore: query.end(before: values)
        }
    }

    private func cut(_ query: Query, _ bound: Bound, at document: DocumentSnapshot) -> Query {
        switch bound {
        case .startAt: query.start(atDocument: document)
        case .startAfter: query.start(afterDocument: document)
        case .endAt: query.end(atDocument: document)
        case .endBefore: query.end(beforeDocument: document)
        }
    }

    private func filter(_ query: Query, _ condition: ConformanceCase.Condition) throws -> Query {
        let path = FieldPath(condition.path.field)
        let value = try JSONValue.data(condition.jsonValue)
        switch condition.op {
        case "==": return query.whereField(path, isEqualTo: value)
        case "<": return query.whereField(path, isLessThan: value)
        case "<=": return query.whereField(path, isLessThanOrEqualTo: value)
        case ">": return query.whereField(path, isGreaterThan: value)
        case ">=": return query.whereField(path, isGreaterThanOrEqualTo: value)
        default: throw NotExpressible(reason: "operators are methods")
        }
    }
}
