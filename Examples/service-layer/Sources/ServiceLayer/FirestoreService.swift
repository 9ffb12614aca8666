import FirebaseFirestore

enum FirestoreServiceError: Error, Equatable {
    case documentNotFound(id: String)
    case missingID
}

/// Stores models in collections of a database.
struct FirestoreService: Sendable {
    let database: @Sendable () -> Firestore

    init(database: @escaping @Sendable () -> Firestore = { Firestore.firestore() }) {
        self.database = database
    }

    private func collection(_ name: String) -> CollectionReference { database().collection(name) }

    /// The model with an id.
    func getOne<Model: FirebaseIdentifiable>(_ type: Model.Type, id: String, in name: String) async throws -> Model {
        let snapshot = try await collection(name).document(id).getDocument()
        guard snapshot.exists else { throw FirestoreServiceError.documentNotFound(id: id) }
        return try snapshot.data(as: type)
    }

    /// The models that a query finds; all of a collection without one.
    func getMany<Model: FirebaseIdentifiable>(
        _ type: Model.Type, in name: String, where narrowed: @Sendable (Query) -> Query = { $0 }
    ) async throws -> [Model] {
        try await narrowed(collection(name)).getDocuments().documents.map { try $0.data(as: type) }
    }

    /// Stores a new model under an automatic id.
    ///
    /// - Returns: the model with its id.
    func post<Model: FirebaseIdentifiable>(_ model: Model, to name: String) async throws -> Model {
        let reference = collection(name).document()
        var stored = model
        stored.id = reference.documentID
        try await reference.setData(Firestore.Encoder().encode(stored))
        return stored
    }

    /// Replaces a model.
    func put<Model: FirebaseIdentifiable>(_ model: Model, in name: String) async throws {
        guard !model.id.isEmpty else { throw FirestoreServiceError.missingID }
        try await collection(name).document(model.id).setData(Firestore.Encoder().encode(model))
    }

    /// Deletes a model.
    func delete<Model: FirebaseIdentifiable>(_ model: Model, in name: String) async throws {
        guard !model.id.isEmpty else { throw FirestoreServiceError.missingID }
        try await collection(name).document(model.id).delete()
    }
}
