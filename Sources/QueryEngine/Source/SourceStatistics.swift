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

    /// The number of documents in a collection, if the catalogue knows it for this state; nil if they must be counted.
    package borrowing func documentCount(in collection: [UInt8]) throws(RequestError) -> Int? {
        // A transaction must note what it counted: scans do that.
        if notesReads { return nil }
        var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        DocumentKey.writeCatalogue(collection.byteSpan, database: database, into: &key)
        guard let stored = try value(forKey: key.bytes), stored.versionMicroseconds <= versionMicroseconds else {
            return nil
        }
        return CatalogueEntry(stored.bytes)?.count
    }
}

/// The number of documents in a scope by the catalogue, added up in steps.
package struct CatalogueCount: Sendable {
    /// What a step has found.
    package enum Answer: Hashable, Sendable {
        case count(Int)
        /// The catalogue does not know it for this state: the documents must be counted.
        case unknown
        /// There are more collections: the next step continues.
        case paused
    }

    private let scope: QueryScope
    private var count = 0
    /// The last key of the catalogue that was looked at.
    private var position: [UInt8]?

    /// Collections that are added up in one step.
    private static let collectionsPerStep = 4_096

    init(_ scope: QueryScope) { self.scope = scope }

    /// - Parameter source: the same state in every call.
    mutating func next<Source: QuerySource & ~Copyable>(from source: borrowing Source) throws(RequestError) -> Answer {
        switch scope {
        case .collection(let path): return try source.documentCount(in: path).map { .count($0) } ?? .unknown
        // The catalogue does not distinguish children from other descendants.
        case .children: return .unknown
        case .descendants(let parent, let collectionID):
            // See `documentCount(in:)`.
            if source.notesReads { return .unknown }
            return try next(
                of: CollectionSearch(below: parent, collectionID: collectionID, database: source.database), source)
        }
    }

    private mutating func next<Source: QuerySource & ~Copyable>(
        of search: CollectionSearch, _ source: borrowing Source
    ) throws(RequestError) -> Answer {
        var left = Self.collectionsPerStep
        var answer = Answer.paused
        // What was added up stays so if the source has to be waited for.
        try search.forEachInCatalogue(source, after: position) { (key, entry, _) in
            if entry.versionMicroseconds > source.versionMicroseconds {
                answer = .unknown
                return .stop
            }
            if left == 0 { return .stop }
            left -= 1
            count += entry.count
            position = [UInt8](copying: key)
            return .more
        }
        if case .unknown = answer { return answer }
        return left == 0 ? .paused : .count(count)
    }
}
