// The store of a client: cached documents, pending writes, and the queries that were listened to.

package import Basics
package import DocumentModel
internal import Indexing
internal import MemoryEngine
package import Storage
internal import StorageEngines
internal import Synchronization

/// What a client keeps of one database, in memory or in a directory.
///
///     enqueue(request)          the queue gets a batch; its documents change for the program
///     acknowledge, reject       the batch leaves the queue
///     apply(updates, targets)   what the server sent
///     state(of:), run(plan)     what the program sees: cached documents with the pending writes applied
///
/// Each of these calls is one commit of the engine: all of it or nothing is there after a crash. What the server sends,
/// a bundle, a change of the user, and a batch or reply that changes much are several commits if they are large. The
/// calls change what the program sees at once; a directory has it a little later (``whenDurable(_:)``).
///
/// Belongs to one thread or serial queue at a time. No call waits for the network.
package final class LocalStore {
    /// Where a store keeps its data, and how long.
    package struct Configuration: Sendable {
        package var database: DatabaseName
        /// The directory; nil keeps everything in memory.
        package var directory: String?
        /// Documents beyond this number of bytes, index entries and queries included, are removed, those that were used
        /// longest ago first; nil keeps all.
        package var bytesMax: Int?
        /// About how many bytes of documents become one commit: a commit of the engine has a limit.
        package var commitBytesMax = 16 << 20
        /// Documents that no listener covers are removed at once.
        package var isEager = false
        /// Microseconds since 1970.
        package var clock: @Sendable () -> UInt64 = { SystemClock.microseconds() }
        /// For tests: what file operations fail with, as in `EngineOptions`.
        package var fault: (@Sendable (FileOperation) -> Int32)?

        package init(database: DatabaseName, directory: String? = nil, bytesMax: Int? = nil) {
            self.database = database
            self.directory = directory
            self.bytesMax = bytesMax
        }
    }

    package let configuration: Configuration
    /// `projects/{p}/databases/{d}/documents/`, with which all names begin.
    let namePrefix: String
    /// The length of what all names begin with.
    package var namePrefixByteCount: Int { namePrefix.utf8.count }
    let engine: StorageEngine
    let writer: EngineWriter
    var draft = LocalDraft()
    var overlay = OverlayApplication()
    var indexes = LocalIndexes()
    var derivation = IndexDerivation(LocalFieldNumbers())
    /// Whether a query that reads many documents in vain begins to make the indexes that it lacks.
    package var createsIndexes = false
    private let durability: LocalDurability
    private var isClosed = false
    private var isGrouping = false

    // MARK: The queue

    /// The pending batches by their numbers, which grow in the order of the writes.
    private var batches: [UInt64: LocalBatch] = [:]
    /// Pending batches by the paths of their documents.
    var batchesOfDocument: [[UInt8]: PendingDocument] = [:]
    private var nextBatch: UInt64 = 1
    /// Whose batches these are, and those of others.
    var users = LocalUsers()
    /// The paths of documents that do not show the batches of the queue yet, because a change of the user, a new batch
    /// or a reply has not come to its end. The server's state of such a document is in the space `remote`, or it is
    /// what the program sees.
    var stale: Set<[UInt8]> = []
    /// Whether the store has the mark of such a change.
    var isUnfinished = false

    // MARK: Documents and targets

    /// Bytes of all cached documents with their keys.
    package internal(set) var byteCount = 0
    /// Bytes of the keys of all index entries.
    package internal(set) var entryByteCount = 0
    /// Bytes of all queries, without their tokens and members.
    package internal(set) var targetByteCount = 0
    /// Bytes that were removed since the disk space was given back.
    var removedByteCount = 0
    /// In which order documents and queries were used.
    var uses = LocalUses(reservedEnd: 0, floor: 0)
    /// The three numbers as of the last commit, which has stored the first two.
    private var storedByteCounts = (documents: 0, entries: 0, targets: 0)
    var nextTarget: UInt32 = 1
    /// Targets in use: garbage collection keeps their documents.
    var activeTargets: Set<UInt32> = []
    /// Those of them that bundles have, which no listener knows.
    var bundleTargets: Set<UInt32> = []
    /// Documents that may have to be removed by eager garbage collection, with the moments at which they became that.
    private(set) var eagerCandidates: [[UInt8]: Int] = [:]
    /// How many of them the last collection has left because of reads on their way.
    private var eagerLeftCount = 0
    /// The moment of what changes now. Moments grow.
    package var moment = 0
    /// The queries of the targets in use.
    var canonicals: [UInt32: [UInt8]] = [:]
    /// The spaces that have the document that is being stored.
    var present: Set<UInt8> = []

    /// Opens a store and reads its queue.
    ///
    /// - Parameter deliver: runs a closure on the thread or queue that the store belongs to, later. It is called on a
    ///   thread of the engine.
    /// - Throws: FAILED_PRECONDITION if another process uses the directory or if it is of another database, DATA_LOSS
    ///   if it is damaged, UNIMPLEMENTED if another version wrote it, RESOURCE_EXHAUSTED if the disk is full.
    package init(
        _ configuration: Configuration, deliver: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) throws(RequestError) {
        self.configuration = configuration
        namePrefix = "\(configuration.database.documentsRoot)/"
        engine = try Self.open(configuration)
        do throws(StorageError) {
            writer = try engine.makeWriter()
        } catch {
            throw Self.error(error, configuration)
        }
        durability = LocalDurability(isInMemory: configuration.directory == nil, deliver: deliver)
        try readMeta()
        try readQueue()
        try readTargetNumbers()
        try readIndexes()
        try finishChange()
        writer.finishReading()
    }

    private static func open(_ configuration: Configuration) throws(RequestError) -> StorageEngine {
        var options = EngineOptions()
        options.latestOnlySpaces = LocalSpace.all
        options.retentionMicroseconds = 0
        options.beginsTimeline = false
        // A client's directory is small, and many programs run for a moment only.
        // The engine keeps disk space for twice the memtable.
        options.memtableBytesMax = 2 << 20
        options.logSegmentBytes = 1 << 20
        options.logSpareSegmentsMax = 1
        options.diskReserveBytes = 0
        options.fault = configuration.fault
        do {
            let volume = configuration.directory == nil ? MemoryVolume() : nil
            return try StorageEngine.open(
                directory: configuration.directory ?? "", volume: volume, options: options
            ) { _, record, mutations, _ in try LocalDraft.replay(record, into: &mutations) }
        } catch let error as StorageError {
            throw Self.error(error, configuration)
        } catch {
            throw RequestError(.dataLoss, "The cache in \(configuration.directory ?? "memory") is damaged: \(error)")
        }
    }

    private static func error(_ error: StorageError, _ configuration: Configuration) -> RequestError {
        let place = configuration.directory ?? "memory"
        switch error.code {
        case .locked:
            return RequestError(
                .failedPrecondition,
                "Another process, or another object of this one, uses the cache in \(place). Give each process another "
                    + "directory, or use MemoryCacheSettings.")
        case .unsupportedFormat:
            return RequestError(
                .unimplemented, "Another version wrote the cache in \(place): \(error.message). Remove this directory.")
        case .corrupt:
            return RequestError(
                .dataLoss, "The cache in \(place) is damaged: \(error.descriptionOfPlace). Remove this directory.")
        default: return RequestError(.internal, "The cache in \(place) cannot be used: \(error.description)")
        }
    }

    /// Writes everything to the directory and releases it. Nothing may be called after this.
    package func close() {
        if isClosed { return }
        isClosed = true
        writer.finishReading()
        durability.finish(writer)
        try? engine.close()
    }

    deinit { close() }

    // MARK: Opening

    private static let format: [UInt8] = [1]

    private func readMeta() throws(RequestError) {
        // Records of earlier builds have the minutes since 1970.
        let floor = UInt32(truncatingIfNeeded: configuration.clock() / 60_000_000)
        guard let format = try value(forKey: LocalKey.format) else {
            uses = LocalUses(reservedEnd: 0, floor: floor)
            draft.put(LocalKey.format, Self.format)
            draft.put(LocalKey.databaseName, configuration.database.utf8)
            return try commit()
        }
        guard format == Self.format else {
            throw RequestError(
                .unimplemented,
                "Another version wrote the cache in \(configuration.directory ?? "memory"). Remove this directory.")
        }
        // Keys have paths without the database. A cache of an earlier build does not have the name.
        if let owner = try value(forKey: LocalKey.databaseName), owner != configuration.database.utf8 {
            throw RequestError(
                .failedPrecondition,
                "The cache in \(configuration.directory ?? "memory") is of the database "
                    + "\(String(repairingUTF8: owner.byteSpan)). Give each database another directory.")
        }
        let counts = try value(forKey: LocalKey.byteCount) ?? []
        var reader = WireReader(counts.byteSpan)
        byteCount = Int(truncatingIfNeeded: (try? reader.fixed64()) ?? 0)
        entryByteCount = Int(truncatingIfNeeded: (try? reader.fixed64()) ?? 0)
        storedByteCounts = (byteCount, entryByteCount, 0)
        uses = LocalUses(reservedEnd: (try? reader.fixed32()) ?? 0, floor: floor)
    }

    private func readQueue() throws(RequestError) {
        var found: [LocalBatch] = []
        try forEach(in: [LocalSpace.batches]) { (key, value) throws(RequestError) in
            var number: UInt64 = 0
            for offset in 1..<key.byteCount { number = number << 8 | UInt64(key[byteAt: offset]) }
            found.append(try LocalBatch(number: number, stored: value, database: configuration.database))
        }
        try users.readClaims(try value(forKey: LocalKey.claims) ?? [])
        nextBatch = users.claimsEnd
        let user = try value(forKey: LocalKey.user) ?? []
        users.current = String(repairingUTF8: user.byteSpan)
        for batch in found.map(users.claimed) {
            nextBatch = max(nextBatch, batch.number + 1)
            if batch.isUnclaimed || batch.user.hasSameUTF8(as: users.current) {
                remember(batch)
                users.note(batch)
            } else {
                users.others[batch.number] = batch
            }
        }
    }

    private func readTargetNumbers() throws(RequestError) {
        try forEach(in: [LocalSpace.targets]) { (_, value) throws(RequestError) in
            let target = try LocalTarget(stored: value)
            nextTarget = max(nextTarget, target.id + 1)
            targetByteCount += target.byteCount
        }
        storedByteCounts.targets = targetByteCount
    }

    // MARK: Entries

    /// A copy of the value of a key.
    func value(forKey key: [UInt8]) throws(RequestError) -> [UInt8]? {
        do throws(StorageError) {
            guard let stored = try writer.latest.value(forKey: key.byteSpan) else { return nil }
            return [UInt8](copying: stored.bytes)
        } catch {
            throw RequestError(error)
        }
    }

    /// Calls `body` with every entry whose key begins with a prefix.
    ///
    /// - Parameters:
    ///   - start: the first key; nil begins with the prefix.
    ///   - atMost: the most entries.
    func forEach(
        in prefix: [UInt8], from start: [UInt8]? = nil, atMost: Int = .max,
        _ body: (_ key: RawSpan, _ value: RawSpan) throws(RequestError) -> Void
    ) throws(RequestError) {
        let start = start ?? prefix
        let end = LocalKey.end(of: prefix)
        let latest = writer.latest
        var cursor: EngineCursor
        do throws(StorageError) {
            cursor = try latest.cursor(from: start.byteSpan, to: end.byteSpan)
        } catch {
            throw RequestError(error)
        }
        for _ in 0..<atMost {
            do throws(StorageError) {
                guard try cursor.next() else { return }
            } catch {
                throw RequestError(error)
            }
            try body(cursor.key, cursor.value)
        }
    }

    func put(_ key: [UInt8], _ value: [UInt8]) { draft.put(key, value) }

    func delete(_ key: [UInt8]) { draft.delete(key) }

    /// Eager garbage collection has to look at a document.
    func noteEagerCandidate(_ path: [UInt8]) {
        if configuration.isEager { eagerCandidates[path] = moment }
    }

    /// Whether eager garbage collection has something to do.
    ///
    /// - Parameter hasReads: whether reads are on their way. Then it waits until there is much to do, because it looks
    ///   again at what it leaves.
    package func hasEagerCandidates(hasReads: Bool) -> Bool {
        eagerCandidates.count > (hasReads ? 2 * eagerLeftCount + Self.eagerCandidatesDuringReads : 0)
    }

    private static let eagerCandidatesDuringReads = 256

    /// An eager collection has left these candidates.
    func keepEagerCandidates(_ kept: [[UInt8]: Int], dueToReads count: Int) {
        eagerCandidates = kept
        eagerLeftCount = count
    }

    /// How often eager garbage collection has looked for a document in a target so far. For tests.
    package internal(set) var eagerLookUpCount = 0
    /// How many documents eager garbage collection has to look at. For tests.
    package var eagerCandidateCount: Int { eagerCandidates.count }

    /// Begins to collect changes. What a failed call has left is discarded.
    func begin() {
        uses.begin()
        indexes.rollBack()
        if draft.isEmpty { return }
        draft.removeAll()
        (byteCount, entryByteCount, targetByteCount) = storedByteCounts
    }

    // MARK: Groups

    /// Begins a group: what the calls until ``endGroup()`` change becomes durable together. Each call is still applied
    /// as a whole or not at all, and the next one sees it.
    package func beginGroup() { isGrouping = true }

    /// Ends a group.
    ///
    /// - Throws: INTERNAL if the store cannot be written any more.
    package func endGroup() throws(RequestError) {
        isGrouping = false
        defer { finishReading() }
        do throws(StorageError) {
            try durability.staged(writer)
        } catch {
            throw RequestError(.internal, "The cache cannot be written: \(error.description)")
        }
    }

    /// The engine may release what was read.
    func finishReading() {
        if !isGrouping { writer.finishReading() }
    }

    /// Applies the changes that were collected.
    func commit() throws(RequestError) {
        if draft.isEmpty && indexes.changedCollections.isEmpty { return }
        putCollections()
        let earlierByteCounts = storedByteCounts
        let reservedEnd = uses.needsReservation ? uses.nextReservedEnd : uses.reservedEnd
        let isStored = byteCount == storedByteCounts.documents && entryByteCount == storedByteCounts.entries
        storedByteCounts = (byteCount, entryByteCount, targetByteCount)
        if !isStored || reservedEnd != uses.reservedEnd {
            var bytes = ByteBuffer(capacity: 20)
            bytes.append(littleEndian: UInt64(byteCount))
            bytes.append(littleEndian: UInt64(max(0, entryByteCount)))
            bytes.append(littleEndian: reservedEnd)
            draft.put(LocalKey.byteCount, bytes.copyBytes())
        }
        do throws(StorageError) {
            let now = CommitVersion(microseconds: configuration.clock())
            let next = CommitVersion(microseconds: writer.lastVersion.microseconds + 1)
            try writer.stage(
                version: max(now, next), record: draft.record.bytes, mutations: draft.mutations, mayUseReserve: false)
            draft.removeAll()
            uses.reserved(upTo: reservedEnd)
            indexes.keep()
            if !isGrouping || writer.isGroupFull { try durability.staged(writer) }
        } catch {
            draft.removeAll()
            indexes.rollBack()
            (byteCount, entryByteCount, targetByteCount) = earlierByteCounts
            storedByteCounts = earlierByteCounts
            throw error.code == .full
                ? RequestError(.resourceExhausted, "The disk of the cache is full.")
                : RequestError(.internal, "The cache cannot be written: \(error.description)")
        }
    }

    /// Calls `body` when everything so far survives a crash of the process and of the machine: at once if the store is
    /// in memory, else later on the thread or queue of the store.
    package func whenDurable(_ body: @escaping @Sendable () -> Void) { durability.whenDurable(writer, body) }

    // MARK: Names

    /// The path of a document of this database; nil for other names.
    func path(_ name: String) -> [UInt8]? {
        guard name.utf8.starts(with: namePrefix.utf8) else { return nil }
        return Array(name.utf8.dropFirst(namePrefix.utf8.count))
    }

    func name(_ path: some Sequence<UInt8>) -> String { namePrefix + String(decoding: Array(path), as: UTF8.self) }

    // MARK: The queue

    /// The pending batches in the order in which they were written.
    package var queue: [LocalBatch] { batches.values.sorted { $0.number < $1.number } }

    package var isQueueEmpty: Bool { batches.isEmpty }

    /// Whether a batch of the user with a smaller number is pending. Before the user is known, this may be any user.
    package func hasBatch(before number: UInt64) -> Bool {
        batches.keys.contains { $0 < number } || !isUserKnown && users.others.keys.contains { $0 < number }
    }

    /// The number after the last pending batch of the user that changes one of certain documents; 0 for none. Before
    /// the user is known, this may be any user.
    ///
    /// - Parameter contains: whether a document is one of them, by its path below `documents`.
    package func endOfBatches(changing contains: ([UInt8]) -> Bool) -> UInt64 {
        var end: UInt64 = 0
        for (path, pending) in batchesOfDocument {
            if let last = pending.numbers.last, last >= end, contains(path) { end = last + 1 }
        }
        if isUserKnown { return end }
        for batch in users.others.values where batch.number >= end && batch.paths.contains(where: contains) {
            end = batch.number + 1
        }
        return end
    }

    /// The pending batches of all users in the order in which they were written.
    package var allBatches: [LocalBatch] {
        users.others.isEmpty ? queue : (queue + users.others.values).sorted { $0.number < $1.number }
    }

    func remember(_ batch: LocalBatch) {
        batches[batch.number] = batch
        nextBatch = max(nextBatch, batch.number + 1)
        for path in batch.paths { batchesOfDocument[path, default: PendingDocument()].append(batch.number) }
    }

    /// A batch that was forgotten is pending all the same.
    func putBack(_ batch: LocalBatch) {
        batches[batch.number] = batch
        for path in batch.paths { batchesOfDocument[path, default: PendingDocument()].insert(batch.number) }
    }

    /// Replaces a pending batch by one with the same number and documents.
    func replace(_ batch: LocalBatch) { batches[batch.number] = batch }

    func forget(_ batch: LocalBatch) {
        batches[batch.number] = nil
        for path in batch.paths {
            batchesOfDocument[path]?.remove(batch.number)
            if batchesOfDocument[path]?.isEmpty ?? false { batchesOfDocument[path] = nil }
        }
    }

    /// The number of the next batch. Numbers grow in the order of the calls.
    package var nextBatchNumber: UInt64 { nextBatch }

    /// The names of the documents that pending batches from a number on change.
    package func pendingNames(from number: UInt64) -> Set<UTF8Text> {
        var names: Set<UTF8Text> = []
        for number in number..<max(number, nextBatch) {
            for path in batches[number]?.paths ?? [] { names.insert(UTF8Text(name(path))) }
        }
        return names
    }

    func batch(_ number: UInt64) -> LocalBatch? { batches[number] }

    /// The pending batches that change a document, in order.
    func batches(of path: [UInt8]) -> [LocalBatch] {
        (batchesOfDocument[path] ?? PendingDocument()).numbers.compactMap { batches[$0] }
    }

    /// Whether pending writes change a document, or have changed what the program still sees of it.
    func isPending(_ path: [UInt8]) -> Bool {
        !batches.isEmpty && batchesOfDocument[path] != nil || !stale.isEmpty && stale.contains(path)
    }

    /// The same, by the full name.
    package func isPending(_ name: String) -> Bool { path(name).map { isPending($0) } ?? false }

    /// The names of all documents that pending writes change, each once.
    package var pendingNames: [String] { stale.union(batchesOfDocument.keys).map { name($0) } }
}

extension LocalStore {
    /// One thread of the process at a time removes directories: the others would find them in use.
    private static let removal = Mutex(())

    /// Removes the directory of a store with everything in it.
    ///
    /// - Throws: FAILED_PRECONDITION if it is in use; INTERNAL if files cannot be removed.
    package static func remove(directory: String) throws(RequestError) {
        do throws(StorageError) {
            try removal.withLock { (_) throws(StorageError) in try StorageEngine.remove(directory: directory) }
        } catch {
            throw error.code == .locked
                ? RequestError(.failedPrecondition, "Another process uses the cache in \(directory).")
                : RequestError(.internal, "The cache in \(directory) cannot be removed: \(error.description)")
        }
    }
}
