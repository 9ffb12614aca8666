// The commit thread. `docs/commits.md` has the picture; this is the order of things:
//
//     take whatever is queued
//       for each commit:  applied before? -> its first result
//                         must it wait for a lease? -> park it
//                         end its transaction; does everything it read still stand? -> else ABORTED
//                         take a version; compute every write; stage              nothing is durable or visible yet
//     seal the group      log written, one sync                                   durable
//                         version published                                       visible
//     give the answers
//
// Between groups it takes its own steps: in the making of indexes, and in the deleting of documents whose time has come.
//
// The next group is computed while the last one is on its way to the disk; it sees everything staged, durable or not, and
// is answered after its own sync, which comes later. A failure is answered in the same order, since it may rest on what was
// staged before it.

internal import Basics
internal import DocumentModel
internal import KeyValueStore
internal import Synchronization

/// Everything the commit thread owns. All methods are called on that thread, or on one that has claimed its place in the queue,
/// but for what `give` runs on the log thread.
final class CommitPipeline: @unchecked Sendable {
    // Sendable: one thread at a time has the consumer's place in the queue, and changes hands under the queue's lock.

    let configuration: StoreConfiguration
    let writer: EngineWriter
    let latest: LatestReader
    let versions: VersionClock
    let databases: DatabaseDirectory
    let transactions: TransactionTable
    let queue: CommitQueue
    let counters: StoreCounters

    private var builder: CommitBuilder
    private let validation: ReadValidation
    private var sessions: SessionTable
    var waiting: WaitingRoom

    /// Answers of the group being built.
    private var answers: [PendingAnswer] = []
    /// Requests that came into the group being built.
    private var requestsInGroup = 0
    /// Set until the sealed group's answers have been given.
    private let isSyncing = Flag()
    private var lastVersion: CommitVersion

    /// Catalogue entries and forgotten sessions, staged once for each group.
    private var books = MutationBatch()
    private var encodedResult = WireWriter(capacity: 256)
    private var slotKey = WireWriter(capacity: 32)
    private var chores = ChoreTimes()
    private var expiry: ExpirySweep
    private let indexState: SharedIndexStates
    private var indexRecord = WireWriter(capacity: 64)

    init(
        configuration: StoreConfiguration, engine: StorageEngine, versions: VersionClock, databases: DatabaseDirectory,
        transactions: TransactionTable, queue: CommitQueue, counters: StoreCounters, sessions: SessionTable,
        indexState: SharedIndexStates
    ) throws(StorageError) {
        self.configuration = configuration
        self.versions = versions
        self.databases = databases
        self.transactions = transactions
        self.queue = queue
        self.counters = counters
        self.sessions = sessions
        self.indexState = indexState
        writer = try engine.makeWriter()
        latest = writer.latest
        lastVersion = writer.lastVersion
        let indexes = try IndexMaintenance(latest: latest)
        indexState.set(indexes.states)
        builder = CommitBuilder(
            changes: RecentChanges(maximum: configuration.recentChangesMaximum, since: writer.lastVersion.microseconds),
            indexes: indexes, entriesMax: configuration.indexEntriesPerDocumentMaximum,
            workMaximum: configuration.commitWorkBytesMaximum)
        validation = ReadValidation(
            latest: latest, history: try engine.makeReader(), rescanMaximum: configuration.rangeRescanMaximum)
        waiting = WaitingRoom(configuration: configuration)
        expiry = ExpirySweep(
            intervalMilliseconds: configuration.expiryIntervalMilliseconds,
            batchesMaximum: configuration.expiryBatchesMaximum)
    }

    // MARK: The loop

    /// Bytes and keys staged up to which a group is synced on this thread. Computing a small group takes less time than handing it
    /// to another thread and being woken; of larger ones, and of those with many index entries, the next is computed while the
    /// log thread writes.
    private static let inlineSyncBytesMax = 256 << 10
    private static let inlineSyncEntriesMax = 256

    private var isGroupSmall: Bool {
        writer.stagedBytes < Self.inlineSyncBytesMax && writer.stagedEntries < Self.inlineSyncEntriesMax
    }

    /// Works until the queue is closed and empty.
    func run() {
        var taken: [QueuedRequest] = []
        stageIndexStep()
        while queue.take(into: &taken, waitMilliseconds: patience) {
            for request in taken {
                process(request)
                settleWaiting()
                if writer.isGroupFull { seal(isLone: false) }
            }
            requestsInGroup += taken.count
            let isIdle = taken.isEmpty
            taken.removeAll(keepingCapacity: true)
            doChores()
            if indexState.hasWork { stageIndexStep() }
            if !isSyncing.isSet { deleteExpired(isIdle: isIdle) }
            if !isSyncing.isSet { seal(isLone: isGroupSmall) }
        }
        finish()
    }

    /// Does the commit thread's work for one request on the calling thread, which has claimed the queue; false, and nothing
    /// done, when it would have to wait for more than its own sync.
    func performClaimed(_ request: QueuedRequest) -> Bool {
        guard !isSyncing.isSet, waiting.isEmpty, writer.canCommitAtOnce else { return false }
        process(request)
        settleWaiting()
        seal(isLone: true)
        writer.finishReading()
        if !waiting.isEmpty { queue.nudge() }
        return true
    }

    /// How long to wait for requests when there are none.
    private var patience: Int {
        if indexState.hasWork, !hasIndexFailure, indexStepsTaken < configuration.indexStepsMaximum { return 0 }
        if expiry.isUnderWay { return isSyncing.isSet ? ExpirySweep.paceMilliseconds : 0 }
        if !waiting.isEmpty { return ChoreTimes.leaseMilliseconds }
        if !isSyncing.isSet { writer.finishReading() }
        return ChoreTimes.idleMilliseconds
    }

    private func process(_ request: QueuedRequest) {
        process(request, sinceMilliseconds: waiting.isEmpty ? 0 : configuration.clock.elapsedMilliseconds)
    }

    /// - Parameter sinceMilliseconds: when the request came; of no interest while nobody waits.
    private func process(_ request: QueuedRequest, sinceMilliseconds: UInt64) {
        let isHeldUp = waiting.holdsUp(
            request, sinceMilliseconds: sinceMilliseconds, database: { databases.number(of: $0) })
        if !isHeldUp { carryOut(request) }
    }

    private func carryOut(_ request: QueuedRequest) {
        switch request {
        case .commit(let request, let completion):
            let result = Result { () throws(RequestError) in try commit(request, isBatch: false) }
            answers.append(.commit(result.flatMap { $0.asCommit }, completion))
            endLease(of: request)
        case .batch(let request, let completion):
            let result = Result { () throws(RequestError) in try commit(request, isBatch: true) }
            answers.append(.batch(result, completion))
        case .begin(let request):
            if waiting.enter(request, nowMilliseconds: configuration.clock.elapsedMilliseconds) {
                answers.append(.begin(request))
            }
        case .lock(let request):
            waiting.grant(request)
            answers.append(.locked(request))
        case .release(let number):
            waiting.release(number)
        case .declare(let wanted, let database, let completion):
            answers.append(
                .declaration(Result { () throws(RequestError) in try declare(wanted, in: database) }, completion))
        }
    }

    /// Ends a transaction whose commit waited in a circle, or for too long.
    private func abort(_ request: QueuedRequest, conflicts: [UInt64]) {
        guard case .commit(let request, let completion) = request, let identifier = request.transaction else { return }
        if let transaction = transactions.end(identifier) {
            var keys = ReadValidation.Conflicts()
            for key in conflicts + transaction.earlierConflicts { keys.add(key) }
            transactions.noteAborted(transaction, conflicts: keys.keys, request: request.identifier)
        }
        counters.transactionsAborted.add(1, ordering: .relaxed)
        answers.append(.commit(.failure(.contention), completion))
    }

    private func endLease(of request: CommitRequest) {
        if let transaction = request.transaction { waiting.release(transaction.number) }
    }

    /// Lets those go on for whom a lease ended: first the commits that it held up, then who is next in the queue.
    private func settleWaiting() {
        if waiting.isSettled { return }
        while true {
            if let released = waiting.nextReleased() {
                switch released.outcome {
                case .again: process(released.request, sinceMilliseconds: released.sinceMilliseconds)
                case .unconditional: carryOut(released.request)
                case .aborted(let conflicts): abort(released.request, conflicts: conflicts)
                }
            } else if !waiting.grantNext(
                nowMilliseconds: configuration.clock.elapsedMilliseconds, { answers.append(.begin($0)) })
            {
                return
            }
        }
    }

    // MARK: One commit

    /// Takes one request as far as staging.
    ///
    /// - Parameter isBatch: each write stands for itself; otherwise the first failure is thrown and nothing happens.
    /// - Returns: the outcome of every write, to be told when the group is durable.
    private func commit(
        _ request: borrowing CommitRequest, isBatch: Bool
    ) throws(RequestError) -> BatchWriteResult {
        if let first = try earlierResult(of: request.identifier) { return first }
        try endTransaction(of: request)
        let (database, isStored) = try databases.reserve(request.writes.database)

        let version = versions.nextVersion(after: lastVersion)
        builder.begin(
            version: version, database: database, newDatabaseName: isStored ? nil : request.writes.database)
        do throws(RequestError) {
            let result = try compute(request.writes, version: version, isBatch: isBatch)
            if builder.draft.isEmpty && request.identifier == nil {
                versions.returnVersion(version, last: lastVersion, wasTold: true)
                return result
            }
            if !isStored { builder.addDatabase(request.writes.database, number: database) }
            try stage(result, version: version, identifier: request.identifier)
            if !isStored { databases.markStored(request.writes.database, number: database) }
            return result
        } catch {
            builder.rollBack()
            versions.returnVersion(version, last: lastVersion, wasTold: false)
            throw error
        }
    }

    /// The result of the same request when it was applied before; nil if it was not.
    private func earlierResult(of identifier: RequestIdentifier?) throws(RequestError) -> BatchWriteResult? {
        guard let identifier else { return nil }
        switch sessions.find(identifier) {
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

    /// Ends the request's transaction, whatever comes of the commit, and makes sure that what it read still stands.
    private func endTransaction(of request: borrowing CommitRequest) throws(RequestError) {
        guard let identifier = request.transaction else { return }
        guard let transaction = transactions.end(identifier), transaction.database == request.writes.database else {
            // A repetition of a commit that was aborted, its answer lost: the answer is the same.
            if let attempt = transactions.abortedAttempt(identifier), attempt.request != nil,
                attempt.request == request.identifier
            {
                throw .contention
            }
            throw .unknownTransaction
        }
        if request.writes.isEmpty && transaction.hasReadOneState { return }
        if transaction.isReadOnly {
            throw RequestError(.invalidArgument, "Cannot modify entities in a read-only transaction")
        }
        guard let since = transaction.firstReadMicroseconds, lastVersion.microseconds > since else { return }
        var conflicts = try validation.conflicts(of: transaction, changes: builder.draft.changes)
        if conflicts.isEmpty { return }
        for key in transaction.earlierConflicts { conflicts.add(key) }
        transactions.noteAborted(transaction, conflicts: conflicts.keys, request: request.identifier)
        counters.transactionsAborted.add(1, ordering: .relaxed)
        throw .contention
    }

    /// Applies the writes, one after the other.
    private func compute(
        _ list: borrowing WriteList, version: CommitVersion, isBatch: Bool
    ) throws(RequestError) -> BatchWriteResult {
        var result = BatchWriteResult(commitMicroseconds: version.microseconds, outcomes: [])
        result.outcomes.reserveCapacity(list.count)
        // A batch writes no document twice.
        let hasRepeats = !isBatch && list.count > 1 && builder.expect(list)
        while result.outcomes.count < list.count {
            let position = result.outcomes.count
            do throws(RequestError) {
                if hasRepeats {
                    let run = try builder.applyRun(from: position, of: list, latest: latest)
                    result.outcomes += run.map { .success($0) }
                    if !run.isEmpty { continue }
                }
                result.outcomes.append(.success(try builder.apply(position, of: list, latest: latest)))
            } catch {
                if !isBatch { throw error }
                result.outcomes.append(.failure(error))
            }
        }
        return result
    }

    /// Hands the computed commit to the engine. Not durable yet, but seen by every later commit.
    private func stage(
        _ result: borrowing BatchWriteResult, version: CommitVersion, identifier: RequestIdentifier?
    ) throws(RequestError) {
        if let identifier {
            EncodedResult.write(result, into: &encodedResult)
            let slot = sessions.keep(
                identifier, encodedResult: encodedResult.bytes,
                nowMilliseconds: configuration.clock.elapsedMilliseconds)
            builder.addAnswer(to: identifier, slot: slot, encodedResult: encodedResult.bytes)
        }
        do throws(StorageError) {
            try writer.stage(
                version: version, record: builder.draft.record.bytes, mutations: builder.draft.mutations,
                mayUseReserve: builder.draft.onlyDeletes)
        } catch {
            if let identifier { sessions.takeBack(identifier) }
            throw RequestError(error)
        }
        lastVersion = version
        builder.keep()
        counters.commits.add(1, ordering: .relaxed)
        counters.documentsWritten.add(builder.draft.documentsWritten, ordering: .relaxed)
    }

    // MARK: One group

    /// Makes the group durable and visible, and gives its answers.
    ///
    /// - Parameter isLone: nobody else is waiting, so the sync may as well happen here: it spares two thread switches.
    private func seal(isLone: Bool) {
        stageBooks()
        let group = answers
        if !writer.hasStaged {
            // Nothing of its own to sync; but what its answers rest on may be on its way.
            if isSyncing.isSet || group.isEmpty { return }
            answers.removeAll(keepingCapacity: true)
            requestsInGroup = 0
            return give(group, .success(lastVersion))
        }
        answers = []
        answers.reserveCapacity(group.count)
        requestsInGroup = 0
        counters.groups.add(1, ordering: .relaxed)
        counters.groupRequests.record(UInt64(group.count))
        do throws(StorageError) {
            if isLone {
                give(group, .success(try writer.commitGroup()))
            } else {
                try sealInBackground(group)
            }
        } catch {
            give(group, .failure(error))
        }
    }

    private func sealInBackground(_ group: [PendingAnswer]) throws(StorageError) {
        writer.waitForGroup()
        isSyncing.set()
        let giver = AnswerGiver(transactions: transactions, versions: versions, queue: queue)
        do throws(StorageError) {
            try writer.commitGroup { [isSyncing, queue] result in
                giver.give(group, result)
                isSyncing.clear()
                queue.nudge()
            }
        } catch {
            isSyncing.clear()
            throw error
        }
    }

    private func give(_ group: [PendingAnswer], _ result: Result<CommitVersion, StorageError>) {
        AnswerGiver(transactions: transactions, versions: versions, queue: queue).give(group, result)
    }

    /// Stages what is kept once for a group: catalogue counts and the end of forgotten sessions.
    private func stageBooks() {
        books.removeAll()
        do throws(StorageError) {
            try builder.writeBooks(into: &books, latest: latest)
            if sessions.hasTooMany || chores.isSessionSweepDue { sweepSessions() }
            if !books.isEmpty { try stageClockRecord(with: true) }
            builder.trim()
        } catch {
            // Only a full disk or a failed one stops this, and then the group's own sync tells. The counts in memory stay
            // right and are written with the next group; after a crash they follow from the log.
            counters.bookFailures.add(1, ordering: .relaxed)
        }
    }

    private func sweepSessions() {
        chores.isSessionSweepDue = false
        for slot in sessions.removeIdle(nowMilliseconds: configuration.clock.elapsedMilliseconds) {
            slot.writeKey(into: &slotKey)
            books.delete(key: slotKey.bytes)
        }
    }

    /// Stages a version with no documents.
    private func stageClockRecord(with hasBooks: Bool) throws(StorageError) {
        if !hasBooks { books.removeAll() }
        let version = versions.nextVersion(after: lastVersion)
        do throws(StorageError) {
            // A few bytes for a group that was accepted.
            try writer.stage(
                version: version, record: CommitPipeline.clockRecord.byteSpan, mutations: books, mayUseReserve: true)
            lastVersion = version
        } catch {
            versions.returnVersion(version, last: lastVersion, wasTold: false)
            throw error
        }
    }

    private static let clockRecord = [LogRecord.clockKind]

    // MARK: Indexes

    /// The last step could not be staged; the next try comes with the chores.
    private var hasIndexFailure = false
    private var indexStepsTaken = 0

    /// Takes the making of indexes one step further, as a commit of its own.
    private func stageIndexStep() {
        if indexStepsTaken >= configuration.indexStepsMaximum { return }
        indexStepsTaken += 1
        // A new store's first version is below every time that a clock could have told.
        let isNew = lastVersion == .zero
        let version = isNew ? CommitVersion(microseconds: 1) : versions.nextVersion(after: lastVersion)
        hasIndexFailure = false
        do throws(StorageError) {
            let isStep = try builder.beginIndexStep(
                version: version, isWanted: configuration.indexesAutomatically, record: &indexRecord)
            guard isStep else {
                if !isNew { versions.returnVersion(version, last: lastVersion, wasTold: false) }
                return
            }
            try stageIndexChange(version)
        } catch {
            builder.rollBackIndexStep()
            if !isNew { versions.returnVersion(version, last: lastVersion, wasTold: false) }
            hasIndexFailure = true
        }
    }

    /// Stages the change to the indexes that the builder holds.
    private func stageIndexChange(_ version: CommitVersion) throws(StorageError) {
        try CommitPipeline.stage(version, indexRecord, builder.draft, with: writer)
        lastVersion = version
        builder.keep()
        indexState.set(builder.draft.indexes.states)
    }

    /// Brings a database into being that holds nothing yet, by a commit without documents.
    private func create(_ name: DatabaseName, number: UInt32) throws(RequestError) {
        let version = versions.nextVersion(after: lastVersion)
        builder.begin(version: version, database: number, newDatabaseName: name)
        builder.addDatabase(name, number: number)
        do throws(StorageError) {
            try writer.stage(
                version: version, record: builder.draft.record.bytes, mutations: builder.draft.mutations)
        } catch {
            builder.rollBack()
            versions.returnVersion(version, last: lastVersion, wasTold: false)
            throw RequestError(error)
        }
        lastVersion = version
        builder.keep()
        databases.markStored(name, number: number)
    }

    private static func stage(
        _ version: CommitVersion, _ record: borrowing WireWriter, _ draft: borrowing CommitDraft, with writer: EngineWriter
    ) throws(StorageError) {
        try writer.stage(version: version, record: record.bytes, mutations: draft.mutations)
    }

    /// Makes a database's declared indexes those that are wanted; they are built and cleared in the steps that follow.
    private func declare(_ wanted: IndexDeclaration, in name: DatabaseName) throws(RequestError) {
        try wanted.check()
        let (database, isStored) = try databases.reserve(name)
        if !isStored { try create(name, number: database) }
        let version = versions.nextVersion(after: lastVersion)
        guard builder.beginDeclaration(wanted, version: version, database: database, record: &indexRecord) else {
            return versions.returnVersion(version, last: lastVersion, wasTold: true)
        }
        do throws(StorageError) {
            try stageIndexChange(version)
        } catch {
            builder.rollBackIndexStep()
            versions.returnVersion(version, last: lastVersion, wasTold: false)
            throw RequestError(error)
        }
    }

    // MARK: Expired documents

    /// Deletes the next documents whose time has come, if it is time for that.
    private func deleteExpired(isIdle: Bool) {
        let now = configuration.clock.elapsedMilliseconds
        guard expiry.isDue(nowMilliseconds: now, isIdle: isIdle) else { return }
        expiry.begin(
            indexState.current, databases: databases, nowMilliseconds: now,
            nowMicroseconds: configuration.clock.nowMicroseconds)
        do throws(RequestError) {
            guard let writes = try expiry.nextBatch(latest, nowMilliseconds: now) else { return }
            process(
                .batch(CommitRequest(writes: writes)) { [counters] result in
                    guard case .success(let batch) = result else { return }
                    let deleted = batch.outcomes.count { if case .success = $0 { true } else { false } }
                    counters.documentsExpired.add(UInt64(deleted), ordering: .relaxed)
                })
        } catch {
            // A disk that fails is told of by the next commit; whatever is left has its turn in the next round.
            expiry.endRound()
        }
    }

    // MARK: Chores

    /// What time brings: leases and transactions end, sessions are forgotten, the clock is noted.
    private func doChores() {
        let now = configuration.clock.elapsedMilliseconds
        if !waiting.isEmpty, chores.isWaitingDue(nowMilliseconds: now) {
            var steps = ChoreTimes.doomedSteps
            waiting.endExpired(
                nowMilliseconds: now, lastUsed: { transactions.lastUsedMilliseconds(number: $0) },
                began: { transactions.open(number: $0)?.beganMilliseconds },
                isDoomed: { isDoomed($0, steps: &steps) }, goOn: { answers.append(.begin($0)) })
            settleWaiting()
        }
        guard chores.isDue(nowMilliseconds: now) else { return }
        transactions.removeExpired()
        chores.isSessionSweepDue = sessions.count > 0
        // While nobody writes, read times go on. Noting them now and then keeps versions above them even if the machine
        // loses its clock together with the process.
        if versions.lastHandedOut > lastVersion.microseconds + ChoreTimes.clockNoteMicroseconds {
            try? stageClockRecord(with: false)
        }
    }

    /// Whether an open transaction can only be aborted; false where finding out takes more steps than are left.
    private func isDoomed(_ number: UInt64, steps: inout Int) -> Bool {
        guard let transaction = transactions.open(number: number),
            let since = transaction.firstReadMicroseconds, lastVersion.microseconds > since
        else { return false }
        return validation.isDoomed(transaction, changes: builder.draft.changes, steps: &steps)
    }

    /// The end: everything taken is answered and durable.
    private func finish() {
        for request in waiting.removeAll() { request.refuse(.shuttingDown) }
        if versions.lastHandedOut > lastVersion.microseconds { try? stageClockRecord(with: false) }
        seal(isLone: true)
        writer.waitForGroup()
        seal(isLone: true)
        writer.finishReading()
    }
}

/// When the commit thread does what is not asked for by a request.
struct ChoreTimes {
    /// While somebody waits for a lease.
    static let leaseMilliseconds = 50
    static let idleMilliseconds = 1_000
    static let choreMilliseconds: UInt64 = 1_000
    /// How far read times may run ahead of the last version in the log.
    static let clockNoteMicroseconds: UInt64 = 60_000_000

    /// Documents and changes looked at to find transactions that hold others up and can only be aborted.
    static let doomedSteps = 10_000

    private var lastMilliseconds: UInt64 = 0
    private var lastWaitingMilliseconds: UInt64 = 0
    var isSessionSweepDue = false

    /// Whether it is time to look at those who wait.
    mutating func isWaitingDue(nowMilliseconds: UInt64) -> Bool {
        if nowMilliseconds < lastWaitingMilliseconds + UInt64(ChoreTimes.leaseMilliseconds) { return false }
        lastWaitingMilliseconds = nowMilliseconds
        return true
    }

    mutating func isDue(nowMilliseconds: UInt64) -> Bool {
        if nowMilliseconds < lastMilliseconds + ChoreTimes.choreMilliseconds { return false }
        lastMilliseconds = nowMilliseconds
        return true
    }
}

/// Gives a group's answers, on the commit thread or on the log thread.
struct AnswerGiver: Sendable {
    let transactions: TransactionTable
    let versions: VersionClock
    let queue: CommitQueue

    func give(_ group: [PendingAnswer], _ result: Result<CommitVersion, StorageError>) {
        var failure: RequestError?
        if case .failure(let error) = result { failure = RequestError(error) }
        for answer in group { answer.give(failure, begin: begin) }
    }

    private func begin(_ request: BeginRequest) {
        do throws(RequestError) {
            try transactions.begin(
                request.identifier, in: request.database, kind: request.kind, retried: request.retried,
                account: request.account)
            request.completion(.success(request.identifier))
        } catch {
            queue.submitRelease(request.identifier.number)
            request.completion(.failure(error))
        }
    }
}

/// A flag that two threads see.
final class Flag: Sendable {
    private let value = Atomic(false)

    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
    func clear() { value.store(false, ordering: .releasing) }
}

extension BatchWriteResult {
    /// The result of a commit, whose writes have all succeeded.
    var asCommit: Result<CommitResult, RequestError> {
        var results: [WriteResult] = []
        results.reserveCapacity(outcomes.count)
        for outcome in outcomes {
            switch outcome {
            case .success(let result): results.append(result)
            case .failure(let error): return .failure(error)
            }
        }
        return .success(CommitResult(commitMicroseconds: commitMicroseconds, writeResults: results))
    }
}

extension RequestError {
    /// The commit's transaction read something that has changed since. The client begins again, naming this attempt.
    static let contention = RequestError(
        .aborted, "Too much contention on these documents. Please try again.")
}
