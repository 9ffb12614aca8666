// Keys and values of indexes for searches.
//
//     23 | index number | collection number | 00                                 ->  statistics
//                                           | 01 | stem | 00 | document          ->  posting
//                                           | 02 | word | 00 | document          ->  posting
//                                           | 03 | field, 1 | cell, 8 | document ->  place
//
// Numbers are varints; the collection is 0 in indexes of groups. Stems and words have at most 80 bytes, none of them
// 00. A document is its id segment; in groups the segments of its path and 00. So the entries of a stem lie together in
// the order of names, and so do those of all words with the same first letters.
//
//     posting     | key length | document key | field | words of the field | count | place | ...  for each field
//     place       | key length | document key |
//     statistics  | documents | documents with the first field | words in it | ...
//
// The document key is there only if the path in a key of a group is cut. Places of words are differences, times two;
// one is added if the word is not its stem. Words that are not their stems have entries of kind 02 too: a search for
// first letters finds words, not stems.

package import Basics
internal import DocumentModel
internal import StoreFormat
internal import TextAnalysis

package enum SearchKey {
    /// The kind of an entry.
    package enum Kind: UInt8, Sendable {
        case statistics = 0
        case stem = 1
        case word = 2
        case place = 3
    }

    /// Ends a stem or a word.
    package static let wordEnd: UInt8 = 0
    /// Different stems, words and places of one document that have entries in an index. Further words count for the
    /// length of their field alone.
    package static let entriesPerDocumentMax = 40_000
    /// Bytes of a cell.
    package static let cellBytes = 8

    /// Replaces what is in `writer` by what the entries of one kind begin with.
    /// - Parameter collection: its number; it does not matter in a group.
    package static func begin(
        _ kind: Kind, of index: DeclaredIndex, collection: UInt64, into writer: inout ByteBuffer
    ) {
        writer.reset()
        writer.append(byte: KeySpace.searches.rawValue)
        writer.appendVarint(index.number)
        writer.appendVarint(index.shape.isGroup ? 0 : collection)
        writer.append(byte: kind.rawValue)
    }

    /// Whether a key is that of statistics.
    package static func isStatistics(_ key: RawSpan) -> Bool {
        var reader = WireReader(key)
        reader.position = 1
        guard (try? reader.varint()) != nil, (try? reader.varint()) != nil else { return false }
        return reader.position + 1 == key.byteCount
    }

    /// Appends what stands for a document.
    /// - Returns: whether it is a path that had to be cut.
    static func append(
        _ document: borrowing IndexedDocument, isGroup: Bool, to writer: inout ByteBuffer
    ) -> Bool {
        guard isGroup else {
            writer.append(document.idSegment)
            return false
        }
        let start = writer.count
        writer.appendPathSegments(document.path)
        let isCut = writer.cutKeyPart(from: start)
        writer.append(byte: KeyLayout.terminator)
        return isCut
    }
}
