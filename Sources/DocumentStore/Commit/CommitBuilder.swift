// One commit in the making: what it changes, computed and written down before anything of it is published.
//
// From the writes of a request three things grow side by side: the log record (what is promised), the mutations (what
// the keys become) and the books (catalogue, recent changes). A write sees the document as the writes before it in the
// same commit left it. If one fails, everything is taken back and nothing has happened.
//
// The buffers stand in two groups, `tools` and `draft`, because spans of one are written into the other, and the compiler
// tells two groups apart where it would not tell two properties.

internal import DocumentModel
internal import KeyValueStore

/// Computes commits, one after the other, in buffers that are kept. Belongs to the commit thread.
struct CommitBuilder: ~Copyable {
    private var tools = CommitTools()
    private(set) var draft: CommitDraft

    init(changes: consuming RecentChanges, indexes: consuming IndexMaintenance, entriesMax: Int) {
        draft = CommitDraft(changes: changes, indexes: indexes, entriesMax: entriesMax)
    }

    /// Starts a commit.
    /// - Parameter newDatabaseName: given if the commit would be the first of its database.
    mutating func begin(version: CommitVersion, database: UInt32, newDatabaseName: DatabaseName?) {
        draft.begin(version: version, database: database, newDatabaseName: newDatabaseName)
    }

    /// Takes everything back.
    mutating func rollBack() { draft.rollBack() }

    /// The commit is staged: the books keep it.
    mutating func keep() { draft.keep() }

    /// Applies a write to the document as it is now.
    ///
    /// - Parameter isAlone: the commit has no other write, so nothing needs to be remembered for one.
    /// - Throws: what the write's preconditions and rules say; the commit is as before the call then.
    mutating func apply(
        _ write: Write, of list: borrowing WriteList, isAlone: Bool, latest: LatestReader
    ) throws(RequestError) -> WriteResult {
        try CommitBuilder.apply(write, of: list, isAlone: isAlone, latest: latest, tools: &tools, draft: &draft)
    }

    private static func apply(
        _ write: Write, of list: borrowing WriteList, isAlone: Bool, latest: LatestReader, tools: inout CommitTools,
        draft: inout CommitDraft
    ) throws(RequestError) -> WriteResult {
        let path = list.path(of: write)
        let parts = DocumentKey.write(path, database: draft.database, into: &tools.key)
        let hash = isAlone ? 0 : ByteTable.hash(tools.key.bytes)
        let existed: Bool
        let outcome: WriteOutcome
        if !isAlone, let state = draft.writtenState(of: tools.key.bytes, hash: hash) {
            existed = state.exists
            outcome = try tools.apply(
                write, of: list, toWritten: state, record: draft.record.bytes, at: draft.version)
        } else {
            (outcome, existed) = try tools.apply(write, of: list, toStored: path, latest: latest, at: draft.version)
        }
        if outcome.effect == .none { return outcome.result }
        if outcome.effect == .put { try draft.checkEntries(of: tools.application.newFields(of: write, in: list), path) }
        let delta = outcome.effect == .put ? (existed ? 0 : 1) : -1
        let collection = try draft.adjustCatalogue(
            tools.key.bytes.extracting(0..<parts.collectionByteCount), path: path, by: delta, latest: latest)
        if outcome.effect == .put {
            let isNew = outcome.createMicroseconds == draft.version.microseconds
            StoredRecord.writeHeader(
                createMicroseconds: isNew ? nil : outcome.createMicroseconds, path: path, isCut: parts.isCut,
                into: &tools.header)
            draft.put(
                key: tools.key.bytes, path: path, existed: existed, createMicroseconds: outcome.createMicroseconds,
                header: tools.header.bytes, fields: tools.application.newFields(of: write, in: list))
            try draft.index(
                IndexedDocument(
                    database: draft.database, collection: collection, key: tools.key.bytes, parts, path: path),
                from: tools.oldFields.bytes, to: tools.application.newFields(of: write, in: list))
        } else {
            draft.delete(key: tools.key.bytes, path: path)
            try draft.index(
                IndexedDocument(
                    database: draft.database, collection: collection, key: tools.key.bytes, parts, path: path),
                from: tools.oldFields.bytes, to: path.extracting(0..<0))
        }
        if !isAlone { draft.remember(tools.key.bytes, hash: hash, outcome) }
        return outcome.result
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

    /// Applies a write to a document that an earlier write of the commit left.
    mutating func apply(
        _ write: Write, of list: borrowing WriteList, toWritten state: CommitDraft.WrittenState, record: RawSpan,
        at version: CommitVersion
    ) throws(RequestError) -> WriteOutcome {
        oldFields.reset(keeping: 1 << 20)
        if !state.exists {
            return try application.apply(write, of: list, to: nil, commitMicroseconds: version.microseconds)
        }
        let view = StoredDocumentView(
            createMicroseconds: state.createMicroseconds, updateMicroseconds: version.microseconds,
            fields: record.extracting(state.fields))
        oldFields.append(view.fields)
        return try application.apply(write, of: list, to: view, commitMicroseconds: version.microseconds)
    }

    /// Applies a write to the stored document.
    mutating func apply(
        _ write: Write, of list: borrowing WriteList, toStored path: RawSpan, latest: LatestReader,
        at version: CommitVersion
    ) throws(RequestError) -> (WriteOutcome, existed: Bool) {
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

    private(set) var version = CommitVersion.zero
    private(set) var database: UInt32 = 0

    /// Keys of the documents that the commit has written, with positions in `states`; only for commits of several writes.
    private var written = ByteTable()
    private var states: [WrittenState] = []

    /// A document as a write of this commit left it.
    fileprivate struct WrittenState {
        var exists: Bool
        var createMicroseconds: UInt64
        /// Where its fields stand in the log record.
        var fields: Range<Int>
    }

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
        written.removeAll()
        states.removeAll(keepingCapacity: true)
        documentsWritten = 0
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

    fileprivate func writtenState(of key: RawSpan, hash: UInt64) -> WrittenState? {
        written.value(of: key, hash: hash).map { states[$0] }
    }

    fileprivate mutating func remember(_ key: RawSpan, hash: UInt64, _ outcome: WriteOutcome) {
        written.set(key, hash: hash, to: states.count)
        states.append(
            WrittenState(
                exists: outcome.effect == .put, createMicroseconds: outcome.createMicroseconds,
                fields: record.lastPayload))
    }

    fileprivate mutating func adjustCatalogue(
        _ collection: RawSpan, path: RawSpan, by delta: Int, latest: LatestReader
    ) throws(RequestError) -> UInt64 {
        do throws(StorageError) {
            return try catalogue.adjust(collection, path: path, by: delta, latest: latest)
        } catch {
            throw RequestError(error)
        }
    }

    /// - Throws: `INVALID_ARGUMENT` if the document would have more index entries than are allowed.
    fileprivate func checkEntries(of fields: RawSpan, _ path: RawSpan) throws(RequestError) {
        guard indexes.state.isKept, IndexedValue.mayExceed(entriesMax: entriesMax, fields: fields) else { return }
        let rules = indexes.groups.group(ofDocument: path, in: database)?.rules
        if IndexedValue.exceeds(entriesMax: entriesMax, fields: fields, rules: rules) {
            throw .invalidArgument("too many index entries for entity: a document may have \(entriesMax)")
        }
    }

    /// Brings the index entries of a written document up to date.
    fileprivate mutating func index(
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

    fileprivate mutating func put(
        key: RawSpan, path: RawSpan, existed: Bool, createMicroseconds: UInt64, header: RawSpan, fields: RawSpan
    ) {
        if existed {
            record.appendUpdated(path: path, createMicroseconds: createMicroseconds, fields: fields)
        } else {
            record.appendCreated(path: path, fields: fields)
        }
        mutations.put(key: key, value: header, fields)
        changes.append(key: key, version: version.microseconds)
        documentsWritten += 1
    }

    fileprivate mutating func delete(key: RawSpan, path: RawSpan) {
        record.appendDeleted(path: path)
        mutations.delete(key: key)
        changes.append(key: key, version: version.microseconds)
        documentsWritten += 1
    }
}
