// Opening: what the log says is derived again, and what is kept in memory is read from the keys.

internal import DocumentModel
internal import KeyValueStore

/// Derives the mutations of log records, in order, and gathers the databases and sessions on the way.
///
/// The same rules as `CommitBuilder`, with the decisions already made: nothing is validated and no document is read.
final class Recovery {
    let databases: DatabaseDirectory
    private(set) var sessions: SessionTable
    private let nowMilliseconds: UInt64

    private var catalogue = Catalogue()
    /// Made with the first record.
    private var entries: EntryReplay?
    private var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)
    private var header = WireWriter(capacity: 64)
    private var isLoaded = false

    init(configuration: StoreConfiguration, databases: DatabaseDirectory) {
        self.databases = databases
        nowMilliseconds = configuration.clock.elapsedMilliseconds
        sessions = SessionTable(
            sessionsMaximum: configuration.sessionsMaximum, resultsMaximum: configuration.resultsPerSessionMaximum,
            idleMilliseconds: configuration.sessionIdleMilliseconds)
    }

    // MARK: Replay

    /// Derives what one record's commit changed; the engine's `Replay`.
    func replay(
        _ version: CommitVersion, _ record: RawSpan, _ mutations: inout MutationBatch, _ latest: LatestReader
    ) throws {
        try loadIfNeeded(from: latest)
        var reader = try LogRecordReader(record)
        if reader.kind == LogRecord.clockKind { return }
        if entries == nil {
            entries = EntryReplay(try IndexMaintenance(latest: latest))
        }
        catalogue.beginCommit()
        entries!.beginCommit()
        if reader.kind == LogRecord.indexKind || reader.kind == LogRecord.definitionKind {
            try entries!.repeatStep(record, catalogue: &catalogue, into: &mutations)
            return try finish(&mutations, latest)
        }
        if reader.newDatabaseName.byteCount > 0 {
            let name = try DatabaseName(reader.newDatabaseName)
            databases.markStored(name, number: reader.database)
            DatabaseDirectory.write(name, number: reader.database, key: &key, value: &header)
            Recovery.put(key, header, into: &mutations)
        }
        while let item = try reader.next() {
            if let identifier = item.identifier {
                keepAnswer(to: identifier, encodedResult: item.payload)
                Recovery.put(key, header, into: &mutations)
            } else {
                let (parts, collection) = try Recovery.derive(
                    item, database: reader.database, version: version, into: &mutations, latest: latest, key: &key,
                    header: &header, catalogue: &catalogue)
                try Recovery.index(
                    item, in: record, key: key, parts, collection: collection, database: reader.database,
                    entries: &entries!, into: &mutations, latest: latest)
            }
        }
        try finish(&mutations, latest)
    }

    /// Puts what is kept once for a record here, and once for a group when commits are new.
    private func finish(_ mutations: inout MutationBatch, _ latest: LatestReader) throws {
        catalogue.keepCommit()
        try catalogue.writeChanges(into: &mutations, latest: latest)
        catalogue.trim()
        entries!.finish(into: &mutations)
    }

    private static func index(
        _ item: borrowing LogItem, in record: RawSpan, key: borrowing WireWriter, _ parts: DocumentKey.Parts,
        collection: UInt64, database: UInt32, entries: inout EntryReplay, into mutations: inout MutationBatch,
        latest: LatestReader
    ) throws {
        try entries.derive(
            item, in: record, key: key.bytes, parts, collection: collection, database: database, into: &mutations,
            latest: latest)
    }

    private static func put(
        _ key: borrowing WireWriter, _ value: borrowing WireWriter, into mutations: inout MutationBatch
    ) {
        mutations.put(key: key.bytes, value: value.bytes)
    }

    private static func derive(
        _ item: borrowing LogItem, database: UInt32, version: CommitVersion, into mutations: inout MutationBatch,
        latest: LatestReader, key: inout WireWriter, header: inout WireWriter, catalogue: inout Catalogue
    ) throws -> (DocumentKey.Parts, collection: UInt64) {
        guard item.path.firstOffset(of: UInt8(ascii: "/")) ?? 0 > 0 else { throw LogRecord.Malformed(offset: 0) }
        let parts = DocumentKey.write(item.path, database: database, into: &key)
        let delta = item.kind == .created ? 1 : item.kind == .deleted ? -1 : 0
        let collection = try catalogue.adjust(
            key.bytes.extracting(0..<parts.collectionByteCount), path: item.path, by: delta, latest: latest)
        if item.kind == .deleted {
            mutations.delete(key: key.bytes)
            return (parts, collection)
        }
        let isNew = item.kind == .created || item.createMicroseconds == version.microseconds
        StoredRecord.writeHeader(
            createMicroseconds: isNew ? nil : item.createMicroseconds, path: item.path, isCut: parts.isCut,
            into: &header)
        mutations.put(key: key.bytes, value: header.bytes, item.payload)
        return (parts, collection)
    }

    /// Remembers an answer and writes its slot's key and value.
    private func keepAnswer(to identifier: RequestIdentifier, encodedResult: RawSpan) {
        let slot = sessions.keep(identifier, encodedResult: encodedResult, nowMilliseconds: nowMilliseconds)
        SessionTable.SlotName(session: SessionTable.SessionName(identifier), slot: slot).writeKey(into: &key)
        header.reset()
        header.appendVarint(identifier.sequence)
        header.append(encodedResult)
    }

    // MARK: What is kept in memory

    private static let databasesEnd: [UInt8] = [KeySpace.meta.rawValue, UInt8(ascii: "d") + 1]
    private static let sessionsStart: [UInt8] = [KeySpace.sessions.rawValue]
    private static let sessionsEnd: [UInt8] = [KeySpace.sessions.rawValue + 1]

    /// Reads databases and sessions from an engine that had nothing to replay.
    func loadIfNeeded(from engine: StorageEngine) throws(StorageError) {
        if isLoaded { return }
        isLoaded = true
        let (databasesStart, databasesEnd) = (DatabaseDirectory.keyPrefix, Recovery.databasesEnd)
        let (sessionsStart, sessionsEnd) = (Recovery.sessionsStart, Recovery.sessionsEnd)
        let snapshot = try engine.makeReader().snapshot()
        var databases = try snapshot.cursor(from: databasesStart.byteSpan, to: databasesEnd.byteSpan)
        try loadDatabases(&databases)
        var sessions = try snapshot.cursor(from: sessionsStart.byteSpan, to: sessionsEnd.byteSpan)
        try loadSessions(&sessions)
    }

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
            sessions.restore(slot, sequence: sequence, encodedResult: result, nowMilliseconds: nowMilliseconds)
        }
    }
}
