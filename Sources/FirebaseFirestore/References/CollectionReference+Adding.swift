// New documents with random ids.

public import DocumentCoding
import Foundation

extension CollectionReference {
    /// Writes a new document with a random id, and returns its reference at once.
    @available(*, noasync, message: "await the async form in a function or an @main type, or pass completion: nil")
    @discardableResult
    public func addDocument(data: [String: Any]) -> DocumentReference { addDocument(data: data, completion: nil) }

    /// Writes a new document with a random id, and returns its reference at once.
    ///
    /// - Parameter completion: called after the server acknowledged or rejected the write.
    @discardableResult
    public func addDocument(
        data: [String: Any], completion: (((any Error)?) -> Void)?
    ) -> DocumentReference {
        let reference = document()
        reference.setData(data, completion: completion)
        return reference
    }

    /// Writes a new document with a random id, and returns its reference after the acknowledgement.
    @discardableResult
    nonisolated(nonsending) public func addDocument(data: [String: Any]) async throws -> DocumentReference {
        let reference = document()
        try await reference.setData(data)
        return reference
    }

    /// Writes an encoded value as a new document with a random id, and returns its reference at once.
    ///
    /// There is no async form, as in the SDK. Throws encoding errors only.
    @discardableResult
    public func addDocument<T: Encodable>(
        from value: T, encoder: Firestore.Encoder = .standard,
        completion: (((any Error)?) -> Void)? = nil
    ) throws -> DocumentReference {
        let reference = document()
        try reference.setData(from: value, encoder: encoder, completion: completion)
        return reference
    }
}
