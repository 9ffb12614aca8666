// The document store: a directory of databases, their documents, transactions and the thread that commits.
//
//     DocumentStore          the facade; any thread
//     CommitPipeline         the commit thread (docs/commits.md)
//     StoreReader            one per reading thread
//     EmbeddedEngine         log, memtable, sorted runs (docs/storage.md); docs/keys.md describes the keys

internal import Archive
package import Basics
package import DocumentModel
internal import EmbeddedEngine
internal import FileSystem
internal import Glibc
internal import Indexing
package import Storage
internal import StorageEngines
internal import StoreFormat
internal import Synchronization

/// An open store.
///
/// Thread-safe throughout: any thread may submit commits and begin transactions; answers come from the store's own
/// threads, so completions should only hand over. Reads go through one `StoreReader` per thread.
package final class DocumentStore: Sendable {
    package let configuration: StoreConfiguration

    let engine: StorageEngine
    let versions: VersionClock
    let databases: DatabaseDirectory
    let transactions: TransactionTable
    let indexState = SharedIndexStates()
    let failedBuilds = FailedBuilds()
    /// Nil unless indexes are made on demand.
    let adaptiveIndexes: AdaptiveIndexes?
    /// Indexes that queries lacked.
    package let wantedIndexes = WantedIndexes()
    let queue: CommitQueue
    private let pipeline: CommitPipeline
    let counters = StoreCounters()
    let changedPaths = ChangedPaths()
    let moveSources = MoveSources()
    let standing: WriteStanding
    /// What is known of replicas, or of the source.
    package let replication = ReplicationState()
    let changes: ChangeFeed
    /// Nil unless the store is archived.
    let archiver: Archiver?
    /// The commit thread; nil once it has been joined.
    private let commitThread: Mutex<SystemThread?>

    /// Opens or creates the store in the configuration's directory and recovers what a crash left in its log.
    ///
    /// - Throws: `StorageError` (locked by another process, unknown format, corrupt, out of space).
    package static func open(_ configuration: StoreConfiguration) throws -> DocumentStore {
        try DocumentStore(configuration)
    }

    /// Whose records alone change a directory that is opened without its cluster or its source; nil for an independent
    /// one.
    private static func leader(_ configuration: StoreConfiguration) throws -> String? {
        if configuration.engine.sharedLog != nil { return nil }
        if let store = try ClusterFile.read(in: configuration.directory) { return "the cluster of \(store)" }
        return try ReplicaFile.source(in: configuration.directory)
    }

    private init(_ configuration: StoreConfiguration) throws {
        self.configuration = configuration
        databases = DatabaseDirectory(
            maximum: configuration.databasesMax, bytesMax: configuration.databaseBytesMax,
            admits: configuration.admitsDatabase)
        standing = WriteStanding(
            leader: try configuration.leader ?? Self.leader(configuration), holdsLease: configuration.holdsLease)
        let follows = !standing.takesWrites
        if configuration.engine.sharedLog != nil {
            replication.derivedSpaces.want()
        } else if configuration.leader != nil {
            replication.derived.want(1)
        }
        let recovery = Recovery(configuration: configuration, databases: databases)
        engine = try StorageEngine.open(
            directory: configuration.directory, volume: configuration.volume,
            options: DocumentStore.engineOptions(configuration), replay: recovery.replay)
        let writer = try engine.makeWriter()
        let applier = try recovery.makeApplier(latest: writer.latest)
        versions = VersionClock(
            clock: configuration.clock, engine: engine, isFollower: follows)
        transactions = TransactionTable(configuration: configuration)
        changes = ChangeFeed(bytesMax: configuration.changeFeedBytesMax, versions: versions)
        queue = CommitQueue(
            requestsMax: configuration.queuedRequestsMax, bytesMax: configuration.queuedBytesMax)
        adaptiveIndexes =
            configuration.automaticIndexes == .adaptive
            ? AdaptiveIndexes(configuration, databases: databases, indexState: indexState) : nil
        let services = StoreServices(
            configuration: configuration, versions: versions, databases: databases, transactions: transactions,
            indexState: indexState, failedBuilds: failedBuilds, adaptiveIndexes: adaptiveIndexes, counters: counters,
            changes: changes, standing: standing, replication: replication, changedPaths: changedPaths)
        pipeline = CommitPipeline(
            services, queue: queue, writer: writer, history: try engine.makeReader(), applier: applier)
        if engine.areEntriesDropped {
            if follows { throw StorageError.entriesDroppedOnFollower(configuration.directory) }
            try pipeline.rebuildIndexes()
            try engine.entriesAreBeingMade()
        }
        if !follows { try pipeline.renewSearches() }
        archiver = try engine.makeArchiver(configuration.archive)
        commitThread = Mutex(try SystemThread(name: "commit") { [pipeline] in pipeline.run() })
    }

    /// What the engine of a store is opened with.
    package static func engineOptions(_ configuration: StoreConfiguration) -> EngineOptions {
        var options = configuration.engine
        options.latestOnlySpaces = [
            KeySpace.meta.rawValue, KeySpace.catalogue.rawValue, KeySpace.sessions.rawValue, KeySpace.fields.rawValue,
            KeySpace.definitions.rawValue, KeySpace.overrides.rawValue,
        ]
        options.scannedSpaces = KeySpace.values.rawValue...KeySpace.searches.rawValue
        options.groupBytesMax = min(configuration.groupBytesMax, EngineLimits.groupBytesMax / 4)
        options.clock = { configuration.clock.nowMicroseconds }
        options.logHeldBytesMax = configuration.archive?.logHeldBytesMax ?? 0
        return options
    }

    /// Answers what was submitted, archives it, writes everything to a run and frees the directory. Later submissions
    /// get `UNAVAILABLE`. No reader may be in use. A second call does nothing.
    /// - Returns: what kept the storage from closing cleanly; nothing acknowledged is lost by it.
    @discardableResult
    package func close() -> (any Error)? {
        queue.close()
        let thread = commitThread.withLock { $0.take() }
        guard let thread else { return nil }
        thread.join()
        versions.closeWaits(.shuttingDown)
        archiver?.stop()
        do throws(StorageError) {
            try engine.close()
            return nil
        } catch {
            return error
        }
    }

    /// After ``close()``: releases the directory if no reader is in use any more.
    ///
    /// - Returns: whether the directory can be opened again.
    package func releaseDirectory() -> Bool { engine.releaseDirectory() }

    /// A reader for the calling thread.
    package func makeReader() -> StoreReader {
        StoreReader(store: self)
    }

    // MARK: Writing

    /// Applies the request's writes, all or none, and answers when they are durable and visible.
    ///
    /// Never blocks, unless asked to. The completion is called exactly once, on a thread of the store or on this one,
    /// and must not block either. The errors that a retry may cure: `ABORTED` (a transaction met a conflict: begin
    /// again, naming this attempt), `RESOURCE_EXHAUSTED` (too much is waiting, or the disk is full), `UNAVAILABLE`
    /// (closing, or the disk failed: the outcome is unknown; with a request identifier it is safe to repeat).
    /// - Parameter maySync: the calling thread has nothing else to do and may be held up by the sync: when the commit
    ///   thread has nothing to do either, the commit is made durable here and now, which saves two switches of
    ///   threads.
    package func commit(
        _ request: consuming CommitRequest, maySync: Bool = false,
        completion: @escaping @Sendable (Result<CommitResult, RequestError>) -> Void
    ) {
        let request = QueuedRequest.commit(QueuedCommit(request, completion))
        if maySync, queue.claim() {
            defer { queue.release() }
            if pipeline.performClaimed(request) { return }
        }
        submit(request)
    }

    /// Applies each write by itself: one that fails leaves the others be. The request's transaction must be nil, and no
    /// document may be written twice.
    package func batchWrite(
        _ request: CommitRequest, completion: @escaping @Sendable (Result<BatchWriteResult, RequestError>) -> Void
    ) {
        if request.transaction != nil {
            return completion(.failure(.invalidArgument("A batch write cannot be part of a transaction.")))
        }
        if let name = request.writes.firstRepeatedName() {
            return completion(
                .failure(.invalidArgument("A batch cannot write the same document twice: \(name)")))
        }
        submit(.batch(QueuedBatch(request, completion)))
    }

    func submit(_ request: QueuedRequest) {
        if standing.isCutOff, request.needsLog {
            return request.refuse(
                RequestError(
                    .unavailable,
                    "The database of the cluster cannot be reached, or refuses to write; try again in a second."))
        }
        if let refusal = queue.submit(request) { request.refuse(refusal) }
    }

    // MARK: Transactions

    /// A connection that is going to begin transactions, to be kept for as long as it is open.
    package func makeTransactionOwner() -> TransactionOwner { TransactionOwner(transactions) }

    /// Begins a transaction. One that retries an aborted attempt may wait for its turn at the documents it conflicted
    /// on.
    ///
    /// The completion is called exactly once, on the calling thread when nothing has to be waited for.
    /// - Parameters:
    ///   - owner: the connection that the request came over, if any.
    ///   - isStrict: see ``StoreReader/strictly(_:)``.
    package func beginTransaction(
        in database: DatabaseName, options: TransactionOptions, owner: TransactionOwner? = nil, isStrict: Bool = false,
        completion: @escaping @Sendable (Result<TransactionIdentifier, RequestError>) -> Void
    ) {
        do throws(RequestError) {
            switch options {
            case .readOnly(let readTime):
                guard let readTime else {
                    let kind = StoreTransaction.Kind.readOnly(microseconds: versions.readTime())
                    // Its reads may be made at any server, which has no reason to refuse them.
                    if let refusal = newestReadRefusal(isStrict: isStrict) { throw refusal }
                    return completion(.success(try begin(in: database, kind, owner)))
                }
                let time = try readableTime(readTime)
                versions.whenReadable(time) { [self] readable in
                    completion(
                        Result { () throws(RequestError) in
                            try readable.get()
                            return try begin(in: database, .readOnly(microseconds: time), owner)
                        })
                }
            case .readWrite(let retried, let mode):
                if let refusal { throw refusal }
                let attempt = try abortedAttempt(named: retried)
                let isPessimistic = (mode == .unspecified ? configuration.concurrencyMode : mode) == .pessimistic
                let kind = isPessimistic ? StoreTransaction.Kind.pessimistic : .optimistic
                // What the transaction finds missing must have keys all the same.
                let claim = try databases.reserve(database, for: .transaction).claim
                if let attempt, !attempt.conflicts.isEmpty {
                    let identifier = transactions.reserveIdentifier()
                    return submit(
                        .begin(
                            BeginRequest(
                                identifier: identifier, database: database, kind: kind, retried: attempt,
                                account: owner?.account, claim: claim, completion: completion)))
                }
                completion(.success(try begin(in: database, kind, owner, attempt, claim)))
            }
        } catch {
            completion(.failure(error))
        }
    }

    private func begin(
        in database: DatabaseName, _ kind: StoreTransaction.Kind, _ owner: TransactionOwner?,
        _ retried: AbortedAttempt? = nil, _ claim: DatabaseClaim? = nil
    ) throws(RequestError) -> TransactionIdentifier {
        // Refused here rather than by its first read.
        if case .readOnly(let time) = kind { _ = try databases.number(of: database, at: time) }
        let readMicroseconds: UInt64? = if case .readOnly(let microseconds) = kind { microseconds } else { nil }
        let identifier = transactions.reserveIdentifier(readMicroseconds: readMicroseconds)
        try transactions.begin(
            identifier, in: database, kind: kind, retried: retried, account: owner?.account, claim: claim)
        return identifier
    }

    /// What is remembered of the attempt that a client wants to retry. Nil for any other name.
    ///
    /// - Throws: `INVALID_ARGUMENT` for a transaction that only reads, which never conflicts.
    private func abortedAttempt(named bytes: [UInt8]) throws(RequestError) -> AbortedAttempt? {
        guard let identifier = try? TransactionIdentifier(bytes: bytes.byteSpan) else { return nil }
        if identifier.isReadOnly { throw .invalidArgument("Cannot retry a read-only transaction.") }
        return transactions.abortedAttempt(identifier)
    }

    /// Ends a transaction without a commit. Fine for one that has ended already or is unknown.
    package func rollback(_ identifier: TransactionIdentifier) {
        guard let transaction = transactions.end(identifier) else { return }
        if transaction.mayBlockOthers { release(transaction) }
    }

    /// Has a transaction that was ended hold nothing any more.
    func release(_ transaction: StoreTransaction) { queue.submitRelease(transaction.identifier.number) }

    // MARK: Locks

    /// Whether reads in this transaction take locks: call ``lock(_:_:completion:)`` before them. False for ids that
    /// name nothing.
    package func readsLock(in identifier: TransactionIdentifier) -> Bool {
        transactions.open(identifier)?.kind == .pessimistic
    }

    /// Takes share locks on documents that a pessimistic transaction is about to read, and answers when everything
    /// committed before is visible. A transaction that holds nothing yet may have to wait for commits to these
    /// documents.
    ///
    /// - Parameter names: full resource names of documents of the transaction's database; those that are none are
    ///   passed over. Before a scan, whose documents are locked as they are met: empty.
    package func lock(
        _ identifier: TransactionIdentifier, _ names: [[UInt8]],
        completion: @escaping @Sendable (Result<Void, RequestError>) -> Void
    ) {
        guard let transaction = transactions.open(identifier) else {
            return completion(.failure(transactions.absence(of: identifier)))
        }
        var keys: [UInt64] = []
        if let number = databases.number(of: transaction.database) {
            var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)
            for name in names {
                guard let view = try? ResourceNameView(resource: name.byteSpan), view.isDocument else { continue }
                DocumentKey.write(view.pathBytes, database: number, into: &key)
                keys.append(ByteTable.hash(key.bytes))
            }
        }
        submit(
            .lock(
                LockRequest(
                    ticket: identifier.number, age: transaction.age, keys: keys, mayWait: true, completion: completion))
        )
    }

    /// Locks what a scan has met; nobody waits for it.
    func lockScanned(_ transaction: StoreTransaction, _ keys: [UInt64]) {
        submit(
            .lock(
                LockRequest(
                    ticket: transaction.identifier.number, age: transaction.age, keys: keys, mayWait: false,
                    completion: { _ in })))
    }

    // MARK: Waiting reads

    /// What a read in a transaction sees: what it sees here, or the time of one that only reads and was begun
    /// elsewhere.
    package func selector(of identifier: TransactionIdentifier) -> ReadSelector {
        let isTime = identifier.isReadOnly && transactions.isForeign(identifier)
        return isTime ? .time(identifier.readTime) : .transaction(identifier)
    }

    /// Calls `completion` when everything up to a version, in microseconds, is visible here. As
    /// ``prepareRead(_:locking:completion:)``, but any version can be waited for.
    package func whenVisible(
        _ version: UInt64, completion: @escaping @Sendable (Result<Void, RequestError>) -> Void
    ) {
        versions.whenReadable(version, completion: completion)
    }

    /// Whether a time, in microseconds, that another server of the store may have given out is not visible here yet.
    /// False for a store that takes the writes itself.
    package func isBehind(_ time: UInt64) -> Bool { versions.isBehind(time) }

    /// Elapsed milliseconds of the store's clock.
    package var elapsedMilliseconds: UInt64 { configuration.clock.elapsedMilliseconds }

    /// Whether a read must wait before ``StoreReader/readPoint(_:in:)``: for locks, or for commits that are not visible
    /// yet. Then call ``prepareRead(_:locking:completion:)``.
    ///
    /// - Throws: `INVALID_ARGUMENT` for a time in the future, `FAILED_PRECONDITION` for a time before the retention.
    package func mustWait(for selector: ReadSelector) throws(RequestError) -> Bool {
        switch selector {
        case .latest: false
        case .time(let time): try !versions.reserve(readableTime(time))
        case .transaction(let identifier): readsLock(in: identifier)
        }
    }

    /// Calls `completion` when a read point can be made. Never blocks.
    ///
    /// The completion is called exactly once, on this thread or on one of the store, and must not block. It fails like
    /// ``mustWait(for:)`` and ``lock(_:_:completion:)``, with `UNAVAILABLE` if the commits before a read time are not
    /// on disk within a time limit, and with `RESOURCE_EXHAUSTED` if too many reads wait.
    /// - Parameter names: the documents that are going to be read; see ``lock(_:_:completion:)``.
    package func prepareRead(
        _ selector: ReadSelector, locking names: [[UInt8]],
        completion: @escaping @Sendable (Result<Void, RequestError>) -> Void
    ) {
        switch selector {
        case .transaction(let identifier) where readsLock(in: identifier):
            lock(identifier, names, completion: completion)
        case .time(let time):
            do throws(RequestError) {
                versions.whenReadable(try readableTime(time), completion: completion)
            } catch {
                completion(.failure(error))
            }
        case .latest, .transaction: completion(.success(()))
        }
    }

    /// Fails the reads that have waited for too long. Call it about once a second.
    package func endExpiredWaits() { versions.endExpiredWaits() }

    /// A time that a client wants to read at, in microseconds.
    func readableTime(_ time: TimestampValue) throws(RequestError) -> UInt64 {
        if let problem = time.problemAsVersion { throw .invalidArgument("Invalid read_time: \(problem)") }
        let microseconds = UInt64(time.microseconds)
        if microseconds > versions.latestReadable {
            // It may be a time of the leader that has replaced this one.
            throw strictReadRefusal ?? .invalidArgument("read_time cannot be in the future")
        }
        if microseconds < engine.oldestReadableVersion.microseconds { throw .snapshotTooOld }
        return microseconds
    }

    // MARK: Maintenance

    /// Figures for metrics and people.
    package var statistics: StoreStatistics {
        let load = queue.load
        return StoreStatistics(
            commits: counters.commits.load(ordering: .relaxed),
            documentsWritten: counters.documentsWritten.load(ordering: .relaxed),
            documentsExpired: counters.documentsExpired.load(ordering: .relaxed),
            groups: counters.groups.load(ordering: .relaxed), groupRequests: counters.groupRequests.reading,
            transactionsAborted: counters.transactionsAborted.load(ordering: .relaxed),
            repeatsAnswered: counters.repeatsAnswered.load(ordering: .relaxed),
            housekeepingFailures: counters.housekeepingFailures.load(ordering: .relaxed),
            indexBuildsFailed: failedBuilds.count,
            transactionsOpen: transactions.openCount, transactionBytes: transactions.byteCount,
            sessionBytes: counters.sessionBytes.load(ordering: .relaxed),
            lockBytes: counters.lockBytes.load(ordering: .relaxed), changeBytes: changes.byteCount,
            requestsQueued: load.requests, bytesQueued: load.bytes,
            databases: databases.storedCount, databaseBytes: databases.byteCount,
            adaptiveIndexes: adaptiveIndexes?.statistics ?? AdaptiveIndexStatistics(),
            archive: archiver?.statistics, followers: replication.followers, isFollowing: replication.isConnected,
            lagMicroseconds: lagMicroseconds, cluster: configuration.clusterFigures?(), engine: engine.statistics)
    }

    /// Writes everything committed so far into a sorted run, and returns when it is there.
    package func checkpoint() throws {
        try engine.checkpointNow()
    }

    /// Writes a consistent copy of the store, as of one version, to a directory that must not exist or be empty, while
    /// serving. The copy opens like any data directory.
    package func backup(to directory: String, _ control: CopyControl = CopyControl()) throws {
        try engine.backup(to: directory, control)
    }

    /// Makes a separate store with everything committed so far, in a directory that must not exist or be empty, while
    /// serving. Both share files that never change; the time does not depend on their size.
    /// - Returns: the bytes that were copied because the file system of the directory is another, or has no links.
    package func fork(to directory: String) throws -> Int {
        try engine.fork(to: directory)
    }

    /// The same of a directory that is not served. One that another process forks is waited for.
    ///
    /// - Throws: also what ``open(_:)`` throws; `locked` if another process uses the directory for long,
    ///   `unsupportedFormat` if it is not a data directory.
    package static func fork(_ directory: String, to target: String) throws -> Int {
        guard Directory.exists(directory + "/FORMAT") else {
            throw StorageError(.unsupportedFormat, "not a data directory: it has no FORMAT file", file: directory)
        }
        if !Directory.isWritable(directory) { return try copyReadOnly(directory, to: target) }
        let store = try openWaiting(.forTool(directory))
        defer { store.close() }
        return try store.fork(to: target)
    }

    /// Copies a directory that this process must not change. Links would change its files too.
    /// - Returns: the bytes that were copied.
    private static func copyReadOnly(_ directory: String, to target: String) throws(StorageError) -> Int {
        if Directory.exists(target), try Directory.names(in: target).isEmpty { try Directory.remove(target) }
        var bytes = 0
        try DirectoryCopy.run(from: directory, to: target) { bytes = $0.done }
        return bytes
    }

    private static func openWaiting(_ configuration: StoreConfiguration) throws -> DocumentStore {
        for _ in 0..<500 {
            do {
                return try open(configuration)
            } catch let error as StorageError where error.code == .locked {
                SystemThread.sleep(microseconds: 10_000)
            }
        }
        return try open(configuration)
    }

    /// Makes the commit thread look at its clock: for tests that have stepped it.
    package func noticeTime() {
        queue.wake()
    }
}
