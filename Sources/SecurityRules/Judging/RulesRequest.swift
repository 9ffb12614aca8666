// What a ruleset is asked.

package import DocumentModel
package import Expressions

/// One access to judge.
package struct RulesRequest: Sendable {
    /// What the caller wants to do. `read` and `write` of rules stand for two and three of these.
    package enum Method: String, Sendable, CaseIterable {
        case get, list, create, update, delete
    }

    /// The document before the access: the variable `resource`.
    package enum Resource: Sendable {
        /// Asked of ``DocumentAccess`` when a rule reads it.
        case unread
        /// Its fields, or nil if there is no document.
        case known([UInt8]?)
    }

    /// The document after a write: `request.resource`.
    package enum NewResource: Sendable {
        /// A read: the name is not defined.
        case none
        /// A delete: null.
        case deleted
        /// The fields as they will be stored, transforms included.
        case fields([UInt8])
    }

    package var method: Method
    /// The id of the database, as in `(default)`.
    package var database: String
    /// Segments below `documents`: of a document, or of a collection for ``Method/list``.
    package var path: [String]
    /// Null, or a map with `uid` and `token`.
    package var auth: Operand
    package var time: TimestampValue
    package var resource: Resource
    package var newResource: NewResource
    /// The query of a list; nil means all documents of the collection.
    package var query: StructuredQuery?

    package init(
        _ method: Method, path: [String], database: String = "(default)", auth: Operand = .null,
        time: TimestampValue, resource: Resource = .unread, newResource: NewResource = .none,
        query: StructuredQuery? = nil
    ) {
        self.method = method
        self.path = path
        self.database = database
        self.auth = auth
        self.time = time
        self.resource = resource
        self.newResource = newResource
        self.query = query
    }

    /// The value of `request.auth` for a verified user.
    ///
    /// - Parameter token: the claims of the token, without `uid`.
    package static func user(_ uid: String, token: OperandMap) -> Operand {
        .map(OperandMap([("uid", .string(uid)), ("token", .map(token))]))
    }
}
