// One commit in the making: what it changes, computed and written down before anything of it is published.
//
// From the writes of a request three things grow side by side: the log record (what is promised), the mutations (what
// the keys become) and the books (catalogue, recent changes). A write sees the document as the writes before it in the
// same commit left it. If one fails, everything is taken back and nothing has happened.
//
// A document that several writes go to is logged and staged once, at its last write: the states in between are nobody's
// business (`RepeatedWrites`).
//
// The buffers stand in groups, `tools`, `repeats` and `draft`, because spans of one are written into the other, and the
// compiler tells two groups apart where it would not tell two properties.

internal import Basics
internal import DocumentModel
internal import KeyValueStore

/// Computes commits, one after the other, in buffers that are kept. Belongs to the commit thread.
struct CommitBuilder: ~Copyable {
    private var tools = CommitTools()
    private var repeats = RepeatedWrites()
    private(set) var draft: CommitDraft
    private let workMaximum: Int

    /// - Parameter workMaximum: bytes of documents that one commit may read and write.
    init(
        changes: consuming RecentChanges, indexes: consuming IndexMaintenance, entriesMax: Int, workMaximum: Int
    ) {
        draft = CommitDraft(changes: changes, indexes: indexes, entriesMax: entriesMax)
        self.workMaximum = workMaximum
    }

    /// Starts a commit.
    /// - Parameter newDatabaseName: given if the commit would be the first of its database.
    mutating func begin(version: CommitVersion, database: UInt32, newDatabaseName: DatabaseName?) {
        draft.begin(version: version, database: database, newDatabaseName: newDatabaseName)
        tools.application.budget = WorkBudget(bytes: workMaximum)
        repeats.forget()
    }

    /// Takes everything back.
    mutating func rollBack() { draft.rollBack() }

    /// The commit is staged: the books keep it.
    mutating func keep() { draft.keep() }

    /// Looks through the writes to come for documents written repeatedly.
    /// - Returns: whether there are any.
    mutating func expect(_ list: borrowing WriteList) -> Bool { repeats.begin(list) }

    /// Applies the write at this position of the list, after all before it, to the document as it is now.
    ///
    /// - Throws: what the write's preconditions and rules say, or that the commit is too much work; the commit is as
    ///   before the call then.
    mutating func apply(
        _ position: Int, of list: borrowing WriteList, latest: LatestReader
    ) throws(RequestError) -> WriteResult {
        try draft.checkRoom(for: repeats.byteCount)
        let write = list.writes[position]
        if let document = repeats.document(ofWrite: position) {
            return try CommitBuilder.apply(
                write, of: list, to: document, isLast: repeats.isLast(position, of: document), latest: latest,
                tools: &tools, repeats: &repeats, draft: &draft)
        }
        return try CommitBuilder.apply(write, of: list, latest: latest, tools: &tools, draft: &draft)
    }

    /// Applies the masked updates of one document that begin at this position of the list, in one pass, if there are
    /// several.
    /// - Returns: the results of the writes applied; empty if there is no such run.
    mutating func applyRun(
        from position: Int, of list: borrowing WriteList, latest: LatestReader
    ) throws(RequestError) -> [WriteResult] {
        guard let run = repeats.maskedRun(from: position, of: list),
            let document = repeats.document(ofWrite: position), let state = repeats.state(of: document)
        else { return [] }
        try draft.checkRoom(for: repeats.byteCount)
        guard try tools.application.merge(run, of: list, to: state.fields.byteSpan) else {
            repeats.applyOneByOne(run)
            return []
        }
        CommitBuilder.keep(tools, as: document, in: &repeats)
        if repeats.isLast(run.upperBound - 1, of: document), let state = repeats.takeState(of: document) {
            let path = list.path(of: list.writes[position])
            let parts = DocumentKey.write(path, database: draft.database, into: &tools.key)
            try CommitBuilder.stage(state, path, parts, latest: latest, tools: &tools, draft: &draft)
        }
        return [WriteResult](
            repeating: WriteResult(updateMicroseconds: draft.version.microseconds), count: run.count)
    }

    private static func keep(_ tools: borrowing CommitTools, as document: Int, in repeats: inout RepeatedWrites) {
        repeats.set(document, fields: tools.application.mergedFields)
    }

    /// Applies the only write to a document.
    private static func apply(
        _ write: Write, of list: borrowing WriteList, latest: LatestReader, tools: inout CommitTools,
        draft: inout CommitDraft
    ) throws(RequestError) -> WriteResult {
        let path = list.path(of: write)
        let parts = DocumentKey.write(path, database: draft.database, into: &tools.key)
        let (outcome, existed) = try tools.apply(write, of: list, toStored: path, latest: latest, at: draft.version)
        switch outcome.effect {
        case .none: break
        case .put:
            tools.writeHeader(createMicroseconds: outcome.createMicroseconds, path, parts, at: draft.version)
            try draft.put(
                key: tools.key.bytes, parts, path: path, existed: existed,
                createMicroseconds: outcome.createMicroseconds, header: tools.header.bytes,
                from: tools.oldFields.bytes, to: tools.application.newFields(of: write, in: list), latest: latest)
        case .delete:
            try draft.delete(key: tools.key.bytes, parts, path: path, from: tools.oldFields.bytes, latest: latest)
        }
        return outcome.result
    }

    /// Applies one of several writes to a document; the last one stages what all of them have made of it.
    private static func apply(
        _ write: Write, of list: borrowing WriteList, to document: Int, isLast: Bool, latest: LatestReader,
        tools: inout CommitTools, repeats: inout RepeatedWrites, draft: inout CommitDraft
    ) throws(RequestError) -> WriteResult {
        let path = list.path(of: write)
        let parts = DocumentKey.write(path, database: draft.database, into: &tools.key)
        let outcome =
            if let state = repeats.state(of: document) {
                try tools.apply(write, of: list, to: state, at: draft.version)
            } else {
                try tools.apply(write, of: list, toStored: path, latest: latest, at: draft.version).outcome
            }
        if outcome.effect != .none {
            repeats.set(document, to: outcome, fields: tools.application.newFields(of: write, in: list))
        }
        if isLast, let state = repeats.takeState(of: document) {
            try stage(state, path, parts, latest: latest, tools: &tools, draft: &draft)
        }
        return outcome.result
    }

    /// Stages the last state of a document that several writes went to. One that was missing before and is missing
    /// again has not changed.
    private static func stage(
        _ state: RepeatedWrites.State, _ path: RawSpan, _ parts: DocumentKey.Parts, latest: LatestReader,
        tools: inout CommitTools, draft: inout CommitDraft
    ) throws(RequestError) {
        let existed = try tools.readOldFields(path, latest: latest)
        if state.exists {
            tools.writeHeader(createMicroseconds: state.createMicroseconds, path, parts, at: draft.version)
            try draft.put(
                key: tools.key.bytes, parts, path: path, existed: existed,
                createMicroseconds: state.createMicroseconds, header: tools.header.bytes,
                from: tools.oldFields.bytes, to: state.fields.byteSpan, latest: latest)
        } else if existed {
            try draft.delete(key: tools.key.bytes, parts, path: path, from: tools.oldFields.bytes, latest: latest)
        }
    }

    // MARK: The store's own keys

    /// Adds the keys of a database that comes into being.
    mutating func addDatabase(_ name: DatabaseName, number: UInt32) {
        DatabaseDirectory.write(name, number: number, key: &tools.key, value: &tools.header)
        CommitBuilder.put(tools, into: &draft)
    }

    private static func put(_ tools: borrowing CommitTools, into draft: inout CommitDraft) {
        draft.mutations.put(key: tools.key.bytes, value: tools.header.bytes)
    }

    /// Adds the remembered result of the commit's request.
    mutating func addAnswer(to identifier: RequestIdentifier, slot: UInt32, encodedResult: RawSpan) {
        draft.record.appendAnswer(to: identifier, encodedResult: encodedResult)
        SessionTable.SlotName(session: SessionTable.SessionName(identifier), slot: slot).writeKey(into: &tools.key)
        tools.header.reset()
        tools.header.appendVarint(identifier.sequence)
        tools.header.append(encodedResult)
        CommitBuilder.put(tools, into: &draft)
    }

    /// Puts every catalogue entry changed and every field numbered since the last time.
    mutating func writeBooks(into batch: inout MutationBatch, latest: LatestReader) throws(StorageError) {
        try draft.catalogue.writeChanges(into: &batch, latest: latest)
        draft.indexes.derivation.fields.writeChanges(into: &batch)
    }

    mutating func trim() {
        draft.catalogue.trim()
        draft.indexes.derivation.fields.trim()
    }

    // MARK: Indexes

    /// Begins a commit that is a step in the making of indexes: a change of state if `isWanted` asks for one, else the next step
    /// of a build. Its record and mutations are the draft's; `keep` and `rollBack` end it as they do any commit.
    /// - Returns: false when there is nothing to do.
    mutating func beginIndexStep(
        version: CommitVersion, isWanted: Bool, record: inout WireWriter
    ) throws(StorageError) -> Bool {
        try draft.beginIndexStep(version: version, isWanted: isWanted, record: &record)
    }

    /// Begins a commit that makes a database's declared indexes those that are wanted.
    /// - Returns: false if they are that already.
    mutating func beginDeclaration(
        _ wanted: IndexDeclaration, version: CommitVersion, database: UInt32, record: inout WireWriter
    ) -> Bool {
        draft.beginDeclaration(wanted, version: version, database: database, record: &record)
    }

    /// The step that was begun could not be staged.
    mutating func rollBackIndexStep() {
        draft.rollBack()
        draft.indexes.leave()
    }
}

/// What is needed to compute a write, and nothing of its outcome.
private struct CommitTools: ~Copyable {
    var application = WriteApplication()
    /// The key of the document being written.
    var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)
    var header = WireWriter(capacity: 64)
    /// The fields of the document before the write; empty if there was none.
    var oldFields = WireWriter(capacity: 1024)

    /// Applies a write to a document that an earlier write of the commit changed.
    mutating func apply(
        _ write: Write, of list: borrowing WriteList, to state: RepeatedWrites.State, at version: CommitVersion
    ) throws(RequestError) -> WriteOutcome {
        if !state.exists {
            return try application.apply(write, of: list, to: nil, commitMicroseconds: version.microseconds)
        }
        let view = StoredDocumentView(
            createMicroseconds: state.createMicroseconds, updateMicroseconds: version.microseconds,
            fields: state.fields.byteSpan)
        return try application.apply(write, of: list, to: view, commitMicroseconds: version.microseconds)
    }

    /// Applies a write to the stored document.
    mutating func apply(
        _ write: Write, of list: borrowing WriteList, toStored path: RawSpan, latest: LatestReader,
        at version: CommitVersion
    ) throws(RequestError) -> (outcome: WriteOutcome, existed: Bool) {
        let stored: StoredValue?
        do throws(StorageError) { stored = try latest.value(forKey: key.bytes) } catch { throw RequestError(error) }
        oldFields.reset(keeping: 1 << 20)
        guard let stored else {
            return (
                try application.apply(write, of: list, to: nil, commitMicroseconds: version.microseconds), false
            )
        }
        guard let document = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds) else {
            throw .damagedRecord(path)
        }
        let view = StoredDocumentView(
            createMicroseconds: document.createMicroseconds, updateMicroseconds: document.updateMicroseconds,
            fields: document.fields)
        oldFields.append(view.fields)
        return (try application.apply(write, of: list, to: view, commitMicroseconds: version.microseconds), true)
    }

    /// Reads the fields of the stored document.
    /// - Returns: whether there is one.
    mutating func readOldFields(_ path: RawSpan, latest: LatestReader) throws(RequestError) -> Bool {
        let stored: StoredValue?
        do throws(StorageError) { stored = try latest.value(forKey: key.bytes) } catch { throw RequestError(error) }
        oldFields.reset(keeping: 1 << 20)
        guard let stored else { return false }
        guard let document = StoredRecordView(stored.bytes, versionMicroseconds: stored.version.microseconds) else {
            throw .damagedRecord(path)
        }
        oldFields.append(document.fields)
        return true
    }

    /// Writes the header that goes before the document's fields.
    mutating func writeHeader(
        createMicroseconds: UInt64, _ path: RawSpan, _ parts: DocumentKey.Parts, at version: CommitVersion
    ) {
        let isNew = createMicroseconds == version.microseconds
        StoredRecord.writeHeader(
            createMicroseconds: isNew ? nil : createMicroseconds, path: path, isCut: parts.isCut, into: &header)
    }
}

/// What a commit has come to so far.
struct CommitDraft: ~Copyable {
    /// What the commit changes.
    fileprivate(set) var mutations = MutationBatch(reservingBytes: 64 << 10)
    /// What the log will say of it.
    fileprivate(set) var record = LogRecordWriter()
    fileprivate(set) var catalogue = Catalogue()
    fileprivate(set) var changes: RecentChanges
    fileprivate(set) var indexes: IndexMaintenance
    private let entriesMax: Int
    /// Documents changed.
    private(set) var documentsWritten: UInt64 = 0
    /// No document is created or updated: the commit may use the space that is kept for deletes.
    private(set) var onlyDeletes = true

    private(set) var version = CommitVersion.zero
    private(set) var database: UInt32 = 0

    fileprivate init(changes: consuming RecentChanges, indexes: consuming IndexMaintenance, entriesMax: Int) {
        self.changes = changes
        self.indexes = indexes
        self.entriesMax = entriesMax
    }

    fileprivate mutating func begin(version: CommitVersion, database: UInt32, newDatabaseName: DatabaseName?) {
        self.version = version
        self.database = database
        mutations.removeAll()
        record.begin(database: database, newDatabaseName: newDatabaseName)
        catalogue.beginCommit()
        indexes.derivation.fields.beginCommit()
        changes.beginCommit()
        documentsWritten = 0
        onlyDeletes = true
    }

    fileprivate mutating func rollBack() {
        catalogue.rollBackCommit()
        indexes.derivation.fields.rollBackCommit()
        changes.rollBack(version: version.microseconds)
    }

    fileprivate mutating func keep() {
        catalogue.keepCommit()
        indexes.derivation.fields.keepCommit()
    }

    /// Whether the commit changes nothing.
    var isEmpty: Bool { record.itemCount == 0 }

    /// Bytes that one commit may have logged and staged when its next write is applied. The rest of what the engine
    /// takes at once is left for that write: a document, its entries, and what the group has staged already.
    private static let recordBytesMaximum = EngineLimits.recordBytesMax - (8 << 20)
    private static let stagedBytesMaximum = EngineLimits.groupBytesMax - (64 << 20)

    /// - Parameter pending: bytes of documents that are yet to be staged.
    /// - Throws: `RESOURCE_EXHAUSTED` if the commit has become too large for another write.
    fileprivate func checkRoom(for pending: Int) throws(RequestError) {
        let recordBytes = record.bytes.byteCount + pending
        if recordBytes > CommitDraft.recordBytesMaximum
            || recordBytes + pending + mutations.byteCount > CommitDraft.stagedBytesMaximum
        {
            throw .commitTooLarge
        }
    }

    private mutating func adjustCatalogue(
        _ collection: RawSpan, path: RawSpan, by delta: Int, latest: LatestReader
    ) throws(RequestError) -> UInt64 {
        do throws(StorageError) {
            return try catalogue.adjust(collection, path: path, by: delta, latest: latest)
        } catch {
            throw RequestError(error)
        }
    }

    /// - Throws: `INVALID_ARGUMENT` if the document would have more index entries than are allowed.
    private func checkEntries(of fields: RawSpan, _ path: RawSpan) throws(RequestError) {
        guard indexes.state.isKept, IndexedValue.mayExceed(entriesMax: entriesMax, fields: fields) else { return }
        let rules = indexes.groups.group(ofDocument: path, in: database)?.rules
        if IndexedValue.exceeds(entriesMax: entriesMax, fields: fields, rules: rules) {
            throw .invalidArgument("too many index entries for entity: a document may have \(entriesMax)")
        }
    }

    /// Brings the index entries of a written document up to date.
    private mutating func index(
        _ document: borrowing IndexedDocument, from old: RawSpan, to new: RawSpan
    ) throws(RequestError) {
        if !indexes.keepsEntries { return }
        do throws(StorageError) {
            try indexes.derive(document, from: old, to: new, into: &mutations)
        } catch {
            throw RequestError(error)
        }
    }

    fileprivate mutating func beginIndexStep(
        version: CommitVersion, isWanted: Bool, record: inout WireWriter
    ) throws(StorageError) -> Bool {
        begin(version: version, database: 0, newDatabaseName: nil)
        indexes.beginChange()
        if let state = try indexes.change(isWanted: isWanted) {
            IndexStepRecord.write(from: [], to: [], state: state, into: &record)
            indexes.enter(state, into: &mutations)
            return true
        }
        guard indexes.state.hasWork else {
            let step = try indexes.nextDeclaredStep(version: version, catalogue: &catalogue, into: &mutations)
            guard let step else { return false }
            DefinitionRecord.write(from: step.from, to: step.to, step.definitions, into: &record)
            indexes.enter(step.definitions, into: &mutations)
            return true
        }
        let step = try indexes.nextStep(version: version, catalogue: &catalogue, into: &mutations)
        IndexStepRecord.write(from: step.from, to: step.to, state: step.next, into: &record)
        indexes.enter(step.next, into: &mutations)
        return true
    }

    fileprivate mutating func beginDeclaration(
        _ wanted: IndexDeclaration, version: CommitVersion, database: UInt32, record: inout WireWriter
    ) -> Bool {
        begin(version: version, database: database, newDatabaseName: nil)
        indexes.beginChange()
        let step = indexes.change(to: wanted, in: database, at: version)
        if step.definitions.isEmpty { return false }
        DefinitionRecord.write(from: [], to: [], step.definitions, into: &record)
        indexes.enter(step.definitions, into: &mutations)
        return true
    }

    /// Stages a document that is there now.
    ///
    /// - Parameters:
    ///   - header: what goes before the fields in the stored record.
    ///   - old: its fields before the commit; empty if it was not there.
    fileprivate mutating func put(
        key: RawSpan, _ parts: DocumentKey.Parts, path: RawSpan, existed: Bool, createMicroseconds: UInt64,
        header: RawSpan, from old: RawSpan, to fields: RawSpan, latest: LatestReader
    ) throws(RequestError) {
        try checkEntries(of: fields, path)
        let collection = try adjustCatalogue(
            key.extracting(0..<parts.collectionByteCount), path: path, by: existed ? 0 : 1, latest: latest)
        if existed {
            record.appendUpdated(path: path, createMicroseconds: createMicroseconds, fields: fields)
        } else {
            record.appendCreated(path: path, fields: fields)
        }
        mutations.put(key: key, value: header, fields)
        onlyDeletes = false
        note(key)
        try index(
            IndexedDocument(database: database, collection: collection, key: key, parts, path: path), from: old,
            to: fields)
    }

    /// Stages the end of a document that was there before the commit.
    fileprivate mutating func delete(
        key: RawSpan, _ parts: DocumentKey.Parts, path: RawSpan, from old: RawSpan, latest: LatestReader
    ) throws(RequestError) {
        let collection = try adjustCatalogue(
            key.extracting(0..<parts.collectionByteCount), path: path, by: -1, latest: latest)
        record.appendDeleted(path: path)
        mutations.delete(key: key)
        note(key)
        try index(
            IndexedDocument(database: database, collection: collection, key: key, parts, path: path), from: old,
            to: path.extracting(0..<0))
    }

    private mutating func note(_ key: RawSpan) {
        changes.append(key: key, version: version.microseconds)
        documentsWritten += 1
    }
}

extension RequestError {
    /// More would be logged and staged than the storage takes at once.
    fileprivate static let commitTooLarge = RequestError(
        .resourceExhausted, "The commit is too large. Commit fewer or smaller documents at a time.")
}
