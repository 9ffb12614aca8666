// Making and dropping declared indexes, step by step like the automatic ones.

internal import DocumentModel
internal import KeyValueStore

extension IndexMaintenance {
    /// What a commit about declared indexes does: keys gone over, and definitions as they are afterwards.
    struct DeclaredStep {
        var from: [UInt8] = []
        var to: [UInt8] = []
        var definitions: [(index: DeclaredIndex, isDropped: Bool)] = []
    }

    private static let entriesPerStep = 4_096
    private static let documentsPerStep = 512
    private static let bytesPerStep = 1 << 20

    /// What makes a database's declared indexes those that are wanted: new ones begin to be built, others to be cleared.
    func change(to shapes: [IndexShape], in database: UInt32) -> DeclaredStep {
        var step = DeclaredStep()
        let present = declared.all.filter { $0.database == database && $0.state.phase != .clearing }
        for var index in present where !shapes.contains(index.shape) {
            index.state = IndexState(phase: .clearing, position: index.entries.from)
            step.definitions.append((index, false))
        }
        var number = (declared.all.map(\.number).max() ?? 0) + 1
        var documents = WireWriter(capacity: 8)
        documents.append(byte: KeySpace.documents.rawValue)
        documents.append(bigEndian: database)
        for shape in shapes where !present.contains(where: { $0.shape == shape }) {
            let state = IndexState(phase: .building, position: documents.copyBytes())
            step.definitions.append(
                (DeclaredIndex(number: number, database: database, shape: shape, state: state), false))
            number += 1
        }
        return step
    }

    /// The next step of the first declared index that has one.
    mutating func nextDeclaredStep(
        version: CommitVersion, catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws(StorageError) -> DeclaredStep? {
        guard var index = declared.all.first(where: { $0.state.hasWork }) else { return nil }
        let from = index.state.position
        let isClearing = index.state.phase == .clearing
        let to = isClearing ? index.entries.to : IndexMaintenance.endOfDocuments(index.database)
        let stop = try go(index, from: from, to: to, isBounded: true, catalogue: &catalogue, into: &batch)
        if let stop {
            index.state.position = stop
        } else {
            index.state = IndexState(phase: .complete, completeSince: version.microseconds)
        }
        return DeclaredStep(from: from, to: stop ?? to, definitions: [(index, stop == nil && isClearing)])
    }

    /// Does again what a commit about declared indexes did; recovery.
    mutating func repeatDefinitions(
        _ record: consuming DefinitionRecord, catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws {
        var isFirst = true
        while let definition = try record.next() {
            let known = declared.all.first {
                $0.number == definition.index.number && $0.database == definition.index.database
            }
            if isFirst, record.to.byteCount > 0, let known {
                _ = try go(
                    known, from: [UInt8](copying: record.from), to: [UInt8](copying: record.to), isBounded: false,
                    catalogue: &catalogue, into: &batch)
            }
            isFirst = false
            enter([definition], into: &batch)
        }
    }

    /// Takes definitions and puts them.
    mutating func enter(_ definitions: [(index: DeclaredIndex, isDropped: Bool)], into batch: inout MutationBatch) {
        var key = WireWriter(capacity: 16)
        var value = WireWriter(capacity: 128)
        for (index, isDropped) in definitions {
            declared.set(index, isDropped ? nil : index.state)
            index.writeKey(into: &key)
            if isDropped {
                batch.delete(key: key.bytes)
            } else {
                index.writeValue(into: &value)
                batch.put(key: key.bytes, value: value.bytes)
            }
        }
    }

    private static func endOfDocuments(_ database: UInt32) -> [UInt8] {
        var end = WireWriter(capacity: 8)
        end.append(byte: KeySpace.documents.rawValue)
        end.append(bigEndian: database)
        end.append(byte: KeyLayout.afterEverything)
        return end.copyBytes()
    }

    /// Goes over entries to remove, or over documents whose entries to add.
    /// - Returns: the first key that was not looked at; nil when all were.
    private mutating func go(
        _ index: DeclaredIndex, from: [UInt8], to: [UInt8], isBounded: Bool, catalogue: inout Catalogue,
        into batch: inout MutationBatch
    ) throws(StorageError) -> [UInt8]? {
        let isClearing = index.state.phase == .clearing
        var left = isBounded ? (isClearing ? Self.entriesPerStep : Self.documentsPerStep) : .max
        let latest = reader
        let wanted = Array(index.shape.collectionID.utf8)
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
            let isOther = try add(
                index, wanted: wanted, key: cursor.key, value: cursor.value, &path, &next, catalogue: &catalogue,
                into: &batch)
            if isOther { try cursor.seek(to: next.bytes) }
        }
        return nil
    }

    /// Adds the entries of one document if it is of the index's collections.
    /// - Returns: whether it is not, and the rest of its collection can be leapt over: `next` is behind that.
    private mutating func add(
        _ index: DeclaredIndex, wanted: [UInt8], key: RawSpan, value: RawSpan, _ path: inout WireWriter,
        _ next: inout WireWriter, catalogue: inout Catalogue, into batch: inout MutationBatch
    ) throws(StorageError) -> Bool {
        guard let parts = DocumentKey.parts(of: key), let record = StoredRecordView(value, versionMicroseconds: 0),
            KeyedDocument.writePath(key: key, parts: parts, record: record, into: &path)
        else { throw StorageError(.corrupt, "a document's entry is damaged") }
        guard KeyedDocument.collectionID(ofDocument: path.bytes).equalsBytes(wanted.byteSpan) else {
            if DocumentKey.isCutCollection(byteCount: parts.collectionByteCount) { return false }
            next.reset()
            next.append(key.extracting(0..<parts.collectionByteCount))
            next.append(byte: KeyLayout.documentMarker + 1)
            return true
        }
        let collection = try catalogue.adjust(
            key.extracting(0..<parts.collectionByteCount), path: path.bytes, by: 0, latest: reader)
        let document = IndexedDocument(
            database: index.database, collection: collection, key: key, parts, path: path.bytes)
        declared.derive(index, document, from: record.fields.extracting(0..<0), to: record.fields, into: &batch)
        return false
    }
}
