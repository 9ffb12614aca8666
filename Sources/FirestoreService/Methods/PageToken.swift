// Where a listing continues: the contents of `next_page_token`.
//
// A token is the position after which the next page begins, in hexadecimal: a version byte, a kind byte, and
//
//   kind 1, by name     collection id length (u16, big-endian), collection id, document id
//   kind 2, by order    a `Cursor` message: the values by which the last document was ordered
//   kind 3, collections collection id
//
// It says nothing of the state that was read: each page reads what its request asks for. A token that this server did
// not make fails with INVALID_ARGUMENT; one made for another listing is only a position there.

internal import Basics
internal import DocumentModel

/// A position in a listing.
enum PageToken: Equatable {
    /// After a document of a collection, by name.
    case document(collectionID: [UInt8], documentID: [UInt8])
    /// After the document that was ordered by these values.
    case cursor(Cursor)
    /// After a collection id.
    case collection([UInt8])

    private static let version: UInt8 = 1

    /// The token's text.
    var text: String {
        var bytes: [UInt8] = [Self.version]
        switch self {
        case .document(let collectionID, let documentID):
            bytes += [
                1, UInt8(truncatingIfNeeded: collectionID.count >> 8), UInt8(truncatingIfNeeded: collectionID.count),
            ]
            bytes += collectionID + documentID
        case .cursor(let cursor):
            var writer = ByteBuffer()
            cursor.encode(into: &writer)
            bytes += [2] + writer.copyBytes()
        case .collection(let id):
            bytes += [3] + id
        }
        return Hexadecimal.text(bytes.byteSpan)
    }

    /// Reads a token's text.
    init(_ text: String) throws(RequestError) {
        guard let token = Self.read(text) else { throw .invalidArgument("The page token is not valid.") }
        self = token
    }

    private static func read(_ text: String) -> PageToken? {
        guard let bytes = Hexadecimal.bytes(text), bytes.count >= 2 else { return nil }
        guard bytes[0] == version else { return nil }
        let body = bytes.dropFirst(2)
        switch bytes[1] {
        case 1:
            guard body.count >= 2 else { return nil }
            let length = Int(bytes[2]) << 8 | Int(bytes[3])
            let ids = body.dropFirst(2)
            guard ids.count > length else { return nil }
            return .document(collectionID: Array(ids.prefix(length)), documentID: Array(ids.dropFirst(length)))
        case 2:
            let message = Array(body)
            guard let cursor = try? Cursor(wire: message.span.bytes), !cursor.values.isEmpty else { return nil }
            return .cursor(cursor)
        case 3:
            return body.isEmpty ? nil : .collection(Array(body))
        default:
            return nil
        }
    }
}
