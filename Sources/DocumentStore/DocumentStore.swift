// The document store: a directory of databases, their documents, transactions and the thread that commits.

package import DocumentModel
internal import KeyValueStore

/// An open store.
///
/// Thread-safe throughout: any thread may submit commits and begin transactions; answers come from the store's own
/// threads, so completions should only hand over. Reads go through one `StoreReader` per thread.
package final class DocumentStore: Sendable {
    package let configuration: StoreConfiguration

    private init(configuration: StoreConfiguration) {
        self.configuration = configuration
    }

    /// Opens or creates the store in the configuration's directory and recovers what a crash left in its log.
    package static func open(_ configuration: StoreConfiguration) throws -> DocumentStore {
        fatalError("not built yet")
    }

    /// Answers what was submitted, writes everything to the tree and frees the directory. Later submissions are answered
    /// `UNAVAILABLE`. No reader may be in use.
    package func close() {
        fatalError("not built yet")
    }

    /// A reader for the calling thread.
    package func makeReader() -> StoreReader {
        StoreReader(store: self)
    }

    /// Applies the request's writes, all or none, and answers when they are durable and visible.
    ///
    /// Never blocks. The completion is called exactly once, on a thread of the store, and must not block either. The
    /// errors that a retry may cure: `ABORTED` (a transaction met a conflict: begin again, naming this attempt),
    /// `RESOURCE_EXHAUSTED` (too much is waiting, or the disk is full), `UNAVAILABLE` (closing, or the disk failed: the
    /// outcome is unknown; with a request identifier it is safe to repeat).
    package func commit(
        _ request: CommitRequest, completion: @escaping @Sendable (Result<CommitResult, RequestError>) -> Void
    ) {
        fatalError("not built yet")
    }

    /// Applies each write by itself: one that fails leaves the others be. The request's transaction must be nil, and no
    /// document may be written twice.
    package func batchWrite(
        _ request: CommitRequest, completion: @escaping @Sendable (Result<BatchWriteResult, RequestError>) -> Void
    ) {
        fatalError("not built yet")
    }

    /// Begins a transaction. One that retries an aborted attempt may wait for its turn at the documents it conflicted on.
    ///
    /// The completion is called exactly once, on the calling thread when nothing has to be waited for.
    package func beginTransaction(
        in database: DatabaseName, options: TransactionOptions,
        completion: @escaping @Sendable (Result<TransactionIdentifier, RequestError>) -> Void
    ) {
        fatalError("not built yet")
    }

    /// Ends a transaction without a commit. Fine for one that has ended already or is unknown.
    package func rollback(_ transaction: TransactionIdentifier) {
        fatalError("not built yet")
    }

    /// Figures for metrics and people.
    package var statistics: StoreStatistics {
        fatalError("not built yet")
    }

    /// Writes a consistent copy of the store, as of one version, to a directory that must not exist or be empty, while
    /// serving. The copy opens like any data directory.
    package func backup(to directory: String) throws {
        fatalError("not built yet")
    }
}
