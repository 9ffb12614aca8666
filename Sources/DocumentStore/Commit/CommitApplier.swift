// What the records of the log do to the keys and to the tables in memory.
//
//     commit thread   decide a write ──► item ──► record ──► log
//                                          │
//                                          ▼
//                                    CommitApplier ──► keys (documents, index entries, answers, databases),
//                                          ▲           catalogue, field numbers, sessions, index states
//                                          │
//     recovery        log ──► record ──► item
//
// This is the only place that knows what follows from a record. A live commit applies each item as soon as it is
// decided, so that the next write of the commit sees it. Recovery reads the same items from the log and applies them
// in the same order. Both therefore stage the same keys and give the same numbers to collections and fields.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage
internal import StorageEngines
internal import StoreFormat
internal import TextAnalysis

/// Derives keys and tables from log items and records. Belongs to the commit thread, or to recovery.
///
/// Every commit runs `begin`, any number of `apply`, `finish`, then `keep` or `rollBack`. After an error only
/// `rollBack` is allowed.
struct CommitApplier: ~Copyable {
    private(set) var catalogue = Catalogue()
    private(set) var indexes: IndexMaintenance
    private(set) var sessions: SessionTable
    private let databases: DatabaseDirectory
    private let latest: LatestReader

    // The commit that is being applied.
    private var version = CommitVersion.zero
    private var database: UInt32 = 0
    private var newDatabase: DatabaseName?
    private var changedDatabase: DatabaseRecord<DatabaseSettings>?
    private var changedTenure: DatabaseRecord<DatabaseTenure>?
    private var answered: [RequestIdentifier] = []
    private var forgotten: [SessionTable.SessionName] = []

    private var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
    private var value = ByteBuffer(capacity: 64)

    /// - Parameters:
    ///   - latest: the newest state, without the commit that is being applied.
    ///   - textLibraries: see `StoreConfiguration.textLibraries`.
    /// - Throws: a `StorageError` if the stored index definitions cannot be read.
    init(
        latest: LatestReader, sessions: consuming SessionTable, databases: DatabaseDirectory,
        textLibraries: @escaping @Sendable () -> TextLibraries
    ) throws(StorageError) {
        indexes = try IndexMaintenance(latest: latest, textLibraries: textLibraries)
        self.sessions = sessions
        self.databases = databases
        self.latest = latest
    }

    // MARK: Searches

    /// What brings the indexes for searches in line with the libraries that analyse texts.
    func searchRenewal() -> [DeclaredIndex] { indexes.searchRenewal() }

    /// The version of these libraries, which are loaded now.
    ///
    /// - Throws: `FAILED_PRECONDITION` if they are required and missing.
    func analysisVersion(isRequired: Bool) throws(RequestError) -> String {
        let libraries = indexes.search.libraries
        if isRequired { try libraries.require() }
        return libraries.version ?? ""
    }

    // MARK: One commit

    /// Starts a commit.
    /// - Parameter newDatabase: the name of the database if this is its first commit: its key is put, and what was said
    ///   of a deleted one of this name is forgotten.
    mutating func begin(
        version: CommitVersion, database: UInt32, newDatabase: DatabaseName?, into mutations: inout MutationBatch
    ) {
        self.version = version
        self.database = database
        self.newDatabase = newDatabase
        if let newDatabase {
            DatabaseDirectory.write(newDatabase, number: database, key: &key, value: &value)
            mutations.put(key: key.bytes, value: value.bytes)
            guard databases.hasSettings(database) else { return }
            DatabaseDirectory.writeSettingsKey(of: database, into: &key)
            mutations.delete(key: key.bytes)
        }
    }

    /// Whether `apply` uses the fields that a document had before.
    var needsPriorFields: Bool { indexes.keepsEntries }

    /// Applies the change of one document: its key and value, the count of its collection, its index entries.
    ///
    /// - Parameters:
    ///   - item: what the log says of the document; not an answer.
    ///   - location: the key of the item's path.
    ///   - before: the fields of the document before this item; empty if it did not exist, or if `needsPriorFields`
    ///     is false.
    mutating func apply(
        _ item: borrowing LogItem, at location: borrowing DocumentLocation, replacing before: RawSpan,
        into mutations: inout MutationBatch
    ) throws(StorageError) {
        let delta = item.kind.addsDocument ? 1 : item.kind == .deleted ? -1 : 0
        let collection = try catalogue.adjust(location.collection, path: item.path, by: delta, latest: latest)
        if item.kind == .deleted {
            mutations.delete(key: location.key)
        } else {
            item.writeHeader(at: version, isCut: location.parts.isCut, into: &value)
            mutations.put(key: location.key, value: value.bytes, item.payload)
        }
        guard indexes.keepsEntries else { return }
        let document = IndexedDocument(
            database: database, collection: collection, key: location.key, location.parts, path: item.path)
        try indexes.derive(document, from: before, to: item.payload, into: &mutations)
    }

    /// Remembers the result of a request, and puts it under the key of its slot.
    ///
    /// - Parameter slot: of the record; nil chooses one.
    /// - Returns: the slot.
    mutating func apply(
        answer encodedResult: RawSpan, to identifier: RequestIdentifier, slot: UInt32? = nil, nowMilliseconds: UInt64,
        into mutations: inout MutationBatch
    ) -> UInt32 {
        let slot = sessions.keep(
            identifier, encodedResult: encodedResult, slot: slot, database: database,
            nowMilliseconds: nowMilliseconds)
        answered.append(identifier)
        SessionTable.SlotName(session: SessionTable.SessionName(identifier), slot: slot).writeKey(into: &key)
        value.reset()
        value.appendVarint(identifier.sequence)
        mutations.put(key: key.bytes, value: value.bytes, encodedResult)
        return slot
    }

    /// Applies a record without documents: a step of an index build, index definitions, the end of sessions, the
    /// settings of a database, the right to one, or a note of the clock.
    /// - Throws: `corrupt` if the record cannot be read.
    mutating func apply(systemRecord record: RawSpan, into mutations: inout MutationBatch) throws(StorageError) {
        switch record.byteCount > 0 ? record[byteAt: 0] : 0 {
        case LogRecord.clockKind: break
        case LogRecord.indexKind:
            try indexes.apply(try IndexStepRecord(record), catalogue: &catalogue, into: &mutations)
        case LogRecord.definitionKind:
            try indexes.apply(try DefinitionRecord(record), catalogue: &catalogue, into: &mutations)
        case LogRecord.sessionsKind: forget(try SessionsRecord.read(record), into: &mutations)
        case LogRecord.databaseKind:
            let changed = try DatabaseRecord<DatabaseSettings>(record)
            DatabaseDirectory.writeSettingsKey(of: changed.number, into: &key)
            put(changed.contents, into: &mutations)
            changedDatabase = changed
        case LogRecord.tenureKind:
            let changed = try DatabaseRecord<DatabaseTenure>(record)
            DatabaseDirectory.writeTenureKey(of: changed.number, into: &key)
            put(changed.contents, into: &mutations)
            changedTenure = changed
        default: throw StorageError(LogRecord.Malformed(offset: 0))
        }
    }

    /// Puts what is stored of a database under the key that was written.
    private mutating func put(_ contents: some DatabaseRecordContents, into mutations: inout MutationBatch) {
        value.reset()
        contents.append(to: &value)
        mutations.put(key: key.bytes, value: value.bytes)
    }

    private mutating func forget(_ sessionNames: [SessionTable.SessionName], into mutations: inout MutationBatch) {
        for session in sessionNames {
            forgotten.append(session)
            for slot in 0..<sessions.slotCount(of: session) {
                SessionTable.SlotName(session: session, slot: slot).writeKey(into: &key)
                mutations.delete(key: key.bytes)
            }
        }
    }

    /// Puts the entries of the catalogue, the field numbers and the statistics of searches that the commit has changed.
    /// So a reader at its version
    /// finds them with the documents, and a checkpoint after any commit has them.
    mutating func finish(into mutations: inout MutationBatch) {
        catalogue.writeChanges(into: &mutations)
        indexes.writeChanges(into: &mutations)
    }

    /// The commit is staged: the tables keep it.
    mutating func keep() {
        catalogue.keepCommit()
        indexes.keepCommit()
        if let newDatabase { databases.markStored(newDatabase, number: database, version: version.microseconds) }
        if let changed = changedDatabase.take() { databases.set(changed.contents, of: changed.number) }
        if let changed = changedTenure.take() { databases.set(changed.contents, of: changed.number) }
        if !forgotten.isEmpty {
            for session in forgotten { sessions.remove(session) }
            forgotten.removeAll()
        }
        if !answered.isEmpty { answered.removeAll(keepingCapacity: true) }
    }

    /// The commit came to nothing: the tables are as before `begin`.
    mutating func rollBack() {
        catalogue.rollBackCommit()
        indexes.rollBackCommit()
        for identifier in answered.reversed() { sessions.undo(identifier) }
        answered.removeAll(keepingCapacity: true)
        changedDatabase = nil
        changedTenure = nil
        forgotten.removeAll()
    }
}
