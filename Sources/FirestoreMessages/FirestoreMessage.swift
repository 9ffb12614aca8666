package import Basics
import DocumentModel

/// A request or response of `google.firestore.v1.Firestore` that can be read from and written to protobuf bytes.
///
/// The file of each RPC declares its messages. Document fields are passed on as bytes. There are two kinds of messages:
///
/// - Hot messages have hand-written code, with the numbers of `FieldNumber`. A `...View` borrows spans of the received
///   bytes instead of copying them. A `...Writer` appends a response field by field.
/// - Other messages use the code that protobuf-c generates, after a walk over the bytes that bounds its cost: `Held/`.
///
/// Reading skips unknown fields, takes the last of a field that is sent twice, and checks every length. Errors are
/// ``InvalidDocument`` with a byte offset. docs/decisions/0002 lists the hot messages and gives the reasons.
package protocol FirestoreMessage {
    /// Reads the whole message; unknown fields are skipped.
    init(wire: RawSpan) throws
    /// Appends the fields of the message, without tag and length.
    func encode(into writer: inout ByteBuffer)
}

extension DocumentMask: FirestoreMessage {}
extension Cursor: FirestoreMessage {}

extension FirestoreMessage {
    /// The message's bytes on their own.
    package func encodedBytes() -> [UInt8] {
        var writer = ByteBuffer()
        encode(into: &writer)
        return [UInt8](copying: writer.bytes)
    }
}
