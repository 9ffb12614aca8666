// What the commit thread does without being asked: index builds, deletes of expired documents, the end of idle
// sessions, and notes of the clock.
//
// All of it is done by commits: `SystemCommit`s, and batches of deletes like those of clients. A failure is counted
// (`StoreStatistics.housekeepingFailures`) and the task is tried again later:
//
//     index step    after a second; that of a build that cannot continue: `FailedBuilds`
//     adaptation    after a second
//     sessions      after a second
//     clock note    after a second
//     expiry        in the next round
//     removal       after a second

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage
internal import Synchronization

/// A kind of work that the store does by itself.
package enum HousekeepingTask: Sendable {
    case indexStep, adaptation, expiry, sessions, clockNote, databaseRemoval
}

/// Decides when housekeeping is due, and does it. Belongs to the commit thread.
final class Housekeeper {
    private let configuration: StoreConfiguration
    private let stage: CommitStage
    private let databases: DatabaseDirectory
    private let counters: StoreCounters
    private let indexState: SharedIndexStates
    private let failedBuilds: FailedBuilds
    private let adaptiveIndexes: AdaptiveIndexes?

    private var expiry: ExpirySweep
    private var settledTime = SettledTime()
    private var expiryFailuresSeen: UInt64 = 0
    /// Where the removal of a deleted database's documents continues.
    private var removal = (database: UInt32(0), deletion: UInt64(0), place: [UInt8]?.none)
    private var nextRemovalMilliseconds: UInt64 = 0
    /// After a failure.
    private var removalPausedUntilMilliseconds: UInt64 = 0
    /// In elapsed milliseconds.
    private var nextRoundMilliseconds: UInt64 = 0
    private var nextIndexStepMilliseconds: UInt64 = 0
    /// Set until the state of the indexes has been compared with the configuration.
    private var isIndexStateUnknown = true

    /// Time between two looks at sessions, the clock and what has failed, in milliseconds.
    static let roundMilliseconds: UInt64 = 1_000
    /// How far read times may run ahead of the last version in the log.
    private static let clockNoteMicroseconds: UInt64 = 60_000_000

    init(_ services: StoreServices, stage: CommitStage) {
        self.stage = stage
        configuration = services.configuration
        databases = services.databases
        counters = services.counters
        indexState = services.indexState
        failedBuilds = services.failedBuilds
        adaptiveIndexes = services.adaptiveIndexes
        expiry = ExpirySweep(intervalMilliseconds: configuration.expiryIntervalMilliseconds)
    }

    // MARK: Scheduling

    /// How long the commit thread may wait for requests before there is work here, in milliseconds.
    /// - Parameter isSyncing: a group is on its way to the disk.
    func idleWaitMilliseconds(isSyncing: Bool) -> UInt64 {
        if expiry.isInProgress || isRemovalDue { return isSyncing ? UInt64(ExpirySweep.paceMilliseconds) : 0 }
        if !hasIndexWork { return Housekeeper.roundMilliseconds }
        let now = configuration.clock.elapsedMilliseconds
        if nextIndexStepMilliseconds <= now { return 0 }
        return min(nextIndexStepMilliseconds - now, Housekeeper.roundMilliseconds)
    }

    private var hasIndexWork: Bool { isIndexStateUnknown || indexState.hasWork }

    /// Whether a second has passed since it was asked for last.
    func isRoundDue() -> Bool {
        let now = configuration.clock.elapsedMilliseconds
        if now < nextRoundMilliseconds { return false }
        nextRoundMilliseconds = now + Housekeeper.roundMilliseconds
        return true
    }

    // MARK: System commits

    /// Ends idle sessions, and notes the clock.
    ///
    /// Read times increase also while nobody writes. Notes keep versions above them even if the machine loses its
    /// clock together with the process.
    func doRound() {
        // Kept informed of the clock.
        _ = settledMicroseconds
        forgetIdleSessions()
        adaptIndexes()
        if versionsAhead > Housekeeper.clockNoteMicroseconds { perform(.clockNote, as: .clockNote) }
    }

    /// The time by which documents expire.
    private var settledMicroseconds: UInt64 {
        let clock = configuration.clock
        return settledTime.now(
            wallMicroseconds: clock.nowMicroseconds, elapsedMilliseconds: clock.elapsedMilliseconds)
    }

    /// Notes the clock for the next start of the store.
    func noteClock() {
        if versionsAhead > 0 { perform(.clockNote, as: .clockNote) }
    }

    /// How far read times are ahead of the last version, in microseconds.
    private var versionsAhead: UInt64 {
        let (issued, last) = (stage.versions.lastIssued, stage.lastVersion.microseconds)
        return issued > last ? issued - last : 0
    }

    /// Forgets sessions that are idle, and the longest idle ones if there are too many.
    private func forgetIdleSessions() {
        let now = configuration.clock.elapsedMilliseconds
        if stage.draft.applier.sessions.count == 0 { return }
        let idle = stage.draft.applier.sessions.idle(nowMilliseconds: now)
        if !idle.isEmpty { perform(.forgetSessions(idle), as: .sessions) }
    }

    /// Makes and drops indexes on demand, and stores their last use.
    private func adaptIndexes() {
        guard let adaptiveIndexes, !isIndexStateUnknown else { return }
        let changes = adaptiveIndexes.changes(stage.draft.applier.indexes.states)
        if changes.isEmpty, stage.draft.applier.indexes.redundantGroups.isEmpty { return }
        perform(.adapt(changes), as: .adaptation)
    }

    /// Adds what belongs into a group before it is sealed: the end of sessions if there are too many.
    func completeGroup() {
        if stage.draft.applier.sessions.hasTooMany { forgetIdleSessions() }
    }

    /// Takes the next step of an index build, if there is one and it is time for it.
    func takeIndexStep() {
        let now = configuration.clock.elapsedMilliseconds
        guard hasIndexWork, now >= nextIndexStepMilliseconds else { return }
        let mode = configuration.automaticIndexes
        let (paused, pauseEnd) = failedBuilds.paused(
            among: stage.draft.applier.indexes.builds, nowMilliseconds: now)
        let build = stage.draft.applier.indexes.firstBuild(besides: paused)
        if build == nil, !paused.isEmpty, !isIndexStateUnknown {
            nextIndexStepMilliseconds = min(pauseEnd, now + Housekeeper.roundMilliseconds)
            return
        }
        nextIndexStepMilliseconds = now + Housekeeper.roundMilliseconds
        guard configuration.admitsHousekeeping(.indexStep) else { return }
        do throws(StorageError) {
            _ = try stage.perform(.indexStep(mode, besides: paused))
            if let build { failedBuilds.forget(build) }
            nextIndexStepMilliseconds = now
            // A change of the mode may take two steps.
            if isIndexStateUnknown { isIndexStateUnknown = stage.draft.applier.indexes.mustChange(toEnter: mode) }
        } catch {
            noteFailure(of: .indexStep, build, error)
            // The other builds continue.
            if build != nil, FailedBuilds.isDue(error) { nextIndexStepMilliseconds = now }
        }
    }

    /// Notes that a step of a build has failed.
    private func noteFailure(of task: HousekeepingTask, _ build: IndexBuild?, _ error: StorageError) {
        guard let build else { return counters.noteFailure(of: task, "\(error)") }
        let now = configuration.clock.elapsedMilliseconds
        if FailedBuilds.isDue(error) { failedBuilds.note("\(error)", of: build, nowMilliseconds: now) }
        counters.noteFailure(of: task, "\(indexState.current.description(of: build)): \(error)")
    }

    /// - Returns: false if the task is to be tried again: it failed, or the configuration did not admit it.
    @discardableResult
    private func perform(_ systemCommit: SystemCommit, as task: HousekeepingTask) -> Bool {
        if !configuration.admitsHousekeeping(task) { return false }
        do throws(StorageError) {
            _ = try stage.perform(systemCommit)
            return true
        } catch {
            counters.noteFailure(of: task, error.description)
            return false
        }
    }

    // MARK: Deleted databases

    private var isRemovalDue: Bool {
        databases.isDeleting && configuration.clock.elapsedMilliseconds >= removalPausedUntilMilliseconds
    }

    /// Removes the next documents of a database that is being deleted, if there is one and it is time for it.
    ///
    /// - Parameters:
    ///   - isIdle: no client has anything to write.
    ///   - isAllVisible: all commits are published.
    func takeRemovalStep(isIdle: Bool, isAllVisible: Bool) {
        let now = configuration.clock.elapsedMilliseconds
        guard isRemovalDue, isIdle || now >= nextRemovalMilliseconds, let (_, entry) = databases.firstDeleting
        else { return }
        nextRemovalMilliseconds = now + UInt64(ExpirySweep.paceMilliseconds)
        guard configuration.admitsHousekeeping(.databaseRemoval) else {
            removalPausedUntilMilliseconds = now + Housekeeper.roundMilliseconds
            return
        }
        let deletion = entry.settings?.deleteMicroseconds ?? 0
        if removal.database != entry.number || removal.deletion != deletion {
            removal = (entry.number, deletion, nil)
        }
        do throws(RequestError) {
            if try stage.removeDocuments(ofDatabase: entry.number, from: &removal.place) {
                counters.documentsWritten.add(stage.draft.documentsWritten, ordering: .relaxed)
            } else if isAllVisible, !finishRemoval(entry) {
                removalPausedUntilMilliseconds = now + Housekeeper.roundMilliseconds
            }
        } catch {
            removalPausedUntilMilliseconds = now + Housekeeper.roundMilliseconds
            counters.noteFailure(of: .databaseRemoval, error.message)
        }
    }

    /// Removes what a database declares, then notes that it is gone. Its documents are.
    /// - Returns: false if that is to be tried again.
    private func finishRemoval(_ entry: DatabaseDirectory.Entry) -> Bool {
        let declared = stage.draft.applier.indexes.declaration(of: entry.number)
        if !declared.indexes.isEmpty || !declared.fieldOverrides.isEmpty {
            let nothing = SystemCommit.declaration(IndexDeclaration(), database: entry.number, analysis: "")
            return perform(nothing, as: .databaseRemoval)
        }
        guard var settings = entry.settings else { return true }
        settings.state = .deleted
        return perform(.database(settings, number: entry.number), as: .databaseRemoval)
    }

    // MARK: Expired documents

    /// The next batch of deletes of expired documents, if it is time for one. Its outcome is counted.
    ///
    /// - Parameters:
    ///   - isIdle: no client has anything to write.
    ///   - declarations: see ``CommitRequest/declarations``.
    func nextExpiryBatch(isIdle: Bool, declarations: Int) -> QueuedRequest? {
        let now = configuration.clock.elapsedMilliseconds
        let failures = counters.expiryFailures.load(ordering: .relaxed)
        if failures > expiryFailuresSeen {
            // Each of the next batches would fail too. What is left is found again by the next round.
            expiryFailuresSeen = failures
            expiry.endRound()
        }
        guard expiry.isDue(nowMilliseconds: now, isIdle: isIdle) else { return nil }
        expiry.begin(indexState.current, nowMilliseconds: now, nowMicroseconds: settledMicroseconds)
        guard expiry.isInProgress else { return nil }
        guard configuration.admitsHousekeeping(.expiry) else {
            expiry.endRound()
            return nil
        }
        do throws(RequestError) {
            let batch = try expiry.nextBatch(
                stage.writer.latest, indexState.current, stage.draft.applier.indexes.declared.begins, databases,
                nowMilliseconds: now, nowMicroseconds: settledMicroseconds)
            guard let writes = batch else { return nil }
            var request = CommitRequest(writes: writes)
            request.declarations = declarations
            let queued = QueuedBatch(request) { [counters] result in
                switch result {
                case .success(let batch): counters.noteExpired(batch)
                // It waited for a lock while something was declared: the next round finds what still expires.
                case .failure(let error) where error.code == .aborted: break
                case .failure(let error):
                    counters.noteFailure(of: .expiry, error.description)
                    counters.expiryFailures.add(1, ordering: .relaxed)
                }
            }
            return .batch(queued)
        } catch {
            // What is left is found again by the next round.
            expiry.endRound()
            counters.noteFailure(of: .expiry, error.description)
            return nil
        }
    }
}
