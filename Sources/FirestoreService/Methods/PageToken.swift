// Where a listing continues: the contents of `next_page_token`.
//
// A token is the position after which the next page begins, in hexadecimal: a version byte, a kind byte, and
//
//   kind 1, by name     collection id length (u16, big-endian), collection id, document id
//   kind 2, by order    a `Cursor` message: the values by which the last document was ordered
//   kind 3, collections collection id
//   kind 4, by order    version that was read (u64, big-endian), then as in kind 1
//
// Kind 4 stands for values that would make a token too long for a URL: they are read again at that version, as long as
// it is within the retention. The others say nothing of the state that was read: each page reads what its request asks
// for. So a token has at most about 6 KiB. A token that this server did
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
    /// After a document of a collection, by the values that it has at a version, in microseconds.
    case ordered(version: UInt64, collectionID: [UInt8], documentID: [UInt8])

    private static let version: UInt8 = 1

    /// The token's text.
    var text: String {
        var bytes: [UInt8] = [Self.version]
        switch self {
        case .document(let collectionID, let documentID): bytes += [1] + Self.bytes(collectionID, documentID)
        case .cursor(let cursor):
            var writer = ByteBuffer()
            cursor.encode(into: &writer)
            bytes += [2] + writer.copyBytes()
        case .collection(let id):
            bytes += [3] + id
        case .ordered(let version, let collectionID, let documentID):
            bytes += [4] + (0..<8).map { UInt8(truncatingIfNeeded: version >> UInt64(56 - 8 * $0)) }
            bytes += Self.bytes(collectionID, documentID)
        }
        return Hexadecimal.text(bytes.byteSpan)
    }

    private static func bytes(_ collectionID: [UInt8], _ documentID: [UInt8]) -> [UInt8] {
        [UInt8(truncatingIfNeeded: collectionID.count >> 8), UInt8(truncatingIfNeeded: collectionID.count)]
            + collectionID + documentID
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
            return ids(body).map { .document(collectionID: $0.collection, documentID: $0.document) }
        case 2:
            let message = Array(body)
            guard let cursor = try? Cursor(wire: message.span.bytes), !cursor.values.isEmpty else { return nil }
            return .cursor(cursor)
        case 3:
            return body.isEmpty ? nil : .collection(Array(body))
        case 4:
            let version = body.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return ids(body.dropFirst(8)).map {
                .ordered(version: version, collectionID: $0.collection, documentID: $0.document)
            }
        default:
            return nil
        }
    }

    private static func ids(_ bytes: ArraySlice<UInt8>) -> (collection: [UInt8], document: [UInt8])? {
        guard bytes.count >= 2 else { return nil }
        let length = bytes.prefix(2).reduce(0) { $0 << 8 | Int($1) }
        let ids = bytes.dropFirst(2)
        return ids.count > length ? (Array(ids.prefix(length)), Array(ids.dropFirst(length))) : nil
    }
}
