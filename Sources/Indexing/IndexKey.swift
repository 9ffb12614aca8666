// Keys of index entries. A key is the whole entry: its value is only the version of the commit that made it.
//
//     20 | collection number | field number | value, <= 220 | id segment, <= 248 | its byte count, 1
//     21 | the same, one entry for each distinct element of an array
//
// Numbers are varints. The value is the order-preserving key of the field's value (`ValueKey`); no such key begins
// another, so entries lie in the order of values, and for equal values in the order of ids. Walked backwards they
// serve descending orders. The id segment is that of the document's key, so the key of the document is
// the collection's prefix and the segment; the last byte says where it begins, whatever the value is.
//
// A value's key of 220 bytes or more is cut there. Entries with the same cut value lie side by side in the order of
// their ids; a query that needs the order of values reads the documents of such a group. The same goes for ids that are
// cut.

package import Basics
import DocumentModel
package import StoreFormat

package enum IndexKey {
    /// Bytes of a value in a key; one that takes all of them may be cut.
    package static let valueBytesMax = 220
    /// Bytes of a cut id's segment.
    static let cutSegmentBytes = KeyLayout.plainBytesMax + KeyLayout.cutTailBytes

    /// Begins a key in an empty writer: what all entries of one field in one collection share.
    package static func begin(_ space: KeySpace, collection: UInt64, field: UInt64, into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: space.rawValue)
        writer.appendVarint(collection)
        writer.appendVarint(field)
    }

    /// Appends a value, cut where it is long.
    package static func append(value: RawSpan, into writer: inout ByteBuffer) {
        ValueKey.appendPrefix(wireValue: value, bytesMax: valueBytesMax, into: &writer)
    }

    /// Ends a key with the segment of a document's id.
    package static func append(idSegment: RawSpan, into writer: inout ByteBuffer) {
        writer.append(idSegment)
        writer.append(byte: UInt8(truncatingIfNeeded: idSegment.byteCount))
    }

    /// Where the id segment of an entry lies; nil when the key is none.
    ///
    /// - Parameter start: where the segment may begin at the earliest.
    package static func idSegment(of key: RawSpan, from start: Int = 3) -> Range<Int>? {
        let end = key.byteCount - 1
        guard end > start else { return nil }
        let count = Int(key[byteAt: end])
        guard count > 0, count <= end - start else { return nil }
        return (end - count)..<end
    }

    /// Where the path of an entry over a collection group lies; nil when the key is none. The path may be inverted.
    package static func path(ofGroupEntry key: RawSpan, from start: Int) -> Range<Int>? {
        // A terminator and the byte count follow it.
        let end = key.byteCount - 2
        guard end > start else { return nil }
        let count = Int(key[byteAt: end + 1])
        guard count > 0, count <= end - start else { return nil }
        return (end - count)..<end
    }

    /// Whether an id segment was cut, so that its place says nothing about its order among its neighbours.
    package static func isCut(idSegment: RawSpan) -> Bool {
        idSegment.byteCount == cutSegmentBytes && idSegment[byteAt: KeyLayout.plainBytesMax] == KeyLayout.cutMarker
    }

    /// Writes the key of the document that an entry over a collection group leads to, ids upwards, into an empty
    /// writer.
    ///
    /// - Parameter value: what follows the entry: the document's key if its path was cut, else nothing.
    /// - Returns: false when the entry is none.
    package static func writeDocumentKey(
        ofGroupEntry key: RawSpan, _ value: RawSpan, _ database: UInt32, into writer: inout ByteBuffer
    ) -> Bool {
        writer.reset()
        if value.byteCount > 0 {
            writer.append(value)
            return true
        }
        guard let place = path(ofGroupEntry: key, from: 2) else { return false }
        DocumentKey.writeSubtree(key.extracting(0..<0), database: database, into: &writer)
        return appendDocument(atPath: key.extracting(place), into: &writer)
    }

    /// Appends the rest of a document's key to its database's prefix.
    /// - Parameter path: the segments of its path, all whole.
    package static func appendDocument(atPath path: RawSpan, into writer: inout ByteBuffer) -> Bool {
        guard let last = KeySegment.last(of: path) else { return false }
        writer.append(path.extracting(0..<last))
        writer.append(byte: KeyLayout.documentMarker)
        writer.append(path.extracting(last..<path.byteCount))
        return true
    }
}
