// The methods of the coders for `[String: Any]`, as in the SDK.
//
// They use wire bytes too, so there is one encoder and one decoder. Objects that wire bytes cannot represent exactly
// are kept in a table and replaced by its index (`ValueWireTag.treeObject`): timestamps keep their nanoseconds,
// references and sentinels their identity.

import Foundation

extension FirestoreEncoder {
    /// Encodes a value as a dictionary whose leaves are `String`, `NSNumber`, `Data`, `NSNull`, and, untouched,
    /// `Timestamp`, `GeoPoint`, `VectorValue`, `DocumentReference` and `FieldValue`.
    ///
    /// - Throws: `EncodingError.invalidValue` for values that are not a map, and for values that the strategies reject.
    public func encode<T: Encodable>(_ value: T) throws -> [String: Any] {
        try withSession(encoding: value, isTree: true) { session, fields in
            let objects = unsafe session.state.pointee.objects
            return try DocumentFields.read(fields) { cursor throws(MalformedDocument) in
                try AnyReader(owner: nil, objects: objects).dictionary(cursor, ValueWireTag.documentField, depth: 0)
            }
        }
    }
}

extension FirestoreDecoder {
    /// Decodes a value from a dictionary as `encode(_:)` or a snapshot's `data()` gives it.
    public func decode<T: Decodable>(_ type: T.Type, from container: Any) throws -> T {
        try decode(type, from: container, in: nil)
    }

    /// Decodes a value from the data of a document.
    ///
    /// - Parameter document: what `@DocumentID` properties receive.
    public func decode<T: Decodable>(_ type: T.Type, from container: Any, in document: DocumentReference?) throws -> T {
        let session = unsafe EncodingSession.take(from: CoderTables.ofThisThread.encoding)
        defer { session.recycle() }
        session.begin(nil, database: nil, isTree: true)
        let isDocument: Bool
        do throws(InvalidUserData) {
            isDocument = try session.putAnything(container)
        } catch {
            throw DecodingError.dataCorrupted(.init(codingPath: [], debugDescription: error.message))
        }
        let bytes = isDocument ? session.documentBytes : session.copiedBytes
        let objects = unsafe session.state.pointee.objects
        return try unsafe withSession(
            fields: bytes.span.bytes, document: document, objects: objects
        ) { session in
            let value = ValueRange(start: 0, end: bytes.count)
            if isDocument { return try session.decode(type, value, parent: -1) }
            // Not a dictionary.
            let frame = try session.pushFrame(.root, parent: -1, firstEntry: 0)
            return try session.decode(type, value, parent: frame)
        }
    }
}
