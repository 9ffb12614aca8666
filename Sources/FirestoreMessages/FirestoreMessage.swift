// The requests and responses of `google.firestore.v1.Firestore`, as both ends of a connection see them.
//
// Each RPC's file declares its messages as plain structs that read themselves from wire bytes and write themselves as
// such; field numbers stand beside the code that uses them and are those of the public API. What a document holds is
// never unpacked here: documents pass through as the bytes of their `fields` entries.
//
// The messages that carry most of the traffic have a second form, a `...View`: it lends spans of the received bytes
// instead of copying, so that a server answers a point read without allocating. Views live as long as the bytes.
//
// Decoding skips unknown fields, takes the last of a field that is sent twice, and never trusts a length: every error
// is an `InvalidDocument` with the byte's offset.

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
