import DocumentCoding
public import Foundation

/// A query: the documents of a collection or collection group that match filters, in an order, up to a limit.
///
/// Methods return new objects. Two queries are equal if they request the same documents of the same database.
/// ``CollectionReference`` is the query for all documents of a collection. Immutable and thread-safe.
public class Query: NSObject, NSCopying, @unchecked Sendable {
    // Unchecked: `NSObject` hides it; both properties are constants of Sendable types.

    /// The database of the query.
    public let firestore: Firestore
    let definition: QueryDescription

    init(firestore: Firestore, definition: QueryDescription) {
        self.firestore = firestore
        self.definition = definition
    }

    /// A changed copy; the change may break a rule, which is a programming error.
    final func changed(_ change: (QueryDescription) throws(RuleViolation) -> QueryDescription) -> Query {
        Query(firestore: firestore, definition: enforcing { () throws(RuleViolation) in try change(definition) })
    }

    public override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? Query else { return false }
        return firestore === other.firestore && definition == other.definition
    }

    public override var hash: Int {
        var hasher = Hasher()
        hasher.combine(ObjectIdentifier(firestore))
        hasher.combine(definition.collectionID)
        hasher.combine(definition.parent)
        hasher.combine(definition.filters.count)
        hasher.combine(definition.limit?.count)
        return hasher.finalize()
    }

    /// Returns the receiver, which cannot change.
    public func copy(with zone: NSZone? = nil) -> Any { self }

    public override var description: String {
        "<\(type(of: self)): \(definition.collectionSegments.joined(separator: "/"))>"
    }
}

// MARK: - Orders and limits

extension Query {
    /// Sorts by a field, ascending. Documents without the field are left out.
    @discardableResult
    public func order(by field: String) -> Query { order(by: field, descending: false) }

    /// Sorts by a field, ascending.
    @discardableResult
    public func order(by path: FieldPath) -> Query { order(by: path, descending: false) }

    /// Sorts by a field, which may be inside maps (`address.city`).
    @discardableResult
    public func order(by field: String, descending: Bool) -> Query {
        order(by: FieldPath.ofDotted(field), descending: descending)
    }

    /// Sorts by a field.
    @discardableResult
    public func order(by path: FieldPath, descending: Bool) -> Query {
        changed { (_) throws(RuleViolation) in try definition(orderedBy: path, descending: descending) }
    }

    func definition(orderedBy path: FieldPath, descending: Bool) throws(RuleViolation) -> QueryDescription {
        try QueryRules.adding(
            .init(field: path.model(), direction: descending ? .descending : .ascending), to: definition)
    }

    /// Keeps the first documents of the order. A limit below 1 is a programming error.
    @discardableResult
    public func limit(to limit: Int) -> Query {
        changed { (query) throws(RuleViolation) in try QueryRules.limiting(query, to: limit, side: .first) }
    }

    /// Keeps the last documents of the order, which must be given by `order(by:)` before the query runs.
    @discardableResult
    public func limit(toLast limit: Int) -> Query {
        changed { (query) throws(RuleViolation) in try QueryRules.limiting(query, to: limit, side: .last) }
    }
}
