package import Basics
import DocumentModel

/// The state of a listener's database, as a token that the server sends and a client returns to resume.
///
/// The bytes are those of a message `{1: {1: microseconds}}`, as the cloud and its emulator send them. A token is a
/// time alone, so one serves all targets of a stream, another connection, and a server that has been restarted.
package struct ResumeToken: Equatable, Sendable {
    private static let time = 1
    private static let microseconds = 1

    /// A commit version: microseconds since 1970.
    package var microseconds: UInt64

    package init(microseconds: UInt64) {
        self.microseconds = microseconds
    }

    /// Nil for bytes that are not a token, an empty one included.
    package init?(bytes: RawSpan) {
        do throws(InvalidDocument) {
            var found: UInt64?
            var reader = WireReader(bytes)
            while let tag = try reader.nextTag() {
                guard tag.fieldNumber == Self.time else { return nil }
                var message = try reader.message(tag)
                while let tag = try message.nextTag() {
                    guard tag.fieldNumber == Self.microseconds else { return nil }
                    found = try message.uint64(tag)
                }
            }
            guard let found else { return nil }
            microseconds = found
        } catch {
            return nil
        }
    }

    /// Appends the bytes of the token.
    package func encode(into writer: inout ByteBuffer) {
        writer.withLengthPrefix(field: Self.time) { $0.appendField(Self.microseconds, varint: microseconds) }
    }
}
