// How large the collections are: for metrics.

internal import Basics
package import DocumentModel
internal import Storage
internal import StorageEngines
internal import StoreFormat

/// What the collections with one id hold in a database.
package struct CollectionFigures: Equatable, Sendable {
    package let database: DatabaseName
    /// The last segment of the paths of the collections.
    package let collectionID: String
    /// Documents as of the last commits.
    package var documents = 0
    /// About the bytes of the documents in runs, with their earlier versions.
    package var documentBytes = 0
    /// About the index entries of single fields in runs, and their bytes.
    package var entries = 0
    package var entryBytes = 0
}

extension DocumentStore {
    /// Collections that are looked at; others are left out.
    private static let collectionsMax = 100_000
    /// Of them, those with the most documents whose sizes are estimated.
    private static let estimatesMax = 1_000

    /// A collection of the catalogue.
    private struct CataloguedCollection {
        let key: [UInt8]
        let group: Int
        let number: UInt64
        let documents: Int
    }

    /// The groups of collections with the most documents. Reads the catalogue, which takes up to a second if there are
    /// very many collections: not for an event loop.
    ///
    /// - Parameter groupsMax: the number of groups at most.
    /// - Throws: a `StorageError` if the catalogue cannot be read.
    package func collectionFigures(groupsMax: Int) throws -> [CollectionFigures] {
        var (figures, collections) = try cataloguedCollections()
        for collection in collections.sorted(by: { $0.documents > $1.documents }).prefix(Self.estimatesMax) {
            let documents = estimate(documentsOf: collection.key)
            let values = estimate(.values, collection.number)
            let elements = estimate(.elements, collection.number)
            figures[collection.group].documentBytes += documents.bytes
            figures[collection.group].entries += values.entries + elements.entries
            figures[collection.group].entryBytes += values.bytes + elements.bytes
        }
        return Array(figures.sorted { $0.documents > $1.documents }.prefix(groupsMax))
    }

    /// Groups with their documents, and the collections that are not empty.
    private func cataloguedCollections() throws -> ([CollectionFigures], [CataloguedCollection]) {
        let names = Dictionary(uniqueKeysWithValues: databases.existing.map { ($0.number, $0.name) })
        var figures: [CollectionFigures] = []
        var groups: [UInt32: [String: Int]] = [:]
        var collections: [CataloguedCollection] = []
        var path = ByteBuffer(capacity: KeyLayout.keyBytesMax)
        let snapshot = try engine.makeReader().snapshot()
        let (lower, upper) = ([KeySpace.catalogue.rawValue], [KeySpace.catalogue.rawValue + 1])
        var cursor = try snapshot.cursor(from: lower.byteSpan, to: upper.byteSpan)
        var looked = 0
        while looked < Self.collectionsMax, try cursor.next() {
            looked += 1
            guard let entry = CatalogueEntry(cursor.value), entry.count > 0,
                let name = names[DocumentKey.database(of: cursor.key)]
            else { continue }
            path.reset()
            if entry.path.isEmpty {
                DocumentKey.appendCollectionPath(
                    of: cursor.key, collectionByteCount: cursor.key.byteCount, to: &path)
            } else {
                path.append(entry.path)
            }
            let id = String(repairingUTF8: RelativePath.lastSegment(path.bytes))
            let database = DocumentKey.database(of: cursor.key)
            let group = groups[database]?[id] ?? figures.count
            if group == figures.count {
                groups[database, default: [:]][id] = group
                figures.append(CollectionFigures(database: name, collectionID: id))
            }
            figures[group].documents += entry.count
            collections.append(
                CataloguedCollection(
                    key: [UInt8](copying: cursor.key), group: group, number: entry.number, documents: entry.count))
        }
        return (figures, collections)
    }

    /// - Parameter key: of the collection in the catalogue.
    private func estimate(documentsOf key: [UInt8]) -> KeyRangeEstimate {
        let collection = [KeySpace.documents.rawValue] + key.dropFirst()
        return estimate(from: collection + [KeyLayout.documentMarker], to: collection + [KeyLayout.documentMarker + 1])
    }

    /// - Parameter number: of the collection.
    private func estimate(_ space: KeySpace, _ number: UInt64) -> KeyRangeEstimate {
        var prefix = ByteBuffer(capacity: 16)
        prefix.append(byte: space.rawValue)
        prefix.appendVarint(number)
        let lower = prefix.copyBytes()
        // The last byte of a varint is below 128.
        return estimate(from: lower, to: lower.dropLast() + [lower[lower.count - 1] + 1])
    }

    /// A damaged part counts as nothing.
    private func estimate(from lower: [UInt8], to upper: [UInt8]) -> KeyRangeEstimate {
        (try? engine.estimate(from: lower.byteSpan, to: upper.byteSpan)) ?? KeyRangeEstimate()
    }
}
