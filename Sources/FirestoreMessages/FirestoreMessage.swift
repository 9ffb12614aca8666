// The requests and responses of `google.firestore.v1.Firestore`, as both ends of a connection see them.
//
// Each RPC's file declares its messages as plain structs that read themselves from wire bytes and write themselves as
// such. Documents pass through as the bytes of their `fields` entries.
//
//   hot messages      our own code, with the numbers of `FieldNumber`. A `...View` lends spans of the received bytes instead of
//                     copying, and lives as long as they do; a `...Writer` appends a response field by field.
//   other messages    protobuf-c's generated code behind a walk that bounds it: `Held/`
//
// Reading skips unknown fields, takes the last of a field that is sent twice, and checks every length: every error is an
// `InvalidDocument` with the byte's offset. docs/decisions/0002 says which messages are hot, and why.

package import DocumentModel

/// A message that can be read from and written to protobuf bytes.
package protocol FirestoreMessage {
    /// Reads the whole message; unknown fields are skipped.
    init(wire: RawSpan) throws
    /// Appends the message's fields, without a tag or length of its own.
    func encode(into writer: inout WireWriter)
}

extension FirestoreMessage {
    /// The message's bytes on their own.
    package func encodedBytes() -> [UInt8] {
        var writer = WireWriter()
        encode(into: &writer)
        return [UInt8](copying: writer.bytes)
    }
}
