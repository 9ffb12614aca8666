// How far the copy of a database is: what the target stores with what it has applied, and the source continues at.
//
//     walk       all documents in the order of their keys; changes since `start` are noted meanwhile
//     rounds     the documents that have changed since `base`, again and again
//     results    after the release and the last round: remembered results; then the target owns the database
//
// The target has every change up to `base`. So a source that does not know any more what has changed walks again: it
// sends the documents that have changed since `base`, and only the names of the others, from which the target finds out
// what was deleted.
//
//     | format 1 | phase, 1 | base, 8 | start, 8 | documents, 8 | position |

internal import Basics
internal import DocumentModel
internal import StoreFormat

/// A place in the copy of a database. The target compares its bytes, and only the source reads them.
struct CopyPosition: Equatable {
    enum Phase: UInt8 {
        case walk = 1
        case round = 2
        case results = 3
    }

    var phase: Phase
    /// The target has all changes up to this version of the source.
    var base: UInt64
    /// Walk, round: the version at which it began; it brings the target at least to there. 0: it has not begun.
    var start: UInt64
    /// Documents sent since the copy began.
    var documents: UInt64
    /// Walk: the key to continue at, without space and database. Round: the last path sent. Results: the last one sent.
    var position: [UInt8]

    private static let format: UInt8 = 1

    static func walk(above base: UInt64, from start: UInt64, documents: UInt64) -> CopyPosition {
        CopyPosition(phase: .walk, base: base, start: start, documents: documents, position: [])
    }

    /// The target has everything up to a version.
    func complete(through version: UInt64) -> CopyPosition {
        CopyPosition(phase: .round, base: version, start: 0, documents: documents, position: [])
    }

    init(phase: Phase, base: UInt64, start: UInt64, documents: UInt64, position: [UInt8]) {
        self.phase = phase
        self.base = base
        self.start = start
        self.documents = documents
        self.position = position
    }

    /// Reads what ``bytes`` gave; nil if it is something else, or empty.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 26, bytes[0] == Self.format, let phase = Phase(rawValue: bytes[1]) else { return nil }
        self.phase = phase
        let span = bytes.byteSpan
        base = span.littleEndian64(at: 2)
        start = span.littleEndian64(at: 10)
        documents = span.littleEndian64(at: 18)
        position = Array(bytes[26...])
    }

    var bytes: [UInt8] {
        var writer = ByteBuffer(capacity: 26 + position.count)
        writer.append(byte: Self.format)
        writer.append(byte: phase.rawValue)
        writer.append(littleEndian: base)
        writer.append(littleEndian: start)
        writer.append(littleEndian: documents)
        writer.append(position)
        return writer.copyBytes()
    }
}

/// The keys of the documents of a database. A position is a key without space and database; an empty one begins.
enum MoveKeys {
    static func key(_ position: [UInt8], in database: UInt32) -> [UInt8] {
        let root: [UInt8] = []
        var key = ByteBuffer(capacity: 8 + position.count)
        DocumentKey.writeSubtree(root.byteSpan, database: database, into: &key)
        key.append(position)
        return key.copyBytes()
    }

    /// What follows all of them.
    static func end(of database: UInt32) -> [UInt8] { key([], in: database + 1) }
}
