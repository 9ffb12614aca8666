// A commit that is being made: its record so far, and the keys that follow from it.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage
internal import StorageEngines

/// The record of one commit and what applying it gives, in buffers that are kept for the next commit.
///
/// Each item is added once it is decided: it goes into the record, and `CommitApplier` derives the mutations from it.
/// `stage` or `rollBack` ends the commit. Belongs to the commit thread.
struct CommitDraft: ~Copyable {
    /// What the commit changes.
    private(set) var mutations = MutationBatch(reservingBytes: 64 << 10)
    /// What the log says of it.
    private(set) var record = LogRecordWriter()
    private(set) var applier: CommitApplier
    /// Keys of changed documents, by which the reads of transactions are validated.
    private(set) var changes: RecentChanges
    private let entriesMax: Int
    private let ownBytesMax: Int
    /// The changes for listeners.
    private var collector = ChangeCollector()
    private let feed: ChangeFeed
    private let onDerived: StoreConfiguration.DerivedObserver?
    private let derived: DerivedHashes
    private let derivedSpaces: DerivedSpaces
    private let changedPaths: ChangedPaths

    private(set) var version = CommitVersion.zero
    private(set) var database: UInt32 = 0
    /// Documents changed.
    private(set) var documentsWritten: UInt64 = 0
    /// Whether the commit may use the disk space that is reserved for deletes: it creates and updates no document.
    private(set) var mayUseReserve = true
    /// An item could not be applied: the commit can only be rolled back.
    private(set) var isBroken = false

    init(
        applier: consuming CommitApplier, changes: consuming RecentChanges, entriesMax: Int, ownBytesMax: Int,
        feed: ChangeFeed, derived: DerivedHashes, derivedSpaces: DerivedSpaces, changedPaths: ChangedPaths,
        onDerived: StoreConfiguration.DerivedObserver?
    ) {
        self.applier = applier
        self.changes = changes
        self.entriesMax = entriesMax
        self.ownBytesMax = ownBytesMax
        self.feed = feed
        self.onDerived = onDerived
        self.derived = derived
        self.derivedSpaces = derivedSpaces
        self.changedPaths = changedPaths
    }

    /// Starts a commit.
    /// - Parameter newDatabase: the database's name if this is its first commit.
    mutating func begin(version: CommitVersion, database: UInt32, newDatabase: DatabaseName?) {
        self.version = version
        self.database = database
        mutations.removeAll()
        record.begin(database: database, newDatabaseName: newDatabase)
        applier.begin(version: version, database: database, newDatabase: newDatabase, into: &mutations)
        changes.beginCommit()
        collector.begin(version: version.microseconds, database: database, isCollecting: feed.isWanted)
        documentsWritten = 0
        mayUseReserve = newDatabase == nil
        isBroken = false
    }

    /// The commit came to nothing: everything is as before `begin`.
    mutating func rollBack() {
        applier.rollBack()
        changes.rollBack(version: version.microseconds)
        collector.rollBack()
    }

    /// Hands the commit to the engine; the tables keep it.
    mutating func stage(with writer: EngineWriter) throws(StorageError) {
        applier.finish(into: &mutations)
        try writer.stage(
            version: version, record: record.bytes, mutations: mutations, mayUseReserve: mayUseReserve)
        applier.keep()
        noteDerived()
    }

    /// Applies a record of another server and hands it to the engine. When this throws, `rollBack` ends it.
    ///
    /// - Parameters:
    ///   - version: of the record; above all versions before.
    ///   - replay: reads it.
    /// - Throws: `corrupt` if the record cannot be read; what the engine throws.
    mutating func stage(
        replaying bytes: RawSpan, version: CommitVersion, with replay: inout RecordReplay, on writer: EngineWriter
    ) throws {
        self.version = version
        mutations.removeAll()
        changes.beginCommit()
        // A follower frees space like its leader: records of deletes come from there.
        collector.begin(version: version.microseconds, database: 0, isCollecting: feed.isWanted)
        try replay.apply(bytes, version: version, with: &applier, collecting: &collector, into: &mutations)
        try writer.stage(version: version, record: bytes, mutations: mutations, mayUseReserve: true)
        applier.keep()
        noteDerived()
    }

    /// Lends the indexes before any branch: to follow their lifetime over branches takes the compiler seconds.
    private func noteDerived() {
        CommitDraft.note(mutations, version, by: applier.indexes, derived, derivedSpaces)
        onDerived?(version, mutations.contentHash)
    }

    private static func note(
        _ mutations: borrowing MutationBatch, _ version: CommitVersion, by indexes: borrowing IndexMaintenance,
        _ hashes: DerivedHashes, _ spaces: DerivedSpaces
    ) {
        let (notesHash, notesSpaces) = (hashes.isWanted, spaces.isWanted)
        let isComparable = (notesHash || notesSpaces) && indexes.derivesAll
        if notesHash, isComparable { hashes.note(version.microseconds, mutations.contentHash) }
        if notesSpaces, isComparable {
            spaces.note(version.microseconds, mutations)
        } else if notesSpaces {
            spaces.skip(version.microseconds)
        }
    }

    /// Hands the changes of what was staged to the feed. Call it before the group is committed.
    mutating func sealChanges() {
        if let batch = collector.take() { feed.append(batch) }
    }

    /// Whether a commit of the store's own has staged enough: ``StoreConfiguration/ownCommitBytesMax``.
    var isFull: Bool { mutations.bytesNeeded >= ownBytesMax }

    /// Whether the commit changes nothing.
    var isEmpty: Bool { record.itemCount == 0 }

    // MARK: Documents

    /// Adds the change of one document.
    ///
    /// - Parameters:
    ///   - item: a created, updated or deleted document.
    ///   - location: the key of its path.
    ///   - prior: the document before the commit.
    /// - Throws: `INVALID_ARGUMENT` if the document would have too many index entries; the draft is as before then.
    ///   Any other error leaves the draft broken.
    mutating func add(
        _ item: borrowing LogItem, at location: borrowing DocumentLocation, replacing prior: borrowing PriorDocument
    ) throws(RequestError) {
        if item.kind != .deleted {
            // A copy may be of a document from before the present limit, or before the present indexes.
            if !item.kind.isCopy { try checkEntries(of: item.payload, item.path, replacing: prior.fields) }
            mayUseReserve = false
        }
        record.append(item)
        // No transaction can have read a copy while it is made.
        if !item.kind.isCopy { changes.append(key: location.key, version: version.microseconds) }
        if changedPaths.isWanted { changedPaths.note(item.path, in: database, version: version.microseconds) }
        documentsWritten += 1
        collector.append(item, replacing: prior)
        do throws(StorageError) {
            try applier.apply(item, at: location, replacing: prior.fields, into: &mutations)
        } catch {
            isBroken = true
            throw RequestError(error)
        }
    }

    /// Adds the result of the commit's request, to be remembered.
    mutating func add(answer encodedResult: RawSpan, to identifier: RequestIdentifier, nowMilliseconds: UInt64) {
        let slot = applier.apply(
            answer: encodedResult, to: identifier, nowMilliseconds: nowMilliseconds, into: &mutations)
        let nothing = encodedResult.extracting(0..<0)
        record.append(
            LogItem(.answerInSlot, path: nothing, payload: encodedResult, identifier: identifier, slot: slot))
    }

    /// Bytes that one commit may have logged and staged when its next write is applied. The rest of what the engine
    /// takes at once is left for that write: a document, its entries, and what the group has staged already.
    private static let recordBytesMax = EngineLimits.recordBytesMax - (8 << 20)
    private static let stagedBytesMax = EngineLimits.groupBytesMax - (64 << 20)

    /// - Parameter pending: bytes of documents that are yet to be staged.
    /// - Throws: `RESOURCE_EXHAUSTED` if the commit has become too large for another write.
    func checkRoom(for pending: Int) throws(RequestError) {
        let recordBytes = record.bytes.byteCount + pending
        if recordBytes > CommitDraft.recordBytesMax
            || recordBytes + pending + mutations.bytesNeeded > CommitDraft.stagedBytesMax
        {
            throw .commitTooLarge
        }
    }

    /// Parts of the entries of a document that an error names.
    private static let partsNamedMax = 3

    /// - Parameter old: the fields before; empty if there is no document.
    /// - Throws: `INVALID_ARGUMENT` if the document would have more index entries than are allowed, and more than it
    ///   has: it may be from before the present limit or the present indexes, and become smaller.
    private func checkEntries(
        of fields: RawSpan, _ path: RawSpan, replacing old: RawSpan
    ) throws(RequestError) {
        guard applier.indexes.exceeds(entriesMax: entriesMax, fields: fields, path, in: database) else { return }
        let counts = applier.indexes.entryCounts(of: fields, path, in: database)
        let count = counts.reduce(0) { $0 + $1.count }
        let oldCounts = applier.indexes.entryCounts(of: old, path, in: database)
        if count <= oldCounts.reduce(0, { $0 + $1.count }) { return }
        let parts = counts.prefix(Self.partsNamedMax).map { "\($0.count) of \($0.what)" }
        throw .invalidArgument(
            "too many index entries for entity: a document may have \(entriesMax), and this one would have \(count): "
                + parts.joined(separator: ", "))
    }

    // MARK: System commits

    /// Makes the commit one of the store's own.
    /// - Returns: false if there is nothing to do.
    mutating func add(_ systemCommit: SystemCommit, version: CommitVersion) throws(StorageError) -> Bool {
        mayUseReserve = systemCommit.mayUseReserve
        let isWanted = try CommitDraft.decide(systemCommit, version, from: applier, into: &record)
        guard isWanted else { return false }
        try CommitDraft.apply(record, with: &applier, into: &mutations)
        return true
    }

    private static func decide(
        _ systemCommit: SystemCommit, _ version: CommitVersion, from applier: borrowing CommitApplier,
        into record: inout LogRecordWriter
    ) throws(StorageError) -> Bool {
        try record.replace { writer throws(StorageError) in
            try systemCommit.decide(applier, version: version, into: &writer)
        }
    }

    private static func apply(
        _ record: borrowing LogRecordWriter, with applier: inout CommitApplier, into mutations: inout MutationBatch
    ) throws(StorageError) {
        try applier.apply(systemRecord: record.bytes, into: &mutations)
    }
}

extension RequestError {
    /// More would be logged and staged than the storage takes at once, now and later. The SDKs send a write again as
    /// long as the answer is RESOURCE_EXHAUSTED, and no later one before it.
    fileprivate static let commitTooLarge = RequestError(
        .invalidArgument, "The commit is too large. Commit fewer or smaller documents at a time.")
}
