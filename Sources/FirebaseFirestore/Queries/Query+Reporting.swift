// The query builder for callers that report a broken rule instead of trapping: the typed layer. What throws here throws
// an `NSError` with `.invalidArgument` and the text of the trap.

import DocumentCoding
import Foundation

extension Query {
    private func reporting(_ change: () throws(RuleViolation) -> QueryDescription) throws -> Query {
        do throws(RuleViolation) {
            return Query(firestore: firestore, definition: try change())
        } catch {
            throw NSError.firestore(.invalidArgument, error.message)
        }
    }

    /// See ``whereFilter(_:)``.
    package func filtered(by filter: Filter) throws -> Query {
        try reporting { () throws(RuleViolation) in try definition(with: filter) }
    }

    /// See ``order(by:descending:)``.
    package func ordered(by path: FieldPath, descending: Bool) throws -> Query {
        try reporting { () throws(RuleViolation) in try definition(orderedBy: path, descending: descending) }
    }

    /// See ``limit(to:)``.
    package func limited(to limit: Int) throws -> Query {
        try reporting { () throws(RuleViolation) in try QueryRules.limiting(definition, to: limit, side: .first) }
    }

    /// See ``limit(toLast:)``.
    package func limited(toLast limit: Int) throws -> Query {
        try reporting { () throws(RuleViolation) in try QueryRules.limiting(definition, to: limit, side: .last) }
    }

    /// See ``start(atDocument:)`` and ``start(afterDocument:)``.
    ///
    /// - Parameter isIncluded: whether the document is one of the results.
    package func starting(with document: DocumentSnapshot, isIncluded: Bool) throws -> Query {
        try reporting { () throws(RuleViolation) in
            try definition(startingAt: CursorRules.document(document, before: isIncluded))
        }
    }

    /// The query, which breaks no rule of queries that run.
    package func executable() throws -> Query {
        try reporting { () throws(RuleViolation) in
            try QueryRules.checkExecutable(definition)
            return definition
        }
    }
}
