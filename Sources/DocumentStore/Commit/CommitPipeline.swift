// The commit thread. docs/commits.md has the picture; this is the recipe:
//
//     run       take everything queued
//     decide      for each commit:  committed before? -> its first result
//                                   blocked by a turn or lock?  -> parked (CommitPipeline+Locks.swift)
//                                   judged? does the judgement still stand? -> else ABORTED, its transaction open
//                                   end its transaction; do its reads still stand? -> else ABORTED
//                                   take a version; decide every write, apply what is decided
//     stage                         hand the commit to the engine      later commits see it; not durable, not visible
//     seal        end the group     log written, one sync              durable
//                                   version published                  visible to readers
//                 send the replies
//
// Between groups the thread does its housekeeping (`Housekeeper`), by commits that take the same way.
//
// The next group is decided while the last one is on its way to the disk. It sees everything staged, durable or not;
// its replies are sent after its own sync, which comes later. Failures are replied in the same order, since they may
// rest on what was staged before them.

internal import Basics
internal import DocumentModel
internal import Indexing
internal import Storage
internal import StorageEngines
internal import Synchronization

/// Everything the commit thread owns. All methods are called on that thread, or on one that has claimed its place in
/// the queue, except for the completion of a sync, which runs on the log thread.
final class CommitPipeline: @unchecked Sendable {
    // Sendable: one thread at a time has the consumer's place in the queue, and changes hands under the queue's lock.

    let configuration: StoreConfiguration
    let databases: DatabaseDirectory
    let transactions: TransactionTable
    let counters: StoreCounters
    let validation: ReadValidation
    let stage: CommitStage
    private let hot: Confined<Hot>
    /// In elapsed milliseconds.
    var nextLockCheckMilliseconds: UInt64 = 0

    private let queue: CommitQueue
    private let writer: EngineWriter
    private let housekeeper: Housekeeper
    let standing: WriteStanding
    private var replay: RecordReplay
    private let replySender: ReplySender
    /// The number of the server that takes the writes now; nil if this one does.
    private var successor: UInt64?
    /// How often clients have declared indexes and overrides.
    private var declarations = 0
    /// Whether indexes for searches are in line with this machine's libraries, as far as this server decides that.
    private var areSearchesRenewed: Bool
    /// Set while a group is on its way to the disk and its replies have not been sent.
    private let isSyncing = SharedFlag()
    private var groupPause: GroupPause
    /// Requests that were taken before the last group was on its way.
    private var takenBefore = 0

    /// What every commit uses.
    private struct Hot: ~Copyable {
        var locks: LockManager
        var replies: [PendingReply] = []
        var decider: CommitDecider
        var encodedResult = ByteBuffer(capacity: 256)
    }

    var locks: LockManager {
        _read { yield hot.state.locks }
        _modify { yield &hot.state.locks }
    }

    /// Replies of the group being built.
    var replies: [PendingReply] {
        _read { yield hot.state.replies }
        _modify { yield &hot.state.replies }
    }

    /// - Parameters:
    ///   - history: reads earlier states, to validate the reads of transactions.
    ///   - applier: has the tables as of the writer's last version.
    init(
        _ services: StoreServices, queue: CommitQueue, writer: EngineWriter, history: EngineReader,
        applier: consuming CommitApplier
    ) {
        let configuration = services.configuration
        self.configuration = configuration
        groupPause = GroupPause(percent: configuration.groupPausePercent)
        self.queue = queue
        databases = services.databases
        transactions = services.transactions
        standing = services.standing
        // The opening does it for a store that takes writes.
        areSearchesRenewed = services.standing.takesWrites
        counters = services.counters
        self.writer = writer
        let draft = CommitDraft(
            applier: applier,
            changes: RecentChanges(maximum: configuration.recentChangesMax, since: writer.lastVersion.microseconds),
            entriesMax: configuration.indexEntriesPerDocumentMax, ownBytesMax: configuration.ownCommitBytesMax,
            feed: services.changes,
            derived: services.replication.derived, derivedSpaces: services.replication.derivedSpaces,
            changedPaths: services.changedPaths, onDerived: configuration.onDerived)
        stage = CommitStage(
            writer: writer, versions: services.versions, draft: draft, indexState: services.indexState)
        hot = Confined(
            Hot(
                locks: LockManager(configuration: configuration),
                decider: CommitDecider(latest: writer.latest, workMax: configuration.commitWorkBytesMax)))
        validation = ReadValidation(
            latest: writer.latest, history: history, rescanMax: configuration.rangeRescanMax,
            stepsMax: configuration.validationStepsMax)
        replay = RecordReplay(latest: writer.latest, nowMilliseconds: configuration.clock.elapsedMilliseconds)
        housekeeper = Housekeeper(services, stage: stage)
        replySender = ReplySender(
            transactions: services.transactions, queue: queue, versions: services.versions, changes: services.changes,
            databases: services.databases, replication: services.replication)
    }

    // MARK: Run

    /// Works until the queue is closed and empty.
    func run() {
        var taken: [QueuedRequest] = []
        if !isFollower { housekeeper.takeIndexStep() }
        var pause: (requests: Int, end: UInt64)?
        while take(into: &taken, pause) {
            for request in taken {
                process(request)
                settleLocks()
                if writer.isGroupFull { seal(isLone: false) }
            }
            let isIdle = taken.isEmpty && pause == nil
            taken.removeAll(keepingCapacity: true)
            pause = nil
            runMaintenance(isIdle: isIdle)
            if isSyncing.isSet { continue }
            if !isFollower {
                pause = groupPause.next(
                    waiting: replies.count, waited: queue.markedCount - takenBefore,
                    at: SystemClock.monotonicNanoseconds())
            }
            if pause == nil { seal(isLone: isGroupSmall) }
        }
        finish()
    }

    /// Waits for requests.
    /// - Parameter pause: how many the next group waits for, and until when.
    private func take(into taken: inout [QueuedRequest], _ pause: (requests: Int, end: UInt64)?) -> Bool {
        guard let pause else {
            return queue.take(
                into: &taken, waitMilliseconds: idleWaitMilliseconds,
                atLeast: isSyncing.isSet ? configuration.requestsAtOnce : 1)
        }
        let now = SystemClock.monotonicNanoseconds()
        return queue.take(
            into: &taken, waitNanoseconds: pause.end > now ? pause.end - now : 0, atLeast: pause.requests)
    }

    /// Whether no commits are made here: they come from another server, or will be made there.
    private var isFollower: Bool { !standing.takesWrites }

    /// Stages records of the leader.
    private func follow(_ records: FollowedRecords) throws(RequestError) {
        try records.lendEach { (version, record) throws(RequestError) in
            try stage.follow(version, record, with: &replay)
        }
    }

    /// Begins all indexes again, durably. Before `run`, on the thread that opens the store.
    func rebuildIndexes() throws(StorageError) {
        for kind in [IndexMaintenance.Kind.declared, .automatic] { _ = try stage.perform(.rebuild(kind)) }
        _ = try writer.commitGroup()
        writer.finishReading()
    }

    /// Brings the indexes for searches in line with the libraries that analyse texts, durably. Before `run`, on the
    /// thread that opens the store.
    func renewSearches() throws(StorageError) {
        let changes = stage.draft.applier.searchRenewal()
        if changes.isEmpty { return }
        _ = try stage.perform(.renewSearches(changes))
        _ = try writer.commitGroup()
        writer.finishReading()
    }

    /// Does the commit thread's work for one request on the calling thread, which has claimed the queue; false, and
    /// nothing done, when it would have to wait for more than its own sync.
    func performClaimed(_ request: QueuedRequest) -> Bool {
        guard !isSyncing.isSet, locks.isEmpty, writer.canCommitAtOnce else { return false }
        process(request)
        settleLocks()
        seal(isLone: true)
        writer.finishReading()
        if !locks.isEmpty { queue.wake() }
        return true
    }

    /// How long to wait for requests when there are none.
    private var idleWaitMilliseconds: Int {
        let idleWait =
            isFollower ? Housekeeper.roundMilliseconds : housekeeper.idleWaitMilliseconds(isSyncing: isSyncing.isSet)
        if idleWait > 0, locks.isEmpty, !isSyncing.isSet { writer.finishReading() }
        return Int(locks.isEmpty ? idleWait : min(idleWait, Self.lockCheckMilliseconds))
    }

    /// Does what is due without a request.
    private func runMaintenance(isIdle: Bool) {
        endExpiredLocks()
        if isFollower { return }
        renewSearchesOfLeader()
        if housekeeper.isRoundDue() {
            locks.release(dropped: transactions.removeExpired())
            settleLocks()
            housekeeper.doRound()
        }
        housekeeper.takeIndexStep()
        housekeeper.takeRemovalStep(isIdle: isIdle, isAllVisible: !writer.hasStaged && !isSyncing.isSet)
        if !isSyncing.isSet, let batch = housekeeper.nextExpiryBatch(isIdle: isIdle, declarations: declarations) {
            process(batch)
        }
    }

    /// Updates the statistics of the memory that the tables of this thread take.
    private func noteMemory() {
        counters.sessionBytes.store(stage.draft.applier.sessions.byteCount, ordering: .relaxed)
        counters.lockBytes.store(locks.byteCount, ordering: .relaxed)
    }

    /// A server that begins to lead does what opening a store does.
    private func renewSearchesOfLeader() {
        if areSearchesRenewed { return }
        areSearchesRenewed = true
        let changes = stage.draft.applier.searchRenewal()
        if !changes.isEmpty { _ = try? stage.perform(.renewSearches(changes)) }
    }

    /// The end: everything taken is durable and its replies are sent.
    private func finish() {
        for request in locks.removeAll() { request.refuse(.shuttingDown) }
        if !isFollower { housekeeper.noteClock() }
        seal(isLone: true)
        writer.waitForGroup()
        seal(isLone: true)
        writer.finishReading()
    }

    // MARK: Decide

    /// Does what a request asks for, as far as staging; locks no longer hold it up.
    func perform(_ request: QueuedRequest) {
        switch request {
        case .commit(let commit):
            let pending = outcomeWithSpace(of: commit.request, isBatch: false)
            let result = pending.result.flatMap { $0.asCommitResult }
            replies.append(.commit(PendingResult(result, isRepeat: pending.isRepeat), commit.completion))
            if let transaction = commit.request.transaction, !pending.isJudgementOutdated {
                locks.release(transaction.number)
            }
        case .batch(let batch):
            replies.append(.batch(outcomeWithSpace(of: batch.request, isBatch: true), batch.completion))
        case .begin(let request):
            if locks.enter(request, nowMilliseconds: configuration.clock.elapsedMilliseconds) {
                replies.append(.begin(request))
            }
        case .lock(let request):
            // One that was dropped meanwhile would hold its locks for good.
            if transactions.open(number: request.ticket) != nil { locks.grant(request) }
            replies.append(.locked(request))
        case .release(let number):
            locks.release(number)
        case .declare(let change, let database, let completion):
            let result = Result { () throws(RequestError) in try declare(change, in: database) }
            replies.append(.declaration(PendingResult(result), completion))
        case .changeDatabase(let change, let database, let completion):
            let result = Result { () throws(RequestError) in try self.change(change, database) }
            replies.append(.declaration(PendingResult(result), completion))
        case .move(let step, let completion):
            let result = Result { () throws(RequestError) in try move(step) }
            replies.append(
                .declaration(PendingResult(result.map { _ in }), { durable in completion(durable.flatMap { result }) }))
        case .collectResults(let database, let completion):
            let results = stage.draft.applier.sessions.results(of: database)
            replies.append(.declaration(PendingResult(.success(())), { completion($0.map { results }) }))
        case .follow(let records, let completion):
            let result = Result { () throws(RequestError) in try follow(records) }
            replies.append(.followed(PendingResult(result), completion))
        case .stepDown(let successor, let completion):
            let result = Result { () throws(RequestError) in try stepDown(for: successor) }
            replies.append(.declaration(PendingResult(result), completion))
        }
    }

    /// Ends the commits of this store. The last of them is above all times that were handed out, and no later time is.
    /// Repeated for the same server, it changes nothing.
    private func stepDown(for successor: UInt64) throws(RequestError) {
        if let first = self.successor {
            if first == successor { return }
            throw RequestError(
                .failedPrecondition,
                "This server takes no writes: another one has its place already, which replicas can follow.")
        }
        stage.versions.stopLeading()
        do throws(StorageError) {
            _ = try stage.perform(.clockNote)
        } catch {
            stage.versions.lead(above: 0)
            throw RequestError(error)
        }
        standing.refuse(
            RequestError(.failedPrecondition, "This server takes no writes: a replica takes its place."))
        self.successor = successor
    }

    /// The outcome of a commit. If it finds no space beside what is staged, that is made durable, and the commit is
    /// tried once more: alone it may have a segment of the log that a checkpoint gives back.
    private func outcomeWithSpace(
        of request: borrowing CommitRequest, isBatch: Bool
    ) -> PendingResult<BatchWriteResult> {
        let pending = outcome(of: request, isBatch: isBatch)
        guard case .failure = pending.result, stage.hasFoundNoSpace, writer.hasStaged, request.transaction == nil else {
            return pending
        }
        seal(isLone: true)
        return outcome(of: request, isBatch: isBatch)
    }

    /// Takes one commit as far as staging, unless that was done before.
    ///
    /// - Parameter isBatch: each write stands for itself; otherwise nothing happens when one fails.
    /// - Returns: the outcome of every write, to be replied when the group is durable.
    private func outcome(of request: borrowing CommitRequest, isBatch: Bool) -> PendingResult<BatchWriteResult> {
        do throws(RequestError) {
            if let first = try earlierResult(of: request.identifier) {
                return PendingResult(.success(first), isRepeat: true)
            }
            if let refusal = standing.refusal { throw refusal }
            if let predecessor = request.predecessor, !stage.draft.applier.sessions.isSettled(predecessor) {
                throw .outOfOrder
            }
            if let known = request.declarations, known != declarations { throw .contention }
            return PendingResult(.success(try commit(request, isBatch: isBatch)))
        } catch {
            return PendingResult(.failure(error))
        }
    }

    /// Takes one commit as far as staging.
    ///
    /// - Parameter isBatch: each write stands for itself; otherwise the first failure is thrown and nothing happens.
    /// - Returns: the outcome of every write.
    private func commit(
        _ request: borrowing CommitRequest, isBatch: Bool
    ) throws(RequestError) -> BatchWriteResult {
        try checkJudgement(of: request)
        try endTransaction(of: request)
        let reserved = try reserve(for: request)
        defer { withExtendedLifetime(reserved.claim) {} }
        // From here on an error rolls the commit back and returns its version.
        let commit = stage.begin(
            database: reserved.number, newDatabase: reserved.isStored ? nil : request.writes.database)
        let result = try Self.decide(request.writes, isBatch: isBatch, with: &hot.state.decider, into: &stage.draft)
        if let identifier = request.identifier {
            EncodedResult.write(result, into: &hot.state.encodedResult)
            addAnswer(hot.state.encodedResult, to: identifier)
        } else if stage.draft.isEmpty {
            commit.endUnchanged()
            return result
        }
        do throws(StorageError) { try commit.keep() } catch { throw RequestError(error) }
        counters.commits.add(1, ordering: .relaxed)
        counters.documentsWritten.add(stage.draft.documentsWritten, ordering: .relaxed)
        return result
    }

    /// - Throws: `ABORTED` for the transaction of a database that was moved; what ``DatabaseDirectory`` throws.
    private func reserve(
        for request: borrowing CommitRequest
    ) throws(RequestError) -> DatabaseDirectory.Reservation {
        do throws(RequestError) {
            return try databases.reserve(request.writes.database)
        } catch {
            if error.isDatabaseElsewhere, request.transaction != nil { throw .lostTransaction }
            throw error
        }
    }

    private func addAnswer(_ encodedResult: borrowing ByteBuffer, to identifier: RequestIdentifier) {
        stage.draft.add(
            answer: encodedResult.bytes, to: identifier, nowMilliseconds: configuration.clock.elapsedMilliseconds)
    }

    /// The result of the same request when it was committed before; nil if it was not.
    private func earlierResult(of identifier: RequestIdentifier?) throws(RequestError) -> BatchWriteResult? {
        guard let identifier else { return nil }
        switch stage.draft.applier.sessions.find(identifier) {
        case .new: return nil
        case .refused(let error): throw error
        case .repeated(let encoded):
            guard let result = EncodedResult.read(encoded.byteSpan) else {
                throw RequestError(.dataLoss, "The remembered result of the request is damaged.")
            }
            counters.repeatsAnswered.add(1, ordering: .relaxed)
            return result
        }
    }

    /// Decides the writes, one after the other.
    private static func decide(
        _ list: borrowing WriteList, isBatch: Bool, with decider: inout CommitDecider, into draft: inout CommitDraft
    ) throws(RequestError) -> BatchWriteResult {
        var result = BatchWriteResult(commitMicroseconds: draft.version.microseconds)
        result.reserveCapacity(list.count)
        decider.begin()
        // A batch writes no document twice.
        let hasRepeats = !isBatch && list.count > 1 && decider.findRepeats(in: list)
        while result.count < list.count {
            let position = result.count
            do throws(RequestError) {
                if hasRepeats {
                    let run = try decider.decideRun(from: position, of: list, into: &draft)
                    result.append(contentsOf: run)
                    if !run.isEmpty { continue }
                }
                result.append(.success(try decider.decide(position, of: list, into: &draft)))
            } catch {
                if !isBatch || draft.isBroken { throw error }
                result.append(.failure(error))
            }
        }
        return result
    }

    /// Changes what a database declares; indexes are built and cleared in the steps that follow.
    private func declare(_ change: DeclarationChange, in name: DatabaseName) throws(RequestError) {
        if let refusal = standing.refusal ?? databases.refusal(of: name) { throw refusal }
        var wanted = IndexDeclaration()
        if let number = databases.number(of: name) { wanted = stage.draft.applier.indexes.declaration(of: number) }
        let known = wanted
        try change.apply(&wanted)
        try wanted.check()
        let isNew = wanted.indexes.contains { $0.search != nil && !known.indexes.contains($0) }
        let analysis = wanted.hasSearches ? try stage.draft.applier.analysisVersion(isRequired: isNew) : ""
        let reserved = try databases.reserve(name)
        defer { withExtendedLifetime(reserved.claim) {} }
        do throws(StorageError) {
            if !reserved.isStored { try stage.begin(database: reserved.number, newDatabase: name).keep() }
            declarations += 1
            _ = try stage.perform(.declaration(wanted, database: reserved.number, analysis: analysis))
        } catch {
            throw RequestError(error)
        }
    }

    /// Creates a database, changes its settings, or begins its deletion.
    private func change(_ change: DatabaseChange, _ name: DatabaseName) throws(RequestError) {
        if let refusal = standing.refusal ?? databases.refusal(of: name) { throw refusal }
        let wanted = try change.apply(databases.entry(of: name).map { DatabaseDescription(name, $0) })
        let reserved = try databases.reserve(name)
        defer { withExtendedLifetime(reserved.claim) {} }
        do throws(StorageError) {
            if !reserved.isStored { try stage.begin(database: reserved.number, newDatabase: name).keep() }
            _ = try stage.perform(.database(wanted, number: reserved.number))
        } catch {
            throw RequestError(error)
        }
    }

    // MARK: Seal

    /// Keys staged up to which a group is synced on this thread; see `StoreConfiguration.inlineSyncBytesMax`.
    private static let inlineSyncEntriesMax = 256

    private var isGroupSmall: Bool {
        writer.stagedBytes < configuration.inlineSyncBytesMax && writer.stagedEntries < Self.inlineSyncEntriesMax
    }

    /// Makes the group durable and visible, and sends its replies.
    ///
    /// - Parameter isLone: nobody else is waiting, so the sync may as well happen here: it spares two thread switches.
    private func seal(isLone: Bool) {
        if !isFollower { housekeeper.completeGroup() }
        noteMemory()
        if !writer.hasStaged {
            // Nothing to sync; but the commits that its replies depend on may still be syncing, or have failed to.
            if isSyncing.isSet || replies.isEmpty { return }
            // Nothing goes to the log, which would refuse what a replaced leader appends.
            if let refusal = standing.leaseRefusal { return refuseReplies(refusal.message) }
            return sealHere()
        }
        counters.groups.add(1, ordering: .relaxed)
        counters.groupRequests.record(UInt64(replies.count))
        stage.draft.sealChanges()
        if isLone { sealHere() } else { sealInBackground() }
    }

    /// Replies whose memory is kept.
    private static let keptReplies = 1_024

    /// Replies to requests of which nothing was staged. They have no effect: errors, deletes of what is missing.
    private func refuseReplies(_ message: String) {
        replySender.refuse(replies, StorageError(.refused, message))
        removeReplies()
    }

    private func sealHere() {
        let result = Result { () throws(StorageError) in try writer.commitGroup() }
        replySender.send(replies, after: result)
        removeReplies()
    }

    /// Their memory serves the next group, unless the group was a giant.
    private func removeReplies() { replies.removeAll(keepingCapacity: replies.count <= Self.keptReplies) }

    private func sealInBackground() {
        let group = replies
        replies = []
        replies.reserveCapacity(group.count)
        writer.waitForGroup()
        takenBefore = queue.takenCount
        groupPause.noteAppend(at: SystemClock.monotonicNanoseconds(), requests: group.count)
        isSyncing.set()
        do throws(StorageError) {
            try writer.commitGroup { [isSyncing, queue, replySender] result in
                // Clients come back from here on.
                queue.mark()
                replySender.send(group, after: result)
                isSyncing.clear()
                queue.wake()
            }
        } catch {
            isSyncing.clear()
            replySender.send(group, after: .failure(error))
        }
    }
}
