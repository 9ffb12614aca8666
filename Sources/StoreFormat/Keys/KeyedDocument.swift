// From a stored entry back to the names it belongs to.

package import Basics
import DocumentModel

/// Finds the path of a stored document from its key and record.
package enum KeyedDocument {
    /// Writes the relative path of a stored document into an empty writer.
    /// - Returns: false when key and record are not ours.
    package static func writePath(
        key: RawSpan, parts: DocumentKey.Parts, record: borrowing StoredRecordView, into writer: inout ByteBuffer
    ) -> Bool {
        writer.reset()
        if record.path.byteCount > 0 {
            writer.append(record.path)
            return true
        }
        if parts.isCut { return false }
        DocumentKey.appendCollectionPath(of: key, collectionByteCount: parts.collectionByteCount, to: &writer)
        writer.append(byte: UInt8(ascii: "/"))
        DocumentKey.appendID(of: key, collectionByteCount: parts.collectionByteCount, to: &writer)
        return true
    }

    /// The collection id of a document's relative path: its last segment but one.
    @_lifetime(copy path)
    package static func collectionID(ofDocument path: RawSpan) -> RawSpan {
        let collection = DocumentKey.collectionPath(ofDocument: path)
        var start = collection.byteCount
        while start > 0, collection[byteAt: start - 1] != UInt8(ascii: "/") { start -= 1 }
        return collection.extracting(start..<collection.byteCount)
    }
}
