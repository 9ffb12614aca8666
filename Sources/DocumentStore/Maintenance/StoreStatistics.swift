// Figures about a running store.

package import Archive
package import Basics
package import Storage
internal import Synchronization

/// Counts since the store was opened, and sizes now.
package struct StoreStatistics: Sendable {
    /// Commits and batches applied.
    package var commits: UInt64 = 0
    /// Documents written or deleted by them.
    package var documentsWritten: UInt64 = 0
    /// Expired documents that were deleted; `documentsWritten` counts them too.
    package var documentsExpired: UInt64 = 0
    /// Groups of commits, each made durable by one sync.
    package var groups: UInt64 = 0
    /// Requests (commits, batches, begins that waited) answered by one group.
    package var groupRequests = HistogramReading()
    /// Transactions that got `ABORTED` at their commit.
    package var transactionsAborted: UInt64 = 0
    /// Repeated requests answered from memory.
    package var repeatsAnswered: UInt64 = 0
    /// Failures of the store's own commits (index builds, expiry, idle sessions, notes of the clock), which are tried
    /// again.
    package var housekeepingFailures: UInt64 = 0
    /// Index builds that cannot continue now, and are tried again.
    package var indexBuildsFailed = 0
    /// Transactions open now.
    package var transactionsOpen = 0
    /// Bytes that they hold, about.
    package var transactionBytes = 0
    /// Bytes of the remembered results of commits, about.
    package var sessionBytes = 0
    /// Bytes of share locks and of the commits that wait for them, about.
    package var lockBytes = 0
    /// Bytes of the changes that listeners have not taken.
    package var changeBytes = 0
    /// Requests waiting for the commit thread now.
    package var requestsQueued = 0
    /// Bytes of their writes.
    package var bytesQueued = 0
    /// Databases that hold or held documents.
    package var databases = 0
    /// Bytes of what is known of all databases, the deleted ones too, about.
    package var databaseBytes = 0
    /// Indexes that were made on demand.
    package var adaptiveIndexes = AdaptiveIndexStatistics()
    /// Of the archive; nil without one.
    package var archive: ArchiveStatistics?
    /// Streams to replicas.
    package var followers = 0
    /// Whether this store is a replica with a stream from its source.
    package var isFollowing = false
    /// How old the state of a replica is by its own clock; 0 for other stores.
    package var lagMicroseconds: UInt64 = 0
    /// Of the cluster; nil without one.
    package var cluster: ClusterFigures?
    /// The storage engine's own figures.
    package var engine: EngineStatistics
}

extension DocumentStore {
    /// Why commits other than deletes are refused, or were in the last two seconds, because there is no space; cheaper
    /// than the figures.
    package var recentShortage: StorageError? { engine.recentShortage }

    /// Gives back some bytes of the disk space that is reserved for deletes: for a small file that must be written on a
    /// full disk.
    ///
    /// - Returns: false if not so many can be given back.
    package func releaseReserve(_ bytes: Int) -> Bool { engine.releaseReserve(bytes) }

    /// To be called before a file of the data directory is made, replaced or removed by its path. Thread-safe.
    ///
    /// - Throws: `inputOutput` if the directory was moved away; another one may have its place.
    package func checkPlace() throws(StorageError) { try engine.checkPlace() }

    /// Why an attempt to write a file of the store failed, now or in the last two seconds, unless space was missing. It
    /// is made again; cheaper than the figures.
    package var recentWriteFailure: StorageError? { engine.recentWriteFailure }

    /// Damage that the scrub has found; cheaper than the figures.
    package var scrubDamage: [StorageError] { engine.scrub.damage }

    /// How often the store's own commits have failed, and the last failure; cheaper than the figures.
    package var housekeepingFailures: (count: UInt64, last: String?) {
        (counters.housekeepingFailures.load(ordering: .relaxed), counters.lastHousekeepingFailure.withLock { $0 })
    }
}

/// The counters of the statistics, added to by the commit thread.
final class StoreCounters: Sendable {
    let commits = Atomic<UInt64>(0)
    let documentsWritten = Atomic<UInt64>(0)
    let documentsExpired = Atomic<UInt64>(0)
    let groups = Atomic<UInt64>(0)
    let groupRequests = Histogram()
    let transactionsAborted = Atomic<UInt64>(0)
    let repeatsAnswered = Atomic<UInt64>(0)
    let housekeepingFailures = Atomic<UInt64>(0)
    let lastHousekeepingFailure = Mutex<String?>(nil)
    /// Those of them that were batches of expired documents.
    let expiryFailures = Atomic<UInt64>(0)
    /// Memory of the commit thread's tables now, in bytes.
    let sessionBytes = Atomic<Int>(0)
    let lockBytes = Atomic<Int>(0)

    func noteFailure(of task: HousekeepingTask, _ description: String) {
        lastHousekeepingFailure.withLock { $0 = "\(task): \(description)" }
        housekeepingFailures.add(1, ordering: .relaxed)
    }

    func noteExpired(_ batch: BatchWriteResult) {
        let deleted = batch.outcomes.count { if case .success = $0 { true } else { false } }
        documentsExpired.add(UInt64(deleted), ordering: .relaxed)
    }
}
