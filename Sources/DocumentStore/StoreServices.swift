// What the parts of an open store share.

internal import Indexing

/// The thread-safe parts that the facade and the commit thread have in common.
struct StoreServices: Sendable {
    let configuration: StoreConfiguration
    let versions: VersionClock
    let databases: DatabaseDirectory
    let transactions: TransactionTable
    let indexState: SharedIndexStates
    let failedBuilds: FailedBuilds
    /// Nil unless indexes are made on demand.
    let adaptiveIndexes: AdaptiveIndexes?
    let counters: StoreCounters
    let changes: ChangeFeed
    let standing: WriteStanding
    let replication: ReplicationState
    let changedPaths: ChangedPaths
}
