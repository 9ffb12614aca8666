// The key spaces: what the first byte of every key says. The whole layout is drawn in `docs/keys.md`.
//
//     documents   10 | database, 4 | collection path, <= 248 | 01 | document id, <= 248
//     catalogue   02 | database, 4 | collection path, <= 248
//     databases   01 | 'd' | database name
//     counters    01 | 'n'
//     groups      01 | 'g' | database, 4 | hash of the collection id, 8 | collection path, <= 248
//     sessions    03 | session, 16 | slot, 4
//     fields      04 | database, 4 | number of the field around it, varint | field name, <= 248
//     values      20 | collection number, varint | field number, varint | value, <= 220 | id | bytes of the id, 1
//     definitions 05 | database, 4 | index number, 8
//     overrides   06 | database, 4 | collection id, <= 248
//     elements    21 | the same, for each element of an array
//     searches    23 | index number, varint | collection number, varint | kind, 1 | ...
//
// Never change a value here: every data directory has it.

internal import DocumentModel

/// The first byte of a key.
package enum KeySpace: UInt8 {
    /// The store's own tables: databases and counters. Latest only.
    case meta = 0x01
    /// One entry for each collection that ever held a document. Latest only.
    case catalogue = 0x02
    /// Results of recent commits, for requests that are repeated. Latest only.
    case sessions = 0x03
    /// Numbers of fields, which stand for their names in index keys. Latest only.
    case fields = 0x04
    /// Declared indexes: what they hold, and how far they are. Latest only.
    case definitions = 0x05
    /// Collection groups with overridden fields; see `GroupFields`. Latest only.
    case overrides = 0x06
    /// The documents, with history.
    case documents = 0x10
    /// Index entries by the value of one field, with history; see `IndexKey`.
    case values = 0x20
    /// Index entries by the elements of one array, with history.
    case elements = 0x21
    /// Entries of declared indexes, with history; see `DeclaredIndex`.
    case declared = 0x22
    /// Entries of indexes for searches, with history; see `SearchKey`.
    case searches = 0x23
}

/// Sizes and marker bytes of the key layout.
package enum KeyLayout {
    /// Bytes of a collection path, or of a document id, that stand in a key as they are; what is longer is cut here and
    /// ends in `cutMarker` and its SHA-256.
    package static let plainBytesMax = 215
    /// `cutMarker` and the hash.
    package static let cutTailBytes = 33
    /// The longest key of any space: 1 + 4 + 248 + 1 + 248.
    package static let keyBytesMax = 6 + 2 * (plainBytesMax + cutTailBytes)
    /// Bytes before a collection path: the space and the database number.
    package static let pathOffset = 5

    /// Ends a string segment; sorts below every byte of one.
    package static let terminator: UInt8 = 0x00
    /// Stands before the document id. Sorts below the markers of segments, so that a collection's documents come before
    /// everything that lies deeper.
    package static let documentMarker: UInt8 = 0x01
    /// Begins a numeric segment.
    static let numberMarker: UInt8 = 0x02
    /// Begins a string segment.
    static let stringMarker: UInt8 = 0x03
    /// Bytes 00 and 01 of a string are written as this byte and themselves plus one.
    static let escape: UInt8 = 0x01
    /// Follows the plain part of something cut. No UTF-8 string holds this byte.
    package static let cutMarker: UInt8 = 0xff
    /// Above every byte that may follow a segment or a marker: ends the range of everything with a prefix.
    package static let afterEverything: UInt8 = 0xff
}
