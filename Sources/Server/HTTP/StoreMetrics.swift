// The numbers of the store on the page of metrics, one row each. docs/metrics.md describes every family.

internal import DocumentStore

/// A family of one number of the store.
struct StoreMetric: Sendable {
    let name: String
    let kind: MetricsText.Kind
    let help: String
    let value: @Sendable (StoreStatistics) -> any MetricsNumber

    private static func counter(
        _ name: String, _ help: String, _ value: @escaping @Sendable (StoreStatistics) -> any MetricsNumber
    ) -> StoreMetric {
        StoreMetric(name: name, kind: .counter, help: help, value: value)
    }

    private static func gauge(
        _ name: String, _ help: String, _ value: @escaping @Sendable (StoreStatistics) -> any MetricsNumber
    ) -> StoreMetric {
        StoreMetric(name: name, kind: .gauge, help: help, value: value)
    }

    static let all: [StoreMetric] = [
        .counter("hearth_commits_total", "Commits applied.") { $0.commits },
        .counter("hearth_documents_written_total", "Documents written or deleted.") { $0.documentsWritten },
        .counter("hearth_documents_expired_total", "Expired documents that were deleted.") { $0.documentsExpired },
        .counter("hearth_commit_groups_total", "Commit groups; one sync makes a group durable.") { $0.groups },
        .counter(
            "hearth_commit_repeats_total", "Repeated requests that got the result of the first one."
        ) { $0.repeatsAnswered },
        .counter(
            "hearth_housekeeping_failures_total", "Failures of the store's own commits, which are tried again."
        ) { $0.housekeepingFailures },
        .gauge("hearth_index_builds_failed", "Index builds that cannot continue now; they are tried again.") {
            $0.indexBuildsFailed
        },
        .counter(
            "hearth_transactions_aborted_total", "Transactions that ended with ABORTED."
        ) { $0.transactionsAborted },
        .gauge("hearth_transactions_open", "Open transactions.") { $0.transactionsOpen },
        .gauge("hearth_commit_queue_requests", "Requests in the queue of the commit thread.") { $0.requestsQueued },
        .gauge(
            "hearth_commit_queue_bytes", "Bytes of the requests in the queue of the commit thread."
        ) { $0.bytesQueued },
        .gauge(
            "hearth_adaptive_indexes", "Indexes that were built on demand or are being built."
        ) { $0.adaptiveIndexes.count },
        .counter(
            "hearth_adaptive_indexes_made_total", "Indexes whose build on demand was completed."
        ) { $0.adaptiveIndexes.made },
        .counter(
            "hearth_adaptive_indexes_dropped_total", "Indexes built on demand that were dropped."
        ) { $0.adaptiveIndexes.dropped },
        .gauge("hearth_followers", "Streams to replicas of this server.") { $0.followers },
        .gauge("hearth_replica_connected", "1 if this server is a replica with a stream from its source.") {
            $0.isFollowing ? 1 : 0
        },
        .gauge("hearth_replica_lag_seconds", "Age of the state of a replica; 0 for other servers.") {
            Double($0.lagMicroseconds) / 1_000_000
        },
        .gauge("hearth_databases", "Databases that contain or contained documents.") { $0.databases },
        .counter("hearth_log_written_bytes_total", "Bytes of synced log frames.") { $0.engine.logBytesWritten },
        .gauge(
            "hearth_memtable_entries", "Entries of the memtables, which are not in runs yet."
        ) { $0.engine.memtableEntries },
        .gauge("hearth_memtable_bytes", "Memory of the memtables.") { $0.engine.memtableBytes },
        .gauge("hearth_runs", "Sorted runs.") { $0.engine.runs },
        .gauge("hearth_run_entries", "Entries of all runs.") { $0.engine.runEntries },
        .gauge("hearth_run_file_bytes", "Size of the files of all runs.") { $0.engine.runBytes },
        .gauge(
            "hearth_merge_pending_bytes", "Bytes of runs that are being merged or should be."
        ) { $0.engine.mergePendingBytes },
        .counter("hearth_merges_total", "Completed merges of runs.") { $0.engine.merges },
        .counter("hearth_merge_entries_total", "Entries read by merges.") { $0.engine.mergedEntries },
        .counter("hearth_merge_seconds_total", "Time spent in merges.") { Double($0.engine.mergeNanoseconds) / 1e9 },
        .counter(
            "hearth_merge_pace_seconds_total", "Time for which commits were slowed because merges lag."
        ) { Double($0.engine.paceNanoseconds) / 1e9 },
        .gauge(
            "hearth_history_entries", "Superseded values that are known to be kept for reads at earlier versions."
        ) { $0.engine.historyEntries },
        .counter("hearth_history_swept_total", "Superseded values removed.") { $0.engine.historyEntriesSwept },
        .counter("hearth_checkpoints_total", "Completed checkpoints.") { $0.engine.checkpoints },
        .counter("hearth_checkpoint_entries_total", "Entries written by checkpoints.") { $0.engine.checkpointEntries },
        .counter(
            "hearth_checkpoint_seconds_total", "Time spent in checkpoints."
        ) { Double($0.engine.checkpointNanoseconds) / 1e9 },
        .counter(
            "hearth_writer_stalls_total", "Times that commits had to wait for a checkpoint."
        ) { $0.engine.writerStalls },
        .gauge(
            "hearth_store_full", "1 while commits other than deletes are refused because the disk is full."
        ) { $0.engine.isFull },
        .gauge(
            "hearth_disk_reserve_bytes", "Disk space that is reserved for commits that only delete."
        ) { $0.engine.reserveBytes },
        .gauge(
            "hearth_store_retrying", "1 while a checkpoint, a merge or a log segment has failed and is tried again."
        ) { $0.engine.writeFailure != nil },
        .counter(
            "hearth_store_failed_attempts_total", "Checkpoints and merges that failed and were tried again."
        ) { $0.engine.failedAttempts },
        .counter("hearth_scrub_passes_total", "Times that all files have been verified.") { $0.engine.scrub.passes },
        .counter("hearth_scrub_read_bytes_total", "Bytes read to verify files.") { $0.engine.scrub.bytesRead },
        .gauge("hearth_scrub_damaged_files", "Files in use that are damaged.") { $0.engine.scrub.damage.count },
        .gauge(
            "hearth_store_failed", "1 after a write of the log has failed or a merge has met damage, until a restart."
        ) { $0.engine.hasFailed },
    ]
}
