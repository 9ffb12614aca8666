// What an operator or a test may choose about a store; every bound that protects memory or time stands here.

package import Archive
import Basics
package import DocumentModel
package import Indexing
package import MemoryEngine
package import Storage
package import TextAnalysis

/// The settings of one store.
package struct StoreConfiguration: Sendable {
    /// The data directory; created when missing.
    package var directory: String

    /// The source of wall time and of elapsed time. Tests inject one that they step.
    package var clock: any StoreClock = SystemClock()

    /// Requests that may wait for the commit thread; the next fails with `RESOURCE_EXHAUSTED`.
    package var queuedRequestsMax = 100_000

    /// Bytes of requests that may wait for the commit thread; the next fails with `RESOURCE_EXHAUSTED`.
    package var queuedBytesMax = 256 << 20

    /// Log bytes after which a group of commits is sealed although more requests wait; bounds the time of one sync.
    package var groupBytesMax = 4 << 20

    /// Bytes staged up to which the commit thread syncs a group itself. Deciding a small group takes less time than
    /// handing it to another thread and being woken; of larger ones, and of those with many index entries, the next is
    /// decided while the log thread writes.
    package var inlineSyncBytesMax = 256 << 10

    /// How long a group waits for the clients of the group before it, in percent of the time of an append; 0: not at
    /// all. For logs whose appends cost much more than a sync. A client alone waits for nobody.
    package var groupPausePercent = 0

    /// Requests that the commit thread waits for while a group is on its way. Nothing is replied before its end, and
    /// each wake-up of the thread costs as much as deciding some requests.
    package var requestsAtOnce = 1

    /// Bytes of documents that the writes of one commit may read and write, with those of intermediate states, before
    /// it is refused with `RESOURCE_EXHAUSTED`; bounds the time for which one commit may hold up the others. A commit
    /// that replaces or deletes 500 documents of the largest size fits.
    package var commitWorkBytesMax = 512 << 20

    /// Transactions open at once; the next begin fails with `RESOURCE_EXHAUSTED`.
    package var transactionsMax = 100_000

    /// Transactions that one connection may have open at once; its next begin fails with `RESOURCE_EXHAUSTED`.
    package var transactionsPerConnectionMax = 10_000

    /// Age at which a transaction expires, in milliseconds.
    package var transactionLifetimeMilliseconds: UInt64 = 270_000

    /// Time without a read after which a transaction expires, in milliseconds.
    package var transactionIdleMilliseconds: UInt64 = 60_000

    /// Documents and ranges one transaction may read before it gets `RESOURCE_EXHAUSTED`; bounds its read set.
    package var transactionReadsMax = 100_000

    /// Bytes that all open transactions may hold together, by their reads and by writes that wait for the commit.
    /// Beyond it begins, reads and such writes get `RESOURCE_EXHAUSTED`.
    package var transactionBytesMax = 1 << 30

    /// How long a transaction may be idle during its turn before others stop waiting for it, in milliseconds.
    package var turnIdleMilliseconds: UInt64 = 1_000

    /// How long a turn lasts at most, in milliseconds: a commit waits no longer for it.
    package var turnMilliseconds: UInt64 = 3_000

    /// How long a begin may wait for its turn before it continues without one, in milliseconds.
    package var turnWaitMilliseconds: UInt64 = 20_000

    /// How transactions run that ask for nothing in particular.
    package var concurrencyMode = TransactionOptions.ConcurrencyMode.optimistic

    /// How long a commit may wait for the share locks of others, in milliseconds: a transaction's is then answered
    /// `ABORTED`, a plain one continues.
    package var lockWaitMilliseconds: UInt64 = 15_000

    /// How long the holder of share locks that block others may be silent before it loses them, in
    /// milliseconds.
    package var lockIdleMilliseconds: UInt64 = 10_000

    /// Share locks held at once; beyond, reads of pessimistic transactions take none.
    package var shareLocksMax = 1_000_000

    /// Memory that one share lock takes at most, in bytes, about: a list of holders, and an entry of its transaction.
    package static let shareLockBytes = 128

    /// Commits that may wait for a turn to end, and begins that may wait for a turn; further ones continue at once,
    /// and transactions may then have to retry. Waiting commits may hold `queuedBytesMax` besides the queue.
    package var parkedCommitsMax = 10_000

    /// Writers' sessions whose results are remembered; past it the longest idle one is forgotten.
    package var sessionsMax = 10_000

    /// Bytes of the remembered results of all sessions; past it the longest idle sessions are forgotten. A session
    /// whose unacknowledged results take a sixteenth of it gets `RESOURCE_EXHAUSTED`.
    package var sessionBytesMax = 256 << 20

    /// Results remembered for one session: how far its sequence may run ahead of its oldest unanswered commit.
    package var resultsPerSessionMax = 1_024

    /// Time without a commit after which a session is forgotten, in milliseconds.
    package var sessionIdleMilliseconds: UInt64 = 600_000

    /// Entries of the ring of recent changes, by which the ranges of transactions are validated without reading again.
    package var recentChangesMax = 262_144

    /// Memory of one entry with a key of usual length, in bytes, about.
    package static let recentChangeBytes = 160

    /// Memory for the recent changes that listeners have not taken yet, in bytes. A listener that needs older
    /// ones compares two states of the store.
    package var changeFeedBytesMax = 32 << 20

    /// Entries read again for one range of one transaction before it gets `ABORTED` instead; bounds the time for
    /// which one commit may hold up the others.
    package var rangeRescanMax = 20_000

    /// Changes, each with each range of one transaction that contains it, that are looked at before the transaction
    /// gets `ABORTED` instead. Bounds the same for a transaction with many ranges.
    package var validationStepsMax = 1_000_000

    /// Databases that this store may have; the next is refused with `RESOURCE_EXHAUSTED`.
    package var databasesMax = 100_000

    /// Bytes of memory for the names of databases and what is known of them, the deleted ones too; a new database
    /// beyond it is refused with `RESOURCE_EXHAUSTED`.
    package var databaseBytesMax = 128 << 20

    /// Memory of a database without its name, in bytes, about.
    package static var databaseBytes: Int { DatabaseDirectory.entryBytes }

    /// Asked before a database comes into being: whether this store may have it, and not another one. Must not block.
    package var admitsDatabase: @Sendable (DatabaseName) -> Bool = { _ in true }

    /// Which fields are indexed as they are written. Turned off, entries are given up; turned on again, they are built
    /// again in the background.
    package var automaticIndexes = AutomaticIndexes.on

    /// When indexes are made and dropped, if that is done on demand.
    package var adaptiveIndexes = AdaptiveIndexSettings()

    /// Index entries that one document may have; a write of one with more is refused with `INVALID_ARGUMENT`.
    package var indexEntriesPerDocumentMax = 40_000

    /// Bytes of keys and values that one commit stages which removes the documents of a deleted database, or takes
    /// those of one that moves here, before it leaves the rest to the next one: as much as a commit that comes
    /// meanwhile may wait for. The storage takes one document more in any case.
    package var ownCommitBytesMax = 64 << 20

    /// Time between two rounds that delete expired documents (`ttl` of field overrides), in
    /// milliseconds; 0 begins none: tools that only look at a directory must not change it.
    package var expiryIntervalMilliseconds: UInt64 = 0

    /// Asked on the commit thread before each piece of housekeeping; what it does not admit is tried again later.
    /// Tests inject one that stops a task half-way.
    package var admitsHousekeeping: @Sendable (HousekeepingTask) -> Bool = { _ in true }

    /// Gets the version and a hash of what was derived from each record, on the thread that derives it.
    package typealias DerivedObserver = @Sendable (CommitVersion, UInt64) -> Void

    /// Called for each commit that is staged or replayed; nil hashes nothing. Servers that have the same records derive
    /// the same hashes.
    package var onDerived: DerivedObserver?

    /// Set for a store that applies the records of another server and commits nothing itself: who leads, for the
    /// refusals.
    package var leader: String?

    /// Whether this server still leads, for one that may stop to lead at any time (``leader``, and an engine with a
    /// shared log). Strict reads are refused while it is false.
    package var holdsLease: (@Sendable () -> Bool)?

    /// Whether the store may give out times up to one, in microseconds, for a store with a shared log. After false it
    /// soon may. Called on the commit thread; must not wait.
    package var admitsTime: (@Sendable (UInt64) -> Bool)?

    /// What the cluster of the store is doing; nil without one.
    package var clusterFigures: (@Sendable () -> ClusterFigures)?

    /// Settings of the storage engine. Its clock, its group size and the key spaces without history are the store's
    /// to set.
    package var engine = EngineOptions()

    /// Where and how the commits are archived; nil archives nothing.
    package var archive: ArchiveSettings?

    /// Set for a store that keeps everything in memory: what takes the place of the directory.
    package var volume: MemoryVolume?

    /// The libraries that analyse texts. Called when there is an index for searches.
    package var textLibraries: @Sendable () -> TextLibraries = { .system }

    package init(directory: String) {
        self.directory = directory
    }

    /// The configuration of a tool that opens a directory without serving it: a backup does not begin its own history,
    /// and automatic indexes stay as they are.
    package static func forTool(_ directory: String) -> StoreConfiguration {
        var configuration = StoreConfiguration(directory: directory)
        configuration.engine.beginsTimeline = false
        configuration.automaticIndexes = .unchanged
        return configuration
    }
}
