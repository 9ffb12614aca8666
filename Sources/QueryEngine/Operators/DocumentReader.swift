// Reads the documents that index entries name.

import Basics
import DocumentModel
internal import Indexing
internal import StoreFormat

/// Reads documents of one scope, with buffers for a page.
struct DocumentReader: ~Copyable {
    private var key = ByteBuffer(capacity: KeyLayout.keyBytesMax + 8)
    private var path = ByteBuffer(capacity: 128)
    /// The collection's path and a slash; empty in a collection group.
    private let pathPrefix: [UInt8]
    /// Bytes of the key before an entry's segment: the collection with the document marker, or the database alone.
    private let keyPrefixByteCount: Int

    init(_ scope: QueryScope, database: UInt32) {
        if case .collection(let collection) = scope {
            DocumentKey.writeCollection(collection.byteSpan, database: database, into: &key)
            key.append(byte: KeyLayout.documentMarker)
            pathPrefix = collection + [RelativePath.slash]
        } else {
            DocumentKey.writeSubtree([UInt8]().byteSpan, database: database, into: &key)
            pathPrefix = []
        }
        keyPrefixByteCount = key.count
    }

    /// The key of the document that was read last.
    var lastKey: [UInt8] { key.copyBytes() }

    /// Reads the document that an entry names and lends it.
    mutating func read<Source: QuerySource & ~Copyable>(
        _ entry: borrowing IndexEntry, _ source: borrowing Source,
        _ body: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> PageControl {
        if entry.documentKey.byteCount > 0 {
            key.reset()
            key.append(entry.documentKey)
        } else {
            key.truncate(to: keyPrefixByteCount)
            if pathPrefix.isEmpty {
                guard IndexKey.appendDocument(atPath: entry.segment, into: &key) else { throw .damagedEntry }
            } else {
                key.append(entry.segment)
            }
        }
        return try readDocument(source, body)
    }

    /// Reads the document with a key and lends it.
    mutating func read<Source: QuerySource & ~Copyable>(
        key document: [UInt8], _ source: borrowing Source,
        _ body: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> PageControl {
        key.reset()
        key.append(document)
        return try readDocument(source, body)
    }

    private mutating func readDocument<Source: QuerySource & ~Copyable>(
        _ source: borrowing Source, _ body: (borrowing QueryRow) throws(RequestError) -> PageControl
    ) throws(RequestError) -> PageControl {
        guard let stored = try source.value(forKey: key.bytes) else { throw .missingDocument }
        guard let record = StoredRecordView(stored.bytes, versionMicroseconds: stored.versionMicroseconds),
            DocumentReader.writePath(
                of: record, key, pathPrefix, keyPrefixByteCount: keyPrefixByteCount, into: &path)
        else { throw .damagedDocument }
        return try body(
            QueryRow(
                path: path.bytes, createMicroseconds: record.createMicroseconds,
                updateMicroseconds: record.updateMicroseconds, fields: record.fields))
    }

    private static func writePath(
        of record: borrowing StoredRecordView, _ key: borrowing ByteBuffer, _ pathPrefix: [UInt8],
        keyPrefixByteCount: Int, into path: inout ByteBuffer
    ) -> Bool {
        if pathPrefix.isEmpty || record.path.byteCount > 0 {
            guard let parts = DocumentKey.parts(of: key.bytes) else { return false }
            return KeyedDocument.writePath(key: key.bytes, parts: parts, record: record, into: &path)
        }
        if DocumentKey.isCutID(in: key.bytes, collectionByteCount: keyPrefixByteCount - 1) { return false }
        path.reset()
        path.append(pathPrefix)
        DocumentKey.appendID(of: key.bytes, collectionByteCount: keyPrefixByteCount - 1, to: &path)
        return true
    }
}
