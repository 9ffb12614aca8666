// What the steps in the making of indexes do with the keys that they go over.

internal import DocumentModel
internal import KeyValueStore

extension IndexMaintenance {
    /// Bounds of one step: what it may hold up a commit that comes meanwhile.
    private static let entriesPerStep = 4_096
    private static let documentsPerStep = 512
    private static let bytesPerStep = 1 << 20

    enum Work {
        /// They are entries, and go.
        case clear
        /// They are documents, and get their automatic entries.
        case buildAutomatic
        /// They are documents: those of the index's collections get their entries in it.
        case build(DeclaredIndex)
        /// They are documents: automatic entries of those of the group are brought in line with its rules.
        case settle(GroupFields)

        /// The id of the collections whose documents are looked at; nil for all.
        fileprivate var collectionID: [UInt8]? {
            switch self {
            case .clear, .buildAutomatic: nil
            case .build(let index): Array(index.shape.collectionID.utf8)
            case .settle(let group): group.idBytes
            }
        }
    }

    /// Goes over keys in order.
    ///
    /// - Parameter isBounded: for so long only as a step may take; else to the end.
    /// - Returns: the first key that was not looked at; nil when all were.
    mutating func go(
        _ work: Work, from: [UInt8], to: [UInt8], isBounded: Bool, catalogue: inout Catalogue,
        into batch: inout MutationBatch
    ) throws(StorageError) -> [UInt8]? {
        var isClearing = false
        if case .clear = work { isClearing = true }
        var left = isBounded ? (isClearing ? Self.entriesPerStep : Self.documentsPerStep) : .max
        let wanted = work.collectionID
        let latest = latest
        var path = WireWriter(capacity: 256)
        var next = WireWriter(capacity: KeyLayout.keyBytesMaximum + 8)
        var cursor = try latest.cursor(from: from.byteSpan, to: to.byteSpan)
        while try cursor.next() {
            if left == 0 || (isBounded && batch.byteCount > Self.bytesPerStep) { return [UInt8](copying: cursor.key) }
            left -= 1
            if isClearing {
                batch.delete(key: cursor.key)
                continue
            }
            let isOther = try go(
                work, over: cursor.key, cursor.value, wanted: wanted, &path, &next, catalogue: &catalogue, into: &batch)
            if isOther { try cursor.seek(to: next.bytes) }
        }
        return nil
    }

    /// Does the work on one document if it is of the wanted collections.
    /// - Returns: whether it is not, and the rest of its collection can be leapt over: `next` is behind that.
    private mutating func go(
        _ work: Work, over key: RawSpan, _ value: RawSpan, wanted: [UInt8]?, _ path: inout WireWriter,
        _ next: inout WireWriter, catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws(StorageError) -> Bool {
        guard let parts = DocumentKey.parts(of: key), let record = StoredRecordView(value, versionMicroseconds: 0),
            KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path)
        else { throw StorageError(.corrupt, "a document's entry is damaged") }
        if let wanted, !KeyedDocument.collectionID(ofDocument: path.bytes).equalsBytes(wanted.byteSpan) {
            if DocumentKey.isCutCollection(byteCount: parts.collectionByteCount) { return false }
            next.reset()
            next.append(key.extracting(0..<parts.collectionByteCount))
            next.append(byte: KeyLayout.documentMarker + 1)
            return true
        }
        let collection = try catalogue.adjust(
            key.extracting(0..<parts.collectionByteCount), path: path.bytes, by: 0, latest: latest)
        let document = IndexedDocument(
            database: DocumentKey.database(of: key), collection: collection, key: key, parts, path: path.bytes)
        let nothing = record.fields.extracting(0..<0)
        switch work {
        case .clear: break
        case .buildAutomatic: try deriveAutomatic(document, from: nothing, to: record.fields, into: &batch)
        case .build(let index): declared.derive(index, document, from: nothing, to: record.fields, into: &batch)
        case .settle(let group):
            try derivation.derive(document, from: record.fields, to: nothing, by: group.rules, .leftovers, into: &batch)
            try derivation.derive(document, from: nothing, to: record.fields, by: group.rules, .newcomers, into: &batch)
        }
        return false
    }
}
