public import FirebaseFirestore

/// A document as it was read. The model is decoded when it is asked for.
public struct TypedSnapshot<Model: Codable & Sendable>: Sendable {
    /// The snapshot without its type.
    public let untyped: DocumentSnapshot

    init(_ snapshot: DocumentSnapshot) { untyped = snapshot }

    /// The id of the document.
    public var id: String { untyped.documentID }
    /// The document.
    public var document: TypedDocument<Model> { TypedDocument(untyped.reference) }
    /// Whether the server has not acknowledged the state yet.
    public var hasPendingWrites: Bool { untyped.metadata.hasPendingWrites }

    /// The model, decoded at each call.
    ///
    /// - Throws: a `DecodingError` if the document cannot be decoded as the model.
    public var model: Model { get throws { try untyped.data(as: Model.self) } }
}

/// The results of a query at one moment.
public struct TypedQuerySnapshot<Model: Codable & Sendable>: Sendable {
    /// The snapshot without its type.
    public let untyped: QuerySnapshot

    init(_ snapshot: QuerySnapshot) { untyped = snapshot }

    /// The documents, in the order of the query.
    public var documents: [TypedSnapshot<Model>] { untyped.documents.map(TypedSnapshot.init) }
    /// The number of documents.
    public var count: Int { untyped.count }
    /// Whether the results come from the cache alone.
    public var isFromCache: Bool { untyped.metadata.isFromCache }

    /// The models of all documents.
    ///
    /// - Throws: a `DecodingError` for the first document that cannot be decoded as the model.
    public var models: [Model] { get throws { try untyped.documents.map { try $0.data(as: Model.self) } } }

    /// What has changed since the snapshot before; applied in order to its documents they give these.
    public var changes: [TypedChange<Model>] { untyped.documentChanges.map(TypedChange.init) }
}

/// A change of a query's results.
public struct TypedChange<Model: Codable & Sendable>: Sendable {
    /// What has happened to the document.
    public let kind: DocumentChangeType
    /// The document; of a removed one the last state.
    public let document: TypedSnapshot<Model>
    /// Where the document was; `nil` for an added one.
    public let oldIndex: Int?
    /// Where the document is; `nil` for a removed one.
    public let newIndex: Int?

    init(_ change: DocumentChange) {
        kind = change.type
        document = TypedSnapshot(change.document)
        oldIndex = Int(exactly: change.oldIndex).flatMap { $0 == NSNotFound ? nil : $0 }
        newIndex = Int(exactly: change.newIndex).flatMap { $0 == NSNotFound ? nil : $0 }
    }
}

/// The snapshots of a listener, in order, until it fails or the iteration ends. Each iteration adds a listener.
public struct TypedSnapshots<Element: Sendable>: AsyncSequence, Sendable {
    /// The error that ends the listener.
    public typealias Failure = any Error
    /// Receives the snapshots of one listener.
    public typealias AsyncIterator = AsyncThrowingStream<Element, any Error>.Iterator

    /// Adds a listener, which hands over each snapshot or the error that ends it.
    typealias Listen =
        @Sendable (
            _ receive: @escaping @Sendable (Result<Element, any Error>?) -> Void
        ) throws -> any ListenerRegistration

    private let listen: Listen

    init(_ listen: @escaping Listen) { self.listen = listen }

    /// Begins to listen.
    public func makeAsyncIterator() -> AsyncIterator {
        let (stream, continuation) = AsyncThrowingStream<Element, any Error>.makeStream()
        do {
            // Registrations may be removed on any thread.
            let registration = try listen { result in
                switch result {
                case .success(let snapshot)?: continuation.yield(snapshot)
                case .failure(let error)?: continuation.finish(throwing: error)
                case nil: break
                }
            }
            continuation.onTermination = { _ in registration.remove() }
        } catch {
            continuation.finish(throwing: error)
        }
        return stream.makeAsyncIterator()
    }
}
