// Which collections have an id, so that a query of a group does not go through the collections of other ids.
//
//     01 'g' | database, 4 | hash of the collection id, 8 | collection path, <= 248     ->   nothing
//     01 'g'                                                                            ->   nothing
//
// The path stands as in the catalogue, whose key follows from such a key. The second key says that the store has the
// first for each collection of its catalogue: it comes with the first collection.

package import Basics
internal import DocumentModel

/// Builds keys of the lists of collection groups, and makes keys of the catalogue from them.
package enum GroupKey {
    /// The key that says that all groups are listed.
    package static let marker: [UInt8] = [KeySpace.meta.rawValue, UInt8(ascii: "g")]
    /// Bytes before the path.
    private static let pathOffset = 14

    /// What the keys of a group begin with. Groups with equal hashes share it.
    ///
    /// - Parameter id: the collection id.
    package static func prefix(ofGroup id: RawSpan, database: UInt32) -> [UInt8] {
        var key = ByteBuffer(capacity: pathOffset + 24)
        key.append(marker)
        key.append(bigEndian: database)
        SHA256Digest(of: id).append(to: &key)
        key.truncate(to: pathOffset)
        return key.copyBytes()
    }

    /// The key of a collection.
    ///
    /// - Parameters:
    ///   - catalogueKey: of the collection.
    ///   - path: of its entry in the catalogue: empty if the key has it.
    package static func key(of catalogueKey: RawSpan, path: RawSpan) -> [UInt8] {
        var whole = ByteBuffer(capacity: 256)
        whole.append(path)
        if path.byteCount == 0 {
            DocumentKey.appendCollectionPath(of: catalogueKey, collectionByteCount: catalogueKey.byteCount, to: &whole)
        }
        let database = DocumentKey.database(of: catalogueKey)
        let place = catalogueKey.extracting(KeyLayout.pathOffset..<catalogueKey.byteCount)
        return prefix(ofGroup: RelativePath.lastSegment(whole.bytes), database: database) + [UInt8](copying: place)
    }

    /// Writes the key in the catalogue of the collection of a group's key into an empty writer.
    package static func writeCatalogueKey(of key: RawSpan, into writer: inout ByteBuffer) {
        writer.reset()
        writer.append(byte: KeySpace.catalogue.rawValue)
        writer.append(key.extracting(marker.count..<(marker.count + 4)))
        writer.append(key.extracting(pathOffset..<key.byteCount))
    }
}
