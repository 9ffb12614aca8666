/// A model that is stored as a document. The id is that of the document; it is empty before the model is stored.
protocol FirebaseIdentifiable: Hashable, Codable, Sendable {
    var id: String { get set }
}
