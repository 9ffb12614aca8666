// The index entries of cached documents, and the collections that index keys name.
//
// An entry follows from a record of the space `documents`, pending writes included. Whatever changes such a record
// changes its entries in the same commit, so an index is correct after a crash, a collection of garbage and a change of
// the queue.

package import Basics
internal import DocumentModel
internal import Indexing
internal import Storage
internal import StoreFormat

extension LocalStore {
    // MARK: Entries

    /// Collects the entries that change with a record of the space `documents`.
    ///
    /// - Parameters:
    ///   - path: the document's path.
    ///   - new: the new record; nil if the document goes.
    func index(_ key: [UInt8], path: [UInt8], to new: [UInt8]?) throws(RequestError) {
        if indexes.groups.isEmpty { return }
        let id = [UInt8](copying: KeyedDocument.collectionID(ofDocument: path.byteSpan))
        guard let group = indexes.groups[id] else { return }
        let old: [UInt8]? = if let record = indexes.records[key] { record } else { try value(forKey: key) }
        indexes.records[key] = .some(new)
        if old == nil && new == nil { return }
        let oldFields = try old.map { bytes throws(RequestError) in try LocalRecord.fields(in: bytes.byteSpan) }
        let newFields = try new.map { bytes throws(RequestError) in try LocalRecord.fields(in: bytes.byteSpan) }
        try derive(key, path, group.kept, from: oldFields ?? [], to: newFields ?? [])
        if (old == nil) != (new == nil) {
            let collection = try collection(ofDocument: path.byteSpan)
            let count = try collections()[collection]?.documentCount ?? 0
            set(documentCount: max(0, count + (old == nil ? 1 : -1)), of: collection)
        }
    }

    /// The same for a record whose document is not known.
    func indexRemoval(of key: [UInt8], _ value: [UInt8]) throws(RequestError) {
        if indexes.groups.isEmpty || key.first != LocalSpace.documents { return }
        var path = ByteBuffer(capacity: 128)
        try Self.writePath(key: key.byteSpan, value: value.byteSpan, into: &path)
        try index(key, path: path.copyBytes(), to: nil)
    }

    func derive(
        _ key: [UInt8], _ path: [UInt8], _ rules: FieldRules, from old: [UInt8], to new: [UInt8]
    ) throws(RequestError) {
        guard let parts = DocumentKey.parts(of: key.byteSpan) else { throw .damagedDocument }
        let collection = try collection(ofDocument: path.byteSpan)
        let number = try collections()[collection]?.number ?? 0
        let document = IndexedDocument(
            database: LocalKey.database, collection: number, key: key.byteSpan, parts, path: path.byteSpan)
        var changes = LocalEntryChanges()
        do throws(StorageError) {
            try derivation.derive(document, from: old.byteSpan, to: new.byteSpan, by: rules, .write, into: &changes)
        } catch {
            throw RequestError(error)
        }
        for (key, value) in changes.all { try change(entry: key, to: value) }
    }

    /// Puts an entry that may be there already, or removes one that may not be there, and counts its bytes.
    private func change(entry key: [UInt8], to value: [UInt8]?) throws(RequestError) {
        let isThere = if let known = indexes.entries[key] { known } else { try self.value(forKey: key) != nil }
        indexes.entries[key] = value != nil
        if let value { put(key, value) } else { delete(key) }
        if isThere != (value != nil) { entryByteCount += isThere ? -key.count : key.count }
    }

    /// The bytes that ``entryByteCount`` counts, read from the entries. For tests.
    package func readEntryByteCount() throws(RequestError) -> Int {
        defer { finishReading() }
        var sum = 0
        for space in [LocalSpace.values, LocalSpace.elements] {
            try forEach(in: [space]) { (key, _) throws(RequestError) in sum += key.byteCount }
        }
        return sum
    }

    static func writePath(
        key: RawSpan, value: RawSpan, into path: inout ByteBuffer
    ) throws(RequestError) {
        guard let parts = DocumentKey.parts(of: key), let offset = LocalRecord.recordOffset(in: value),
            let record = StoredRecordView(value.extracting(offset..<value.byteCount), versionMicroseconds: 0),
            KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path)
        else { throw .damagedDocument }
    }

    // MARK: Collections

    /// The collections that have or had index entries, by their keys in the catalogue.
    func collections() throws(RequestError) -> [[UInt8]: LocalCollection] {
        if let known = indexes.collections { return known }
        var found: [[UInt8]: LocalCollection] = [:]
        try forEach(in: [LocalSpace.catalogue]) { (key, value) throws(RequestError) in
            guard let entry = CatalogueEntry(value) else { throw .damagedDocument }
            found[[UInt8](copying: key)] = LocalCollection(
                number: entry.number, documentCount: entry.count, path: [UInt8](copying: entry.path))
        }
        indexes.collections = found
        indexes.nextCollection = (found.values.map(\.number).max() ?? 0) + 1
        return found
    }

    /// The key of a document's collection in the catalogue, which has it from now on.
    func collection(ofDocument path: RawSpan) throws(RequestError) -> [UInt8] {
        let collection = DocumentKey.collectionPath(ofDocument: path)
        var writer = ByteBuffer(capacity: 64)
        DocumentKey.writeCatalogue(collection, database: LocalKey.database, into: &writer)
        let key = writer.copyBytes()
        if try collections()[key] != nil { return key }
        let isCut = DocumentKey.isCutCollection(byteCount: key.count)
        let new = LocalCollection(
            number: indexes.nextCollection, path: isCut ? [UInt8](copying: collection) : [])
        indexes.collections?[key] = new
        indexes.nextCollection += 1
        indexes.changedCollections.insert(key)
        return key
    }

    /// How many documents the planner expects in all collections with index entries. For tests.
    package func expectedDocumentCount() throws(RequestError) -> Int {
        defer { finishReading() }
        return try collections().values.reduce(0) { $0 + $1.documentCount }
    }

    func set(documentCount: Int, of collection: [UInt8]) {
        indexes.collections?[collection]?.documentCount = documentCount
        indexes.changedCollections.insert(collection)
    }

    /// Adds the collections that have changed to a commit.
    func putCollections() {
        for key in indexes.changedCollections {
            if let collection = indexes.collections?[key] { put(key, collection.encoded()) }
        }
    }
}
