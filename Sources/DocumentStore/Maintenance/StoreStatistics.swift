// Figures about a running store.

/// Counts since the store was opened, and sizes now.
package struct StoreStatistics: Sendable {
    /// Commits and batches applied.
    package var commits: UInt64 = 0
    /// Documents written or deleted by them.
    package var documentsWritten: UInt64 = 0
    /// Groups of commits, each made durable by one sync.
    package var groups: UInt64 = 0
    /// Transactions told `ABORTED` at their commit.
    package var transactionsAborted: UInt64 = 0
    /// Repeated requests answered from memory.
    package var repeatsAnswered: UInt64 = 0
    /// Transactions open now.
    package var transactionsOpen = 0
    /// Requests waiting for the commit thread now.
    package var requestsQueued = 0
    /// Commits waiting for a lease now.
    package var commitsParked = 0
    /// Bytes of the requests waiting now.
    package var bytesQueued = 0

    package init() {}
}
