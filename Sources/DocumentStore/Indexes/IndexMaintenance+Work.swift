// What the steps of index builds do with the keys in their range.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage
internal import StorageEngines
internal import StoreFormat

extension IndexMaintenance {
    /// Bounds of one step: a commit that comes meanwhile waits for it.
    private static let entriesPerStep = 4_096
    private static let entryBytesPerStep = 1 << 20
    private static let documentsPerStep = 512
    /// Bytes of stored documents; their index entries take several times as much.
    private static let documentBytesPerStep = 256 << 10
    /// How many times more a document costs whose texts are analysed.
    private static let searchCost = 8

    enum Work {
        /// The keys are entries, and are deleted.
        case clear
        /// The keys are documents, and get their automatic entries.
        case buildAutomatic
        /// The keys are documents: those of the index's collections get their entries in it.
        case build(DeclaredIndex)
        /// The keys are documents: automatic entries of those of the group are brought in line with its rules.
        case settle(GroupFields)

        /// The id of the collections whose documents are visited; nil for all.
        fileprivate var collectionID: [UInt8]? {
            switch self {
            case .clear, .buildAutomatic: nil
            case .build(let index): Array(index.shape.collectionID.utf8)
            case .settle(let group): group.isCommon ? nil : group.idBytes
            }
        }

        fileprivate var isForSearches: Bool {
            if case .build(let index) = self { index.shape.search != nil } else { false }
        }

        fileprivate var isClearing: Bool {
            if case .clear = self { true } else { false }
        }
    }

    // MARK: Deciding

    /// Finds where a step ends that begins at `from`: after as many keys or bytes as a step may take.
    /// - Returns: the first key after the step; nil if the step covers everything up to `to`.
    func endOfStep(_ work: Work, from: [UInt8], to: [UInt8]) throws(StorageError) -> [UInt8]? {
        var visited = 0
        return try endOfStep(work, from: from, to: to, visited: &visited)
    }

    /// The same, which counts the documents of the step that the work is about.
    func endOfStep(
        _ work: Work, from: [UInt8], to: [UInt8], visited: inout Int
    ) throws(StorageError) -> [UInt8]? {
        visited = 0
        var keysLeft = work.isClearing ? Self.entriesPerStep : Self.documentsPerStep
        var bytesLeft = work.isClearing ? Self.entryBytesPerStep : Self.documentBytesPerStep
        if work.isForSearches {
            keysLeft /= Self.searchCost
            bytesLeft /= Self.searchCost
        }
        var stop: [UInt8]?
        var documents = 0
        try Self.forEachKey(of: work, from: from, to: to, latest) { key, value, document throws(StorageError) in
            if keysLeft == 0 || bytesLeft < 0 {
                stop = [UInt8](copying: key)
                return false
            }
            keysLeft -= 1
            bytesLeft -= key.byteCount + value.byteCount
            if document != nil { documents += 1 }
            return true
        }
        visited = documents
        return stop
    }

    // MARK: Applying

    /// Does the work of a step on all keys of its range.
    mutating func perform(
        _ work: Work, from: [UInt8], to: [UInt8], catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws(StorageError) {
        let latest = latest
        try Self.forEachKey(of: work, from: from, to: to, latest) { key, value, document throws(StorageError) in
            if work.isClearing {
                batch.delete(key: key)
            } else if let document {
                try perform(work, on: document, key, &catalogue, into: &batch)
            }
            return true
        }
    }

    private mutating func perform(
        _ work: Work, on found: FoundKey, _ key: RawSpan, _ catalogue: inout Catalogue,
        into batch: inout MutationBatch
    ) throws(StorageError) {
        // Other steps handle groups with their own settings.
        if case .settle(let group) = work, group.isCommon,
            groups.group(KeyedDocument.collectionID(ofDocument: found.path), in: DocumentKey.database(of: key)) != nil
        {
            return
        }
        let collection = try catalogue.adjust(
            key.extracting(0..<found.parts.collectionByteCount), path: found.path, by: 0, latest: latest)
        let document = IndexedDocument(
            database: DocumentKey.database(of: key), collection: collection, key: key, found.parts, path: found.path)
        let nothing = found.fields.extracting(0..<0)
        switch work {
        case .clear: break
        case .buildAutomatic: try deriveAutomatic(document, from: nothing, to: found.fields, into: &batch)
        case .build(let index) where index.shape.search != nil:
            try search.derive(index, document, from: nothing, to: found.fields, into: &batch, latest: latest)
        case .build(let index): declared.derive(index, document, from: nothing, to: found.fields, into: &batch)
        case .settle(let group):
            let rules = group.rules
            try derivation.derive(document, from: found.fields, to: nothing, by: rules, .removed, into: &batch)
            try derivation.derive(document, from: nothing, to: found.fields, by: rules, .added, into: &batch)
        }
    }

    // MARK: Walking documents and entries

    /// A stored document of the collections that a step is about.
    private struct FoundKey: ~Escapable {
        let parts: DocumentKey.Parts
        let path: RawSpan
        let fields: RawSpan

        @_lifetime(copy path, copy fields)
        init(_ parts: DocumentKey.Parts, path: RawSpan, fields: RawSpan) {
            self.parts = parts
            self.path = path
            self.fields = fields
        }
    }

    private typealias Visit = (_ key: RawSpan, _ value: RawSpan, FoundKey?) throws(StorageError) -> Bool

    /// Visits the keys of a range in order, until `visit` returns false. Of a collection that the work is not about
    /// only the first key is visited, without its document, unless the collection's key is cut.
    private static func forEachKey(
        of work: Work, from: [UInt8], to: [UInt8], _ latest: LatestReader, _ visit: Visit
    ) throws(StorageError) {
        let wanted = work.collectionID
        var path = ByteBuffer(capacity: 256)
        var next = ByteBuffer(capacity: KeyLayout.keyBytesMax + 8)
        var cursor = try latest.cursor(from: from.byteSpan, to: to.byteSpan)
        while try cursor.next() {
            if work.isClearing {
                if try !visit(cursor.key, cursor.value, nil) { return }
                continue
            }
            switch try visitDocument(
                key: cursor.key, value: cursor.value, wanted: wanted, path: &path, next: &next, visit)
            {
            case .stop: return
            case .proceed: break
            case .skipCollection: try cursor.seek(to: next.bytes)
            }
        }
    }

    private enum Progress {
        case proceed, stop
        /// The rest of the collection is not wanted: go to the first key after it.
        case skipCollection
    }

    /// Visits one document.
    /// - Parameter next: takes the key to continue at, if the rest of the collection is to be skipped.
    private static func visitDocument(
        key: RawSpan, value: RawSpan, wanted: [UInt8]?, path: inout ByteBuffer, next: inout ByteBuffer,
        _ visit: Visit
    ) throws(StorageError) -> Progress {
        guard let parts = DocumentKey.parts(of: key), let record = StoredRecordView(value, versionMicroseconds: 0),
            KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path)
        else { throw StorageError(.corrupt, "a document's entry is damaged") }
        guard let wanted, !KeyedDocument.collectionID(ofDocument: path.bytes).equalsBytes(wanted.byteSpan) else {
            let found = FoundKey(parts, path: path.bytes, fields: record.fields)
            return try visit(key, value, found) ? .proceed : .stop
        }
        if try !visit(key, value, nil) { return .stop }
        if DocumentKey.isCutCollection(byteCount: parts.collectionByteCount) { return .proceed }
        next.reset()
        next.append(key.extracting(0..<parts.collectionByteCount))
        next.append(byte: KeyLayout.documentMarker + 1)
        return .skipCollection
    }
}
