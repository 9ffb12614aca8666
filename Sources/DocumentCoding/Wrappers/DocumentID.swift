// @DocumentID: a property that receives the id, or the reference, of the document it was decoded from.

import Foundation

/// A type that can hold the identity of a document: `String`, `DocumentReference`, or a type of your own.
public protocol DocumentIDWrappable {
    /// Makes the value for the document at `documentReference`.
    static func wrap(_ documentReference: DocumentReference) throws -> Self
}

extension String: DocumentIDWrappable {
    /// Returns the id of the document.
    public static func wrap(_ documentReference: DocumentReference) throws -> String { documentReference.documentID }
}

extension DocumentReference: DocumentIDWrappable {
    /// Returns the reference.
    public static func wrap(_ documentReference: DocumentReference) throws -> Self {
        // The class is final: Self is DocumentReference.
        documentReference as! Self
    }
}

/// A property that is filled with the identity of the document when a snapshot is decoded, and never encoded.
///
/// ```swift
/// struct Book: Codable {
///     @DocumentID var id: String?
///     var title: String
/// }
/// ```
///
/// In a nested structure it receives the id of the enclosing document. A stored field of the same name is ignored.
@propertyWrapper
public struct DocumentID<Value: DocumentIDWrappable & Codable> {
    private var value: Value?

    /// Creates the wrapper; a value given here is never written, which is logged as warning `I-FST000002`.
    public init(wrappedValue value: Value?) {
        if let value { Self.warn(about: value) }
        self.value = value
    }

    private init(decoded value: Value) {
        self.value = value
    }

    /// The identity of the document that the value was decoded from; nil before that.
    public var wrappedValue: Value? {
        get { value }
        set { value = newValue }
    }

    private static func warn(about value: Value) {
        let message = """
            [FirebaseFirestore][I-FST000002] Attempting to initialize or set a @DocumentID property with a non-nil \
            value: "\(value)". The document ID is managed by Firestore and any initialized or set value will be \
            ignored. The ID is automatically set when reading from Firestore.

            """
        FileHandle.standardError.write(Data(message.utf8))
    }
}

extension CodingUserInfoKey {
    /// Under which Firestore's decoder passes the reference of the document being decoded.
    package static let documentReference = CodingUserInfoKey(rawValue: "DocumentRefUserInfoKey")!
}

extension DocumentID: Codable {
    /// Wraps the reference that a snapshot passes.
    ///
    /// - Throws: `FirestoreDecodingError.decodingIsNotSupported` where no document is being decoded.
    public init(from decoder: any Decoder) throws {
        let document =
            if let decoder = decoder as? WireDecoder {
                decoder.document
            } else {
                decoder.userInfo[.documentReference] as? DocumentReference
            }
        guard let reference = document else {
            throw FirestoreDecodingError.decodingIsNotSupported(
                """
                DocumentID values can only be decoded with Firestore.Decoder from a document: use data(as:) of a \
                snapshot, or decode(_:from:in:) with a reference.
                """)
        }
        self.init(decoded: try Value.wrap(reference))
    }

    /// Firestore's encoder skips such properties and does not get here.
    ///
    /// - Throws: `FirestoreEncodingError.encodingIsNotSupported`, always.
    public func encode(to encoder: any Encoder) throws {
        throw FirestoreEncodingError.encodingIsNotSupported(
            "DocumentID values can only be encoded with Firestore.Encoder, as a property of a structure.")
    }
}

extension KeyedDecodingContainer {
    /// Makes a document id whether or not the container holds a value under the key.
    public func decode<Value>(_ type: DocumentID<Value>.Type, forKey key: Key) throws -> DocumentID<Value> {
        try DocumentID(from: try superDecoder(forKey: key))
    }
}

extension DocumentID: Equatable where Value: Equatable {}
extension DocumentID: Hashable where Value: Hashable {}
extension DocumentID: Sendable where Value: Sendable {}

extension DocumentID: CustomStringConvertible {
    /// The wrapped optional as it prints by itself.
    public var description: String { String(describing: value) }
}
