// Commits that no client's writes ask for: what they do, as records.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage

/// A commit of the store's own. Its record is decided from the tables in memory, and applied like any other.
enum SystemCommit {
    /// The next step of an index build that is not among some, or a change of whether automatic indexes are kept.
    case indexStep(AutomaticIndexes, besides: Set<IndexBuild> = [])
    /// Begins all declared indexes, or the automatic ones, from the first document again: their entries are gone.
    case rebuild(IndexMaintenance.Kind)
    /// Changes indexes on demand.
    case adapt([IndexChange])
    /// Makes the indexes and field overrides of a database those of a declaration.
    ///
    /// The analysis is the version of the libraries that analyse texts; empty if no index needs them.
    case declaration(IndexDeclaration, database: UInt32, analysis: String)
    /// Puts definitions of indexes for searches, those that are dropped among them.
    case renewSearches([DeclaredIndex])
    /// Puts the settings of a database; their times become those of the commit, unless they come from another store.
    case database(DatabaseSettings, number: UInt32, keepsTimes: Bool = false)
    /// Puts the right of the store to a database; its version becomes that of the commit.
    case tenure(DatabaseTenure, number: UInt32)
    /// Deletes the remembered results of sessions.
    case forgetSessions([SessionTable.SessionName])
    /// Only a version: later versions are above it, also after a restart.
    case clockNote

    /// Whether the states of indexes may change with it.
    var changesIndexes: Bool {
        switch self {
        case .indexStep, .rebuild, .adapt, .declaration, .renewSearches: true
        case .forgetSessions, .clockNote, .database, .tenure: false
        }
    }

    /// Whether it may use the disk space that is reserved for deletes: it takes little, for commits that were accepted.
    var mayUseReserve: Bool { !changesIndexes }

    /// Writes the record of the commit.
    /// - Returns: false if there is nothing to do.
    func decide(
        _ tables: borrowing CommitApplier, version: CommitVersion, into record: inout ByteBuffer
    ) throws(StorageError) -> Bool {
        switch self {
        case .indexStep(let mode, let paused):
            return try tables.indexes.decideStep(mode: mode, besides: paused, version: version, into: &record)
        case .rebuild(let kind):
            return tables.indexes.decideRebuild(of: kind, into: &record)
        case .adapt(let changes):
            return tables.indexes.decide(changes, at: version, into: &record)
        case .declaration(let wanted, let database, let analysis):
            return tables.indexes.decide(wanted, in: database, at: version, analysis: analysis, into: &record)
        case .renewSearches(let indexes):
            DefinitionRecord.write(
                from: [], to: [], indexes.map { .index($0, isDropped: false) }, into: &record)
            return !indexes.isEmpty
        case .forgetSessions(let sessions):
            SessionsRecord.write(sessions, into: &record)
            return !sessions.isEmpty
        case .database(var settings, let number, let keepsTimes):
            if !keepsTimes { settings.updateMicroseconds = version.microseconds }
            if settings.state == .deleting { settings.deleteMicroseconds = version.microseconds }
            DatabaseRecord(number: number, settings).write(into: &record)
            return true
        case .tenure(var tenure, let number):
            tenure.version = version.microseconds
            DatabaseRecord(number: number, tenure).write(into: &record)
            return true
        case .clockNote:
            record.append(byte: LogRecord.clockKind)
            return true
        }
    }
}
