public import FirebaseFirestore

/// A collection of documents that are models of one type.
public struct TypedCollection<Model: Codable & Sendable>: Sendable {
    /// The collection without its type.
    public let untyped: CollectionReference

    /// Gives a collection its type.
    public init(_ collection: CollectionReference) { untyped = collection }

    /// All documents of the collection.
    public var all: TypedQuery<Model> { TypedQuery(untyped) }

    /// A document by its id.
    public func document(_ id: String) -> TypedDocument<Model> { TypedDocument(untyped.document(id)) }

    /// A new document with an automatic id; nothing is written.
    public func document() -> TypedDocument<Model> { TypedDocument(untyped.document()) }

    /// Stores a model in a new document, and returns after the acknowledgement.
    public func add(_ model: Model) async throws -> TypedDocument<Model> {
        let document = document()
        try await document.set(model)
        return document
    }

    /// See ``TypedQuery/where(_:_:_:)``.
    public func `where`<Value: Encodable & Sendable>(
        _ keyPath: KeyPath<Model, Value>, _ comparison: Comparison, _ value: Value
    ) -> TypedQuery<Model> {
        all.where(keyPath, comparison, value)
    }

    /// See ``TypedQuery/order(by:descending:)``.
    public func order<Value: Encodable>(
        by keyPath: KeyPath<Model, Value>, descending: Bool = false
    ) -> TypedQuery<Model> {
        all.order(by: keyPath, descending: descending)
    }
}

extension Firestore {
    /// A collection whose documents are models of one type.
    ///
    /// - Parameter path: an odd number of segments, as for `collection(_:)`.
    public func collection<Model: Codable & Sendable>(_ path: String, of type: Model.Type) -> TypedCollection<Model> {
        TypedCollection(collection(path))
    }

    /// A document that is a model of a type.
    ///
    /// - Parameter path: an even number of segments, as for `document(_:)`.
    public func document<Model: Codable & Sendable>(_ path: String, of type: Model.Type) -> TypedDocument<Model> {
        TypedDocument(document(path))
    }

    /// All collections of an id, whose documents are models of one type.
    public func collectionGroup<Model: Codable & Sendable>(_ id: String, of type: Model.Type) -> TypedQuery<Model> {
        TypedQuery(collectionGroup(id))
    }
}
