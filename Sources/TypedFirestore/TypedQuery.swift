public import FirebaseFirestore

/// How a filter compares a field with a value.
public enum Comparison: Sendable, CaseIterable {
    /// The field has this value.
    case equal
    /// The field is there, not null, and has another value.
    case notEqual
    /// The field has a value of the same type that is less.
    case lessThan
    /// The field has a value of the same type that is less or the same.
    case lessThanOrEqual
    /// The field has a value of the same type that is greater.
    case greaterThan
    /// The field has a value of the same type that is greater or the same.
    case greaterThanOrEqual
}

/// A query for documents that are models of one type. A value; every method returns another query.
///
/// A key path stands for the field that the model stores the property in, custom coding keys and nested types included.
/// What is wrong with a key path, a value, a filter, an order, a limit or a cursor is thrown when the query runs:
/// `.invalidArgument` for what would be a programming error of the untyped query.
public struct TypedQuery<Model: Codable & Sendable>: Sendable {
    /// The query without its type.
    public let untyped: Query
    /// Why the query cannot run.
    let failure: (any Error)?

    /// Gives a query its type.
    public init(_ query: Query) { self.init(query, failure: nil) }

    init(_ query: Query, failure: (any Error)?) {
        untyped = query
        self.failure = failure
    }

    /// The query with a change that may fail; the first failure stays.
    func changed(_ change: (Query) throws -> Query) -> TypedQuery {
        if failure != nil { return self }
        do {
            return TypedQuery(try change(untyped), failure: nil)
        } catch {
            return TypedQuery(untyped, failure: error)
        }
    }

    private func filtered<Value: Encodable>(
        _ keyPath: KeyPath<Model, Value>, _ filter: (FieldPath) throws -> Filter
    ) -> TypedQuery {
        changed { try $0.filtered(by: try filter(try path(keyPath))) }
    }

    func path<Value: Encodable>(_ keyPath: KeyPath<Model, Value>) throws -> FieldPath {
        try FieldPaths.find(keyPath, on: untyped.firestore)
    }

    /// The query, if it can run.
    func ready() throws -> Query {
        if let failure { throw failure }
        return try untyped.executable()
    }

    // MARK: Filters

    /// Keeps the documents whose field compares to the value in this way. `nil` compares with null.
    public func `where`<Value: Encodable & Sendable>(
        _ keyPath: KeyPath<Model, Value>, _ comparison: Comparison, _ value: Value
    ) -> TypedQuery {
        filtered(keyPath) { path in
            let value = try TypedOperand.encode(value)
            return switch comparison {
            case .equal: Filter.whereField(path, isEqualTo: value)
            case .notEqual: Filter.whereField(path, isNotEqualTo: value)
            case .lessThan: Filter.whereField(path, isLessThan: value)
            case .lessThanOrEqual: Filter.whereField(path, isLessThanOrEqualTo: value)
            case .greaterThan: Filter.whereField(path, isGreaterThan: value)
            case .greaterThanOrEqual: Filter.whereField(path, isGreaterOrEqualTo: value)
            }
        }
    }

    /// Keeps the documents whose field is one of the values.
    public func `where`<Value: Encodable & Sendable>(
        _ keyPath: KeyPath<Model, Value>, in values: [Value]
    ) -> TypedQuery {
        filtered(keyPath) { Filter.whereField($0, in: try values.map(TypedOperand.encode)) }
    }

    /// Keeps the documents whose field is there, not null, and none of the values.
    public func `where`<Value: Encodable & Sendable>(
        _ keyPath: KeyPath<Model, Value>, notIn values: [Value]
    ) -> TypedQuery {
        filtered(keyPath) { Filter.whereField($0, notIn: try values.map(TypedOperand.encode)) }
    }

    /// Keeps the documents whose array has the element.
    public func `where`<Element: Encodable & Sendable>(
        _ keyPath: KeyPath<Model, [Element]>, contains element: Element
    ) -> TypedQuery {
        filtered(keyPath) { Filter.whereField($0, arrayContains: try TypedOperand.encode(element)) }
    }

    /// Keeps the documents whose array has at least one of the elements.
    public func `where`<Element: Encodable & Sendable>(
        _ keyPath: KeyPath<Model, [Element]>, containsAny elements: [Element]
    ) -> TypedQuery {
        filtered(keyPath) { Filter.whereField($0, arrayContainsAny: try elements.map(TypedOperand.encode)) }
    }

    // MARK: Order and limits

    /// Sorts by the field, after the orders before it.
    public func order<Value: Encodable>(by keyPath: KeyPath<Model, Value>, descending: Bool = false) -> TypedQuery {
        changed { try $0.ordered(by: try path(keyPath), descending: descending) }
    }

    /// Keeps the first results. The limit must be positive.
    public func limit(to count: Int) -> TypedQuery { changed { try $0.limited(to: count) } }

    /// Keeps the last results, which needs an order, before or after this. The limit must be positive.
    public func limit(toLast count: Int) -> TypedQuery { changed { try $0.limited(toLast: count) } }

    /// Begins with the results after a document of an earlier result, which must have all fields of the order.
    public func start(after document: TypedSnapshot<Model>) -> TypedQuery {
        changed { try $0.starting(with: document.untyped, isIncluded: false) }
    }

    /// Begins with a document of an earlier result, which must have all fields of the order.
    public func start(at document: TypedSnapshot<Model>) -> TypedQuery {
        changed { try $0.starting(with: document.untyped, isIncluded: true) }
    }

    // MARK: Results

    /// Runs the query.
    public func get() async throws -> TypedQuerySnapshot<Model> {
        TypedQuerySnapshot(try await ready().getDocuments())
    }

    /// The number of results.
    public func count() async throws -> Int {
        try await ready().count.getAggregation(source: .server).count.intValue
    }

    /// The sum of a field over the results that have a number there; 0 if none has.
    public func sum<Value: Encodable>(of keyPath: KeyPath<Model, Value>) async throws -> Double {
        let field = AggregateField.sum(try path(keyPath))
        let total = try await ready().aggregate([field]).getAggregation(source: .server)
        return (total.get(field) as? NSNumber)?.doubleValue ?? 0
    }

    /// The mean of a field over the results that have a number there; `nil` if none has.
    public func average<Value: Encodable>(of keyPath: KeyPath<Model, Value>) async throws -> Double? {
        let field = AggregateField.average(try path(keyPath))
        let total = try await ready().aggregate([field]).getAggregation(source: .server)
        return (total.get(field) as? NSNumber)?.doubleValue
    }

    /// The results, then the results after every change. Each iteration listens by itself, until it ends.
    public var snapshots: TypedSnapshots<TypedQuerySnapshot<Model>> {
        TypedSnapshots { [self] receive in
            try ready().addSnapshotListener { snapshot, error in
                receive(snapshot.map { .success(TypedQuerySnapshot($0)) } ?? error.map { .failure($0) })
            }
        }
    }
}

/// Values of filters and changes in the form that Firestore's own API takes.
enum TypedOperand {
    static func encode<Value: Encodable>(_ value: Value) throws -> Any {
        try Firestore.Encoder().encode(["value": value])["value"] ?? NSNull()
    }
}
