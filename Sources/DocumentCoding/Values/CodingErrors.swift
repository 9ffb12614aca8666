/// Thrown when a value is encoded with a coder that cannot represent it.
///
/// Only Firestore's own coders can encode and decode the values of this module. All other failures of coding are the
/// standard library's `EncodingError` and `DecodingError`.
public enum FirestoreEncodingError: Error, Equatable, Sendable {
    /// The type can only be encoded by `Firestore.Encoder`, and some (`@DocumentID`) only as a property.
    case encodingIsNotSupported(String)
}

/// A type met a decoder that cannot make it.
public enum FirestoreDecodingError: Error, Equatable, Sendable {
    /// The type can only be decoded by `Firestore.Decoder`, and some (`@DocumentID`) only from a snapshot.
    case decodingIsNotSupported(String)
    /// Part of the SDK's surface; never thrown, as there: a stored field named like a `@DocumentID` property is
    /// ignored.
    case fieldNameConflict(String)
}
