// Keys of documents, collections and ranges of them.

package import Basics
package import DocumentModel

/// Builds and takes apart the keys of the document and catalogue spaces.
package enum DocumentKey {
    /// Where the parts of a document key lie, and whether they stand there whole.
    package struct Parts: Equatable {
        /// Bytes of the key up to and including the collection path: the collection's own prefix.
        package var collectionByteCount: Int
        /// The collection path or the id was cut, so the record must carry the full path.
        package var isCut: Bool

        package init(collectionByteCount: Int, isCut: Bool) {
            self.collectionByteCount = collectionByteCount
            self.isCut = isCut
        }
    }

    /// Writes the key of the document at a relative path into an empty writer.
    @discardableResult
    package static func write(_ path: RawSpan, database: UInt32, into writer: inout ByteBuffer) -> Parts {
        write(path, idStart: idOffset(ofDocument: path), database: database, into: &writer)
    }

    /// The same for a document's name that is parsed already.
    package static func write(_ name: borrowing ResourceNameView, database: UInt32, into writer: inout ByteBuffer) {
        write(
            name.pathBytes, idStart: name.lastSegmentOffset - name.pathOffset, database: database, into: &writer)
    }

    @discardableResult
    private static func write(
        _ path: RawSpan, idStart: Int, database: UInt32, into writer: inout ByteBuffer
    ) -> Parts {
        writer.reset()
        let cutPath = appendCollection(path.extracting(0..<(idStart - 1)), database: database, into: &writer)
        let collectionByteCount = writer.count
        let cutID = appendID(path.extracting(idStart..<path.byteCount), into: &writer)
        return Parts(collectionByteCount: collectionByteCount, isCut: cutPath || cutID)
    }

    /// Writes the prefix of a collection's documents, without the document marker, into an empty writer.
    /// - Returns: whether the collection path was cut.
    @discardableResult
    package static func writeCollection(_ path: RawSpan, database: UInt32, into writer: inout ByteBuffer) -> Bool {
        writer.reset()
        return appendCollection(path, database: database, into: &writer)
    }

    /// Writes the prefix shared by everything below a document or collection path (empty: the whole database); longer
    /// ones are cut to their plain part, which others may share.
    /// - Returns: whether it was cut.
    @discardableResult
    package static func writeSubtree(_ path: RawSpan, database: UInt32, into writer: inout ByteBuffer) -> Bool {
        writer.reset()
        writer.append(byte: KeySpace.documents.rawValue)
        writer.append(bigEndian: database)
        writer.appendPathSegments(path)
        let plain = KeyLayout.pathOffset + KeyLayout.plainBytesMax
        if writer.count <= plain { return false }
        writer.truncate(to: plain)
        return true
    }

    /// Writes a collection's key in the catalogue into an empty writer.
    package static func writeCatalogue(_ path: RawSpan, database: UInt32, into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: KeySpace.catalogue.rawValue)
        writer.append(bigEndian: database)
        writer.appendPathSegments(path)
        writer.cutKeyPart(from: KeyLayout.pathOffset)
    }

    /// The first key after everything that begins with a plain part and was cut there.
    package static func endOfGroup(_ group: [UInt8]) -> [UInt8] {
        group + [UInt8](repeating: KeyLayout.afterEverything, count: KeyLayout.cutTailBytes + 1)
    }

    /// Appends the document marker and an id to a collection's prefix.
    /// - Returns: whether the id was cut.
    @discardableResult
    package static func appendID(_ id: RawSpan, into writer: inout ByteBuffer) -> Bool {
        writer.append(byte: KeyLayout.documentMarker)
        let start = writer.count
        writer.appendSegment(id)
        return writer.cutKeyPart(from: start)
    }

    private static func appendCollection(
        _ path: RawSpan, database: UInt32, into writer: inout ByteBuffer
    ) -> Bool {
        writer.append(byte: KeySpace.documents.rawValue)
        writer.append(bigEndian: database)
        let start = writer.count
        writer.appendPathSegments(path)
        return writer.cutKeyPart(from: start)
    }

    /// The path of the collection that a document path lies in.
    @_lifetime(copy path)
    package static func collectionPath(ofDocument path: RawSpan) -> RawSpan {
        path.extracting(0..<(idOffset(ofDocument: path) - 1))
    }

    /// Where the last segment of a document path begins.
    package static func idOffset(ofDocument path: RawSpan) -> Int {
        var idStart = path.byteCount
        while idStart > 0, path[byteAt: idStart - 1] != UInt8(ascii: "/") { idStart -= 1 }
        precondition(idStart > 1, "a document path has at least two segments")
        return idStart
    }

    /// Takes a document key apart; nil if it has another form.
    package static func parts(of key: RawSpan) -> Parts? {
        guard key.byteCount > KeyLayout.pathOffset, key[byteAt: 0] == KeySpace.documents.rawValue else { return nil }
        let plainEnd = KeyLayout.pathOffset + KeyLayout.plainBytesMax
        var offset = KeyLayout.pathOffset
        while offset < key.byteCount, key[byteAt: offset] != KeyLayout.documentMarker {
            guard offset < plainEnd,
                let next = KeySegment.skip(in: key, at: offset, end: min(key.byteCount, plainEnd))
            else {
                // No segment ends before the longest plain part does: the path was cut.
                let end = plainEnd + KeyLayout.cutTailBytes
                guard key.byteCount > end, key[byteAt: plainEnd] == KeyLayout.cutMarker,
                    key[byteAt: end] == KeyLayout.documentMarker
                else { return nil }
                return Parts(collectionByteCount: end, isCut: true)
            }
            offset = next
        }
        guard offset > KeyLayout.pathOffset, offset < key.byteCount else { return nil }
        return Parts(collectionByteCount: offset, isCut: isCutID(in: key, collectionByteCount: offset))
    }

    /// Whether a collection's prefix of this length was cut.
    package static func isCutCollection(byteCount: Int) -> Bool {
        byteCount > KeyLayout.pathOffset + KeyLayout.plainBytesMax
    }

    /// Whether the id after a collection's prefix was cut.
    package static func isCutID(in key: RawSpan, collectionByteCount: Int) -> Bool {
        let marker = collectionByteCount + 1 + KeyLayout.plainBytesMax
        return key.byteCount == marker + KeyLayout.cutTailBytes && key[byteAt: marker] == KeyLayout.cutMarker
    }

    /// Appends the id of a key whose id is whole.
    package static func appendID(of key: RawSpan, collectionByteCount: Int, to writer: inout ByteBuffer) {
        let end = KeySegment.appendID(of: key, at: collectionByteCount + 1, end: key.byteCount, to: &writer)
        precondition(end == key.byteCount, "a document key ends with its id")
    }

    /// Appends the id of a segment that is whole.
    static func appendID(ofSegment segment: RawSpan, to writer: inout ByteBuffer) {
        let end = KeySegment.appendID(of: segment, at: 0, end: segment.byteCount, to: &writer)
        precondition(end == segment.byteCount, "a segment is all of an id")
    }

    /// Appends the relative path of a collection from a key in which it is whole.
    package static func appendCollectionPath(of key: RawSpan, collectionByteCount: Int, to writer: inout ByteBuffer) {
        var offset = KeyLayout.pathOffset
        while offset < collectionByteCount {
            if offset > KeyLayout.pathOffset { writer.append(byte: UInt8(ascii: "/")) }
            guard let next = KeySegment.appendID(of: key, at: offset, end: collectionByteCount, to: &writer) else {
                preconditionFailure("a collection path of whole segments")
            }
            offset = next
        }
    }

    /// The database number of a key of the document or catalogue space.
    package static func database(of key: RawSpan) -> UInt32 {
        UInt32(bigEndian: unsafe key.unsafeLoadUnaligned(fromByteOffset: 1, as: UInt32.self))
    }
}
