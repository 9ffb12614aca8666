// The SDK's own methods of the coders: to and from `[String: Any]`.
//
// They go through wire bytes too, so that there is one encoder and one decoder. What wire bytes would change passes by
// in a table of objects, with a number in its place (`ValueWireTag.treeObject`): timestamps keep their nanoseconds,
// references and sentinels their identity.

import Foundation

extension FirestoreEncoder {
    /// Encodes a value as a dictionary whose leaves are `String`, `NSNumber`, `Data`, `NSNull`, and, untouched,
    /// `Timestamp`, `GeoPoint`, `VectorValue`, `DocumentReference` and `FieldValue`.
    ///
    /// - Throws: `EncodingError.invalidValue` for values that are no map at the top, and for what strategies refuse.
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
            fields: bytes.span.bytes, document: document, owner: document?.owner, objects: objects
        ) { session in
            let value = WireValue(start: 0, end: bytes.count)
            if isDocument { return try session.decode(type, value, parent: -1) }
            // Not a dictionary: an only element of an array that stands for nothing.
            let frame = try session.pushFrame(.array, parent: -1, firstEntry: 0)
            return try session.decode(type, value, parent: frame)
        }
    }
}
