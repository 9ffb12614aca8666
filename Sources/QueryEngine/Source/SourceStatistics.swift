// What the planner asks of a source: computed from its primitives, on the same state that the operators read.

package import Basics
internal import DocumentModel
internal import Indexing
internal import StoreFormat

/// A collection as the planner sees it.
struct IndexedCollection: Sendable {
    /// What stands for it in index keys.
    let number: UInt64
    /// Set for collections of a group.
    var inGroup: GroupCollection?
    /// About how many documents it holds.
    let documentCount: Int
    /// The fields that have entries.
    var fields = IndexedFields.all
}

extension QuerySource where Self: ~Copyable {
    /// What the planner needs to know of a collection; nil if it never held a document.
    borrowing func indexedCollection(_ path: [UInt8]) throws(RequestError) -> IndexedCollection? {
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        DocumentKey.writeCatalogue(path.byteSpan, database: database, into: &key)
        guard let stored = try value(forKey: key.bytes), let entry = CatalogueEntry(stored.bytes) else { return nil }
        return IndexedCollection(
            number: entry.number, documentCount: entry.count, fields: indexedFields(of: path.byteSpan))
    }

    /// The same for all collections with an id; nil if there are more than `atMost`.
    borrowing func indexedCollections(
        ofGroup id: [UInt8], atMost: Int
    ) throws(RequestError) -> [IndexedCollection]? {
        let fields = indexedFields(of: id.byteSpan)
        let search = CollectionSearch(below: [], collectionID: id, database: database)
        var collections: [IndexedCollection] = []
        try search.forEachInCatalogue(self) { (_, entry, path) in
            collections.append(
                IndexedCollection(
                    number: entry.number, inGroup: GroupCollection(path: [UInt8](copying: path)),
                    documentCount: entry.count, fields: fields))
            return collections.count > atMost ? .stop : .more
        }
        return collections.count > atMost ? nil : collections
    }

    /// The number that stands for a field's path in index keys; nil if no document ever had the field.
    borrowing func fieldNumber(of field: FieldPath) throws(RequestError) -> UInt64? {
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        var number: UInt64 = 0
        for segment in field.utf8Segments {
            FieldNumbers.writeKey(segment.byteSpan, under: number, database: database, into: &key)
            guard let stored = try value(forKey: key.bytes) else { return nil }
            guard let known = try? FieldNumbers.read(stored.bytes) else { throw .damagedCatalogue }
            number = known
        }
        return number
    }

    /// The number of documents in a scope, if the catalogue knows it for this state; nil if they must be counted.
    package borrowing func documentCount(in scope: QueryScope) throws(RequestError) -> Int? {
        // A transaction must note what it counted: scans do that.
        if notesReads { return nil }
        switch scope {
        case .collection(let path):
            var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
            DocumentKey.writeCatalogue(path.byteSpan, database: database, into: &key)
            guard let stored = try value(forKey: key.bytes), stored.versionMicroseconds <= versionMicroseconds else {
                return nil
            }
            return CatalogueEntry(stored.bytes)?.count
        // The catalogue does not distinguish children from other descendants.
        case .children: return nil
        case .descendants(let parent, let collectionID):
            let search = CollectionSearch(below: parent, collectionID: collectionID, database: database)
            let version = versionMicroseconds
            var count: Int? = 0
            try search.forEachInCatalogue(self) { (_, entry, _) in
                if entry.versionMicroseconds > version { count = nil }
                count? += entry.count
                return count == nil ? .stop : .more
            }
            return count
        }
    }
}
