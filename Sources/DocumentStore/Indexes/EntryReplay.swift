// Index entries at recovery: what `CommitBuilder` derived when the commits were new, derived again from the log.

internal import DocumentModel
internal import KeyValueStore

/// Derives the entries of log records, one record after the other.
struct EntryReplay: ~Copyable {
    private var indexes: IndexMaintenance
    /// Documents that the record has written, with positions in `writtenFields`.
    private var written = ByteTable()
    /// Where their fields stand in the record; nil for one that is gone.
    private var writtenFields: [Range<Int>?] = []
    private var oldFields = WireWriter(capacity: 1024)

    init(_ indexes: consuming IndexMaintenance) {
        self.indexes = indexes
    }

    mutating func beginCommit() {
        indexes.derivation.fields.beginCommit()
        written.removeAll()
        writtenFields.removeAll(keepingCapacity: true)
    }

    /// Replays a record about the making of indexes.
    mutating func repeatStep(
        _ record: RawSpan, catalogue: inout Catalogue, into mutations: inout MutationBatch
    ) throws {
        if record[byteAt: 0] == LogRecord.definitionKind {
            try indexes.repeatDefinitions(try DefinitionRecord(record), catalogue: &catalogue, into: &mutations)
        } else {
            try indexes.repeatStep(try IndexStepRecord(record), catalogue: &catalogue, into: &mutations)
        }
    }

    /// Brings the entries of one document up to date.
    ///
    /// - Parameters:
    ///   - record: the record that the item is in.
    ///   - key: the document's key.
    mutating func derive(
        _ item: borrowing LogItem, in record: RawSpan, key: RawSpan, _ parts: DocumentKey.Parts, collection: UInt64,
        database: UInt32, into mutations: inout MutationBatch, latest: LatestReader
    ) throws {
        if !indexes.keepsEntries { return }
        let hash = ByteTable.hash(key)
        oldFields.reset(keeping: 1 << 20)
        if let position = written.value(of: key, hash: hash) {
            if let range = writtenFields[position] { oldFields.append(record.extracting(range)) }
        } else if item.kind != .created, let stored = try latest.value(forKey: key) {
            guard let old = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds) else {
                throw StorageError(.corrupt, "a document's entry is damaged")
            }
            oldFields.append(old.fields)
        }
        written.set(key, hash: hash, to: writtenFields.count)
        writtenFields.append(item.kind == .deleted ? nil : record.byteOffsets(of: item.payload))
        let document = IndexedDocument(database: database, collection: collection, key: key, parts, path: item.path)
        try EntryReplay.derive(document, from: oldFields, to: item.payload, &indexes, into: &mutations)
    }

    private static func derive(
        _ document: borrowing IndexedDocument, from old: borrowing WireWriter, to new: RawSpan,
        _ indexes: inout IndexMaintenance, into mutations: inout MutationBatch
    ) throws(StorageError) {
        try indexes.derive(document, from: old.bytes, to: new, into: &mutations)
    }

    /// Ends a record: puts the fields that it numbered.
    mutating func finish(into mutations: inout MutationBatch) {
        indexes.derivation.fields.keepCommit()
        indexes.derivation.fields.writeChanges(into: &mutations)
        indexes.derivation.fields.trim()
    }
}
