// The keys and values of a client's store.
//
//     meta       01 'v'                                  -> | format, 1 |
//                01 'b'                                  -> | bytes of all documents, 8 | of all index entries, 8 |
//                                                           end of the reserved numbers of uses, 4 |
//                01 'u'                                  -> the user whose batches are applied; none: nobody
//                01 'd'                                  -> the name of the database
//                01 'c'                                  -> | end, 8 | length | user | for each claim, see `LocalUsers`
//                01 'w'                                  -> nothing, during a change of several commits
//     catalogue  02 | as the server's                    -> the server's entry, of collections with indexes
//     fields     04 | as the server's                    -> the number of the field, for fields of indexes
//     documents  10 | the server's key                   -> | flags, 1 | last used, 4 | update time, 8 |
//                                                           estimates, if there are any | record |
//     remote     11 | the same key without its space     -> | kind, 1 | visible kind, 1 | flags, 1 | time, 8 | record |
//     missing    12 | the same                           -> | flags, 1 | last used, 4 | time, 8 |
//     values     20 |, elements 21 | as the server's     -> an index entry, see `IndexKey`
//     batches    13 | number, 8                          -> see `LocalBatch`
//     targets    14 | canonical query, <= 248            -> see `LocalTarget`
//     members    15 | target, 4 | document key without its space and database -> | path, if the key is truncated |
//     bundles    16 | id, <= 248                         -> | created, 8 | id ... |
//     queries    17 | name, <= 248                       -> see `LocalNamedQuery`
//     indexes    18 | definition without phase, <= 248   -> see `LocalIndex`
//
// Spaces below 20 lie in LMDB files; what is in the others follows from them.
//
// The space `documents` has what the program sees: cached documents with the pending writes applied. The operators of
// the server read it. `remote` has the server's state of the documents that pending writes change, and only of those.

internal import Basics
internal import DocumentModel
internal import StoreFormat

/// The first byte of a key of a client's store.
enum LocalSpace {
    static let meta: UInt8 = 0x01
    static let catalogue = KeySpace.catalogue.rawValue
    static let fields = KeySpace.fields.rawValue
    static let documents = KeySpace.documents.rawValue
    static let values = KeySpace.values.rawValue
    static let elements = KeySpace.elements.rawValue
    static let remote: UInt8 = 0x11
    static let missing: UInt8 = 0x12
    static let batches: UInt8 = 0x13
    static let targets: UInt8 = 0x14
    static let members: UInt8 = 0x15
    static let bundles: UInt8 = 0x16
    static let namedQueries: UInt8 = 0x17
    static let indexes: UInt8 = 0x18

    /// Every space: none has history.
    static let all: Set<UInt8> = [
        meta, catalogue, fields, documents, remote, missing, values, elements, batches, targets, members, bundles,
        namedQueries, indexes,
    ]
}

/// Builds the keys of a client's store.
enum LocalKey {
    /// The number of the store's only database.
    static let database: UInt32 = 1
    static let format: [UInt8] = [LocalSpace.meta, UInt8(ascii: "v")]
    static let user: [UInt8] = [LocalSpace.meta, UInt8(ascii: "u")]
    static let claims: [UInt8] = [LocalSpace.meta, UInt8(ascii: "c")]
    static let unfinished: [UInt8] = [LocalSpace.meta, UInt8(ascii: "w")]
    static let byteCount: [UInt8] = [LocalSpace.meta, UInt8(ascii: "b")]
    static let databaseName: [UInt8] = [LocalSpace.meta, UInt8(ascii: "d")]

    /// A key of `documents` as a key of another space.
    static func moved(_ key: [UInt8], to space: UInt8) -> [UInt8] {
        var key = key
        key[0] = space
        return key
    }

    static func batch(_ number: UInt64) -> [UInt8] {
        var key = ByteBuffer(capacity: 16)
        key.append(byte: LocalSpace.batches)
        key.append(bigEndian: number)
        return key.copyBytes()
    }

    /// - Parameter canonical: the bytes of the query.
    static func target(_ canonical: [UInt8]) -> [UInt8] { key(LocalSpace.targets, canonical) }

    static func bundle(_ id: String) -> [UInt8] { key(LocalSpace.bundles, Array(id.utf8)) }

    static func namedQuery(_ name: String) -> [UInt8] { key(LocalSpace.namedQueries, Array(name.utf8)) }

    static func index(_ definition: [UInt8]) -> [UInt8] { key(LocalSpace.indexes, definition) }

    /// A long part is cut, and ends with a hash.
    private static func key(_ space: UInt8, _ part: [UInt8]) -> [UInt8] {
        var key = ByteBuffer(capacity: part.count + 1)
        key.append(byte: space)
        key.append(part)
        key.cutKeyPart(from: 1)
        return key.copyBytes()
    }

    /// The keys of a target's documents begin with this.
    static func members(of target: UInt32) -> [UInt8] {
        var key = ByteBuffer(capacity: 8)
        key.append(byte: LocalSpace.members)
        key.append(bigEndian: target)
        return key.copyBytes()
    }

    static func member(_ target: UInt32, _ documentKey: [UInt8]) -> [UInt8] {
        members(of: target) + documentKey[KeyLayout.pathOffset...]
    }

    /// The target of a key of `members`, and what the key of the document has after space and database.
    static func parts(ofMember key: RawSpan) -> (target: UInt32, tail: [UInt8]) {
        var target: UInt32 = 0
        for offset in 1..<5 { target = target << 8 | UInt32(key[byteAt: offset]) }
        return (target, [UInt8](copying: key.extracting(5..<key.byteCount)))
    }

    /// The first key after all that begin with a prefix whose last byte is not ff.
    static func end(of prefix: [UInt8]) -> [UInt8] {
        var end = prefix
        var index = end.count - 1
        while index > 0, end[index] == 0xff { index -= 1 }
        end[index] += 1
        return Array(end[...index])
    }
}

/// The key of a document by its name.
struct LocalLocation {
    let key: [UInt8]
    let isTruncated: Bool
    /// The path below `documents`.
    let path: [UInt8]

    init(path: [UInt8]) {
        var writer = ByteBuffer(capacity: path.count + 16)
        isTruncated = DocumentKey.write(path.byteSpan, database: LocalKey.database, into: &writer).isCut
        key = writer.copyBytes()
        self.path = path
    }
}
