// Opening: reads the log's records and applies them, and loads the tables that are kept in memory.

internal import Basics
internal import DocumentModel
internal import Storage
internal import StorageEngines
internal import StoreFormat
internal import TextAnalysis

/// Applies the records of the log, in order. The rules are those of `CommitApplier`; nothing is validated or decided
/// here.
final class Recovery {
    let databases: DatabaseDirectory
    private var loadedSessions: SessionTable
    /// Made with the first record.
    private var replay: RecordReplay?
    private var isLoaded = false
    private let nowMilliseconds: UInt64
    private let textLibraries: @Sendable () -> TextLibraries

    init(configuration: StoreConfiguration, databases: DatabaseDirectory) {
        self.databases = databases
        nowMilliseconds = configuration.clock.elapsedMilliseconds
        textLibraries = configuration.textLibraries
        loadedSessions = SessionTable(
            sessionsMax: configuration.sessionsMax, resultsMax: configuration.resultsPerSessionMax,
            idleMilliseconds: configuration.sessionIdleMilliseconds)
    }

    /// Derives what one record's commit changed; the engine's `Replay`.
    func replay(
        _ version: CommitVersion, _ record: RawSpan, _ mutations: inout MutationBatch, _ latest: LatestReader
    ) throws {
        if replay == nil {
            try loadIfNeeded(from: latest)
            let applier = try CommitApplier(
                latest: latest, sessions: loadedSessions, databases: databases, textLibraries: textLibraries)
            replay = RecordReplay(applier, latest: latest, nowMilliseconds: nowMilliseconds)
        }
        try replay!.apply(record, version: version, into: &mutations)
    }

    /// The applier of the commits to come, after everything is replayed.
    /// - Parameter latest: the newest state of the open engine.
    func makeApplier(latest: LatestReader) throws(StorageError) -> CommitApplier {
        try loadIfNeeded(from: latest)
        let sessions = replay?.applier.sessions ?? loadedSessions
        return try CommitApplier(
            latest: latest, sessions: sessions, databases: databases, textLibraries: textLibraries)
    }

    // MARK: Tables in memory

    private static let databasesEnd: [UInt8] = [KeySpace.meta.rawValue, UInt8(ascii: "d") + 1]
    private static let sessionsStart: [UInt8] = [KeySpace.sessions.rawValue]
    private static let sessionsEnd: [UInt8] = [KeySpace.sessions.rawValue + 1]

    /// Reads databases and sessions.
    private func loadIfNeeded(from latest: LatestReader) throws(StorageError) {
        if isLoaded { return }
        isLoaded = true
        let (databasesStart, databasesEnd) = (DatabaseDirectory.keyPrefix, Recovery.databasesEnd)
        let (sessionsStart, sessionsEnd) = (Recovery.sessionsStart, Recovery.sessionsEnd)
        var databases = try latest.cursor(from: databasesStart.byteSpan, to: databasesEnd.byteSpan)
        try loadDatabases(&databases)
        var sessions = try latest.cursor(from: sessionsStart.byteSpan, to: sessionsEnd.byteSpan)
        try loadSessions(&sessions)
    }

    private func loadDatabases(_ cursor: inout EngineCursor) throws(StorageError) {
        while try cursor.next() {
            guard let found = DatabaseDirectory.read(value: cursor.value) else {
                throw StorageError(.corrupt, "a database's entry is damaged")
            }
            databases.markStored(found.name, number: found.number)
        }
    }

    private func loadSessions(_ cursor: inout EngineCursor) throws(StorageError) {
        while try cursor.next() {
            var reader = WireReader(cursor.value)
            guard let slot = SessionTable.SlotName(key: cursor.key), let sequence = try? reader.varint() else {
                throw StorageError(.corrupt, "a session's entry is damaged")
            }
            let result = cursor.value.extracting(reader.position..<cursor.value.byteCount)
            loadedSessions.restore(slot, sequence: sequence, encodedResult: result, nowMilliseconds: nowMilliseconds)
        }
    }
}

/// Reads records and gives their items to the applier, each with the fields that its document had before.
private struct RecordReplay: ~Copyable {
    private(set) var applier: CommitApplier
    private let latest: LatestReader
    private let nowMilliseconds: UInt64
    private var location = DocumentLocation()
    private var prior = PriorDocument()
    private var earlier = EarlierItems()

    init(_ applier: consuming CommitApplier, latest: LatestReader, nowMilliseconds: UInt64) {
        self.applier = applier
        self.latest = latest
        self.nowMilliseconds = nowMilliseconds
    }

    mutating func apply(_ record: RawSpan, version: CommitVersion, into mutations: inout MutationBatch) throws {
        if LogRecord.kind(of: record) == LogRecord.commitKind {
            try applyCommit(record, version: version, into: &mutations)
        } else {
            applier.begin(version: version, database: 0, newDatabase: nil, into: &mutations)
            try applier.apply(systemRecord: record, into: &mutations)
        }
        applier.finish(into: &mutations)
        applier.keep()
    }

    private mutating func applyCommit(
        _ record: RawSpan, version: CommitVersion, into mutations: inout MutationBatch
    ) throws {
        var reader = try LogRecordReader(record)
        let isNew = reader.newDatabaseName.byteCount > 0
        applier.begin(
            version: version, database: reader.database,
            newDatabase: isNew ? try DatabaseName(reader.newDatabaseName) : nil, into: &mutations)
        earlier.removeAll()
        while let item = try reader.next() {
            if let identifier = item.identifier {
                applier.apply(
                    answer: item.payload, to: identifier, nowMilliseconds: nowMilliseconds, into: &mutations)
                continue
            }
            location.locate(item.path, database: reader.database)
            if applier.needsPriorFields {
                try RecordReplay.read(item, of: record, at: location, &prior, &earlier, latest)
            }
            try RecordReplay.apply(item, at: location, replacing: prior, with: &applier, into: &mutations)
        }
    }

    private static func apply(
        _ item: borrowing LogItem, at location: borrowing DocumentLocation, replacing prior: borrowing PriorDocument,
        with applier: inout CommitApplier, into mutations: inout MutationBatch
    ) throws(StorageError) {
        try applier.apply(item, at: location, replacing: prior.fields, into: &mutations)
    }

    /// Finds the fields that the item's document had before: an earlier item of the record left them, or they are
    /// stored.
    private static func read(
        _ item: borrowing LogItem, of record: RawSpan, at location: borrowing DocumentLocation,
        _ prior: inout PriorDocument, _ earlier: inout EarlierItems, _ latest: LatestReader
    ) throws(StorageError) {
        let fields = item.kind == .deleted ? nil : record.byteOffsets(of: item.payload)
        switch earlier.replace(location.key, by: fields) {
        case .some(let range?): prior.take(fields: record.extracting(range))
        case .some(nil): prior.clear()
        case nil where item.kind == .created: prior.clear()
        case nil: try prior.read(location, latest: latest)
        }
    }
}

/// The documents that the items of a record have written so far. Records of earlier versions of this program have an
/// item for every write; those of this version have one for every document.
private struct EarlierItems: ~Copyable {
    private var positions = ByteTable()
    /// Where the fields are in the record; nil for a document that was deleted.
    private var fields: [Range<Int>?] = []

    mutating func removeAll() {
        positions.removeAll()
        fields.removeAll(keepingCapacity: true)
    }

    /// Notes what an item does to a document.
    /// - Returns: what the item before it has left; nil if there is none.
    mutating func replace(_ key: RawSpan, by range: Range<Int>?) -> Range<Int>?? {
        let hash = ByteTable.hash(key)
        let before = positions.value(of: key, hash: hash).map { fields[$0] }
        positions.set(key, hash: hash, to: fields.count)
        fields.append(range)
        return before
    }
}
