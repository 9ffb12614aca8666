// Reads of one document.

public import DocumentCoding
import Foundation

extension DocumentReference {
    /// Reads the document. A document that does not exist is not an error: `exists` of its snapshot is false.
    ///
    /// Without the server the document comes from the cache; the error is `.unavailable` if the cache does not have it,
    /// or has only its deletion.
    ///
    /// - Parameter completion: called on the queue of the settings with a snapshot or an error.
    public func getDocument(completion: @escaping (DocumentSnapshot?, (any Error)?) -> Void) {
        getDocument(source: .default, completion: completion)
    }

    /// Reads the document from the given source. A read from the cache fails with `.unavailable` if the cache knows
    /// nothing of the document; `exists` is false if it knows its deletion.
    public func getDocument(
        source: FirestoreSource, completion: @escaping (DocumentSnapshot?, (any Error)?) -> Void
    ) {
        let firestore = firestore
        let box = UncheckedBox(completion)
        firestore.read(self, source: source) { result in
            firestore.callBack {
                switch result {
                case .success(let snapshot): box.value(snapshot, nil)
                case .failure(let error): box.value(nil, error.asNSError)
                }
            }
        }
    }

    /// Reads the document. A document that does not exist is not an error: `exists` of its snapshot is false.
    @discardableResult
    nonisolated(nonsending) public func getDocument() async throws -> DocumentSnapshot {
        try await getDocument(source: .default)
    }

    /// Reads the document from the given source.
    @discardableResult
    nonisolated(nonsending) public func getDocument(source: FirestoreSource) async throws -> DocumentSnapshot {
        try await firestore.awaitRead { self.firestore.read(self, source: source, cancellation: $0, completion: $1) }
    }

    /// Reads the document and makes a value of it.
    ///
    /// - Parameter completion: called on the queue of the settings. Its error is a `DecodingError` where the document
    ///   does not have the form of the type, `valueNotFound` where it does not exist, else an `NSError`.
    public func getDocument<T: Decodable>(
        as type: T.Type, with serverTimestampBehavior: ServerTimestampBehavior = .none,
        decoder: Firestore.Decoder = .standard, source: FirestoreSource = .default,
        completion: @escaping (Result<T, any Error>) -> Void
    ) {
        getDocument(source: source) { snapshot, error in
            guard let snapshot else {
                return completion(.failure(error ?? NSError.firestore(.internal, "The read had no result.")))
            }
            completion(Result { try snapshot.data(as: type, with: serverTimestampBehavior, decoder: decoder) })
        }
    }

    /// Reads the document and makes a value of it.
    ///
    /// - Throws: `DecodingError` where the document does not have the form of the type, `valueNotFound` where it does
    ///   not exist (unless the type is optional), else an `NSError`.
    @discardableResult
    nonisolated(nonsending) public func getDocument<T: Decodable>(
        as type: T.Type, with serverTimestampBehavior: ServerTimestampBehavior = .none,
        decoder: Firestore.Decoder = .standard, source: FirestoreSource = .default
    ) async throws -> T {
        try await getDocument(source: source).data(as: type, with: serverTimestampBehavior, decoder: decoder)
    }
}
