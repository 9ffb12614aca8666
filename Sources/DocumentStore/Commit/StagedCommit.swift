// Taking a version, staging a commit under it, and undoing both: written once, for commits of clients and of the store.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage
internal import StorageEngines

/// Makes commits, one at a time: a draft, a version for it, and the engine that takes it. Belongs to the commit thread.
final class CommitStage {
    let writer: EngineWriter
    let versions: VersionClock
    private let hot: Confined<Hot>
    private let indexState: SharedIndexStates

    /// What every commit uses.
    private struct Hot: ~Copyable {
        var draft: CommitDraft
        var lastVersion: CommitVersion
    }

    var draft: CommitDraft {
        _read { yield hot.state.draft }
        _modify { yield &hot.state.draft }
    }

    /// Whether the last commit that was to be staged found no space on the disk.
    private(set) var hasFoundNoSpace = false

    /// The version of the last commit staged.
    private(set) var lastVersion: CommitVersion {
        get { hot.state.lastVersion }
        set { hot.state.lastVersion = newValue }
    }

    init(
        writer: EngineWriter, versions: VersionClock, draft: consuming CommitDraft, indexState: SharedIndexStates
    ) {
        self.writer = writer
        self.versions = versions
        hot = Confined(Hot(draft: draft, lastVersion: writer.lastVersion))
        self.indexState = indexState
        indexState.set(self.draft.applier.indexes.states)
    }

    /// Takes a version and starts a commit in `draft`. No other may be under way.
    /// - Parameter newDatabase: the database's name if this is its first commit.
    func begin(database: UInt32, newDatabase: DatabaseName?) -> StagedCommit {
        let version = versions.nextVersion(after: lastVersion)
        hasFoundNoSpace = false
        draft.begin(version: version, database: database, newDatabase: newDatabase)
        return StagedCommit(self, version: version)
    }

    /// Stages a commit of the store's own.
    /// - Returns: false if there is nothing to do; nothing is staged then.
    func perform(_ systemCommit: SystemCommit) throws(StorageError) -> Bool {
        let commit = beginSystemCommit()
        let isWanted = try draft.add(systemCommit, version: commit.version)
        guard isWanted else { return false }
        try commit.keep()
        if systemCommit.changesIndexes { indexState.set(draft.applier.indexes.states) }
        return true
    }

    /// Stages a record of the leader. One that was staged already changes nothing.
    /// - Throws: `DATA_LOSS` if it cannot be read or applied; what storage throws.
    func follow(_ version: CommitVersion, _ record: RawSpan, with replay: inout RecordReplay) throws(RequestError) {
        if version <= lastVersion { return }
        versions.follow(version)
        do {
            try draft.stage(replaying: record, version: version, with: &replay, on: writer)
        } catch {
            draft.rollBack()
            versions.returnVersion(version, last: lastVersion, isReported: false)
            if let error = error as? StorageError { throw RequestError(error) }
            throw RequestError(.dataLoss, "A record of the leader cannot be applied: \(error)")
        }
        lastVersion = version
        if LogRecord.kind(of: record) != LogRecord.commitKind {
            indexState.set(draft.applier.indexes.states)
        }
    }

    private func beginSystemCommit() -> StagedCommit {
        // A new store's first version is below every time that a clock could have shown.
        let version =
            lastVersion == .zero ? CommitVersion(microseconds: 1) : versions.nextVersion(after: lastVersion)
        draft.begin(version: version, database: 0, newDatabase: nil)
        return StagedCommit(self, version: version)
    }

    fileprivate func stage(_ version: CommitVersion) throws(StorageError) {
        do throws(StorageError) {
            try draft.stage(with: writer)
        } catch {
            hasFoundNoSpace = error.code == .full
            throw error
        }
        lastVersion = version
    }

    fileprivate func rollBack(_ version: CommitVersion, isReported: Bool) {
        draft.rollBack()
        versions.returnVersion(version, last: lastVersion, isReported: isReported)
    }
}

/// A commit that is being made: it owns the version that was taken and the draft of its stage.
///
/// `keep` stages it. A commit that ends in any other way, for instance because of an error, is rolled back and its
/// version is returned.
struct StagedCommit: ~Copyable {
    let version: CommitVersion
    private let stage: CommitStage
    private var isOver = false

    fileprivate init(_ stage: CommitStage, version: CommitVersion) {
        self.stage = stage
        self.version = version
    }

    deinit {
        if !isOver { stage.rollBack(version, isReported: false) }
    }

    /// Hands the commit to the engine: not durable yet, but every later commit sees it.
    /// - Throws: `full`, `failed`, `closed`, `valueTooLong`; the commit is rolled back then.
    consuming func keep() throws(StorageError) {
        try stage.stage(version)
        isOver = true
    }

    /// Ends a commit that changes nothing: its version is a commit time all the same, and later versions are above it.
    consuming func endUnchanged() {
        stage.rollBack(version, isReported: true)
        isOver = true
    }
}
