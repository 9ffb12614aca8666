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
    private var replay: Replaying?
    private var isLoaded = false
    private let nowMilliseconds: UInt64
    private let onDerived: StoreConfiguration.DerivedObserver?
    private let textLibraries: @Sendable () -> TextLibraries

    init(configuration: StoreConfiguration, databases: DatabaseDirectory) {
        self.databases = databases
        nowMilliseconds = configuration.clock.elapsedMilliseconds
        onDerived = configuration.onDerived
        textLibraries = configuration.textLibraries
        loadedSessions = SessionTable(
            sessionsMax: configuration.sessionsMax, bytesMax: configuration.sessionBytesMax,
            resultsMax: configuration.resultsPerSessionMax, idleMilliseconds: configuration.sessionIdleMilliseconds)
    }

    /// Derives what one record's commit changed; the engine's `Replay`.
    func replay(
        _ version: CommitVersion, _ record: RawSpan, _ mutations: inout MutationBatch, _ latest: LatestReader
    ) throws {
        if replay == nil {
            try loadIfNeeded(from: latest)
            let applier = try CommitApplier(
                latest: latest, sessions: loadedSessions, databases: databases, textLibraries: textLibraries)
            replay = Replaying(
                applier: applier, replay: RecordReplay(latest: latest, nowMilliseconds: nowMilliseconds))
        }
        try replay!.apply(record, version: version, into: &mutations)
        onDerived?(version, mutations.contentHash)
    }

    /// What a record is applied with.
    private struct Replaying: ~Copyable {
        var applier: CommitApplier
        var replay: RecordReplay
        /// Nobody listens during recovery.
        var collector = ChangeCollector()

        init(applier: consuming CommitApplier, replay: consuming RecordReplay) {
            self.applier = applier
            self.replay = replay
        }

        mutating func apply(
            _ record: RawSpan, version: CommitVersion, into mutations: inout MutationBatch
        ) throws {
            try replay.apply(record, version: version, with: &applier, collecting: &collector, into: &mutations)
            applier.keep()
        }
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
    private static let settingsEnd: [UInt8] = [KeySpace.meta.rawValue, UInt8(ascii: "s") + 1]
    private static let tenuresEnd: [UInt8] = [KeySpace.meta.rawValue, UInt8(ascii: "o") + 1]
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
        let (settingsStart, settingsEnd) = (DatabaseDirectory.settingsPrefix, Recovery.settingsEnd)
        var settings = try latest.cursor(from: settingsStart.byteSpan, to: settingsEnd.byteSpan)
        try loadSettings(&settings)
        let (tenuresStart, tenuresEnd) = (DatabaseDirectory.tenurePrefix, Recovery.tenuresEnd)
        var tenures = try latest.cursor(from: tenuresStart.byteSpan, to: tenuresEnd.byteSpan)
        try loadTenures(&tenures)
        var sessions = try latest.cursor(from: sessionsStart.byteSpan, to: sessionsEnd.byteSpan)
        try loadSessions(&sessions)
    }

    private func loadDatabases(_ cursor: inout EngineCursor) throws(StorageError) {
        while try cursor.next() {
            guard let found = DatabaseDirectory.read(value: cursor.value) else {
                throw StorageError(.corrupt, "a database's entry is damaged")
            }
            databases.markStored(found.name, number: found.number, version: cursor.version.microseconds)
        }
    }

    private func loadSettings(_ cursor: inout EngineCursor) throws(StorageError) {
        while try cursor.next() {
            guard let number = DatabaseDirectory.number(ofSettingsKey: cursor.key),
                let settings = DatabaseSettings(cursor.value), databases.set(settings, of: number)
            else { throw StorageError(.corrupt, "the settings of a database are damaged") }
        }
    }

    private func loadTenures(_ cursor: inout EngineCursor) throws(StorageError) {
        while try cursor.next() {
            guard let number = DatabaseDirectory.number(ofSettingsKey: cursor.key),
                let tenure = DatabaseTenure(cursor.value), databases.set(tenure, of: number)
            else { throw StorageError(.corrupt, "the right to a database is damaged") }
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
