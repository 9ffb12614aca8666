// Transactions for the users of the lower-level client: an async body that runs until its commit succeeds.

package import Basics
package import DocumentModel
package import FirestoreMessages

/// One attempt of a transaction: reads of its snapshot, and the writes that its commit will apply.
package struct ClientTransaction: ~Copyable, Sendable {
    package let client: HearthClient
    package let database: DatabaseName
    /// The id; empty until the first read begins the transaction.
    package private(set) var id: [UInt8]
    /// What the commit applies; empty for a transaction that only reads.
    package var writes: CommitWrites

    init(client: HearthClient, database: DatabaseName, id: [UInt8]) {
        self.client = client
        self.database = database
        self.id = id
        writes = CommitWrites(database: database)
    }

    /// Reads documents of the transaction's snapshot.
    nonisolated(nonsending) package mutating func get(_ names: [String]) async throws(RequestError) -> BatchGetReply {
        let reply = try await client.batchGet(
            BatchGetDocumentsRequest(
                database: database.description, documents: names,
                consistency: id.isEmpty ? .newTransaction(.readWrite) : .transaction(id)))
        if id.isEmpty { id = reply.transaction }
        return reply
    }

    /// Reads one document of the transaction's snapshot; `nil` if it does not exist.
    nonisolated(nonsending) package mutating func get(_ name: String) async throws(RequestError) -> StoredDocument? {
        guard id.isEmpty else { return try await client.getDocument(name, consistency: .transaction(id)) }
        return try await get([name]).results.first?.content
    }
}

extension HearthClient {
    /// Runs `body` and commits its writes, again after a conflict or a passing failure.
    ///
    /// - Parameters:
    ///   - attemptsMax: attempts in all.
    ///   - body: may run several times; what it throws ends the transaction, unless it is a `RequestError` of a kind
    ///     that another attempt may cure.
    /// - Returns: what the body returned in the attempt that was committed.
    nonisolated(nonsending) package func runTransaction<Result>(
        database: DatabaseName, attemptsMax: Int = TransactionRetry.standardAttempts,
        _ body: nonisolated(nonsending) (inout ClientTransaction) async throws -> Result
    ) async throws -> Result {
        var retry = TransactionRetry(attemptsMax: attemptsMax, jitterSeed: .random(in: 0 ... .max))
        var lastTransaction: [UInt8] = []
        while true {
            var hasCommitted = false
            do {
                return try await attempt(database, &lastTransaction, &hasCommitted, body)
            } catch let error as RequestError {
                let decision = retry.failed(error.code, error.message, isOfCommit: hasCommitted)
                guard case .retry(let wait) = decision else { throw error }
                if wait > 0 { try await Task.sleep(for: .nanoseconds(Int64(clamping: wait))) }
            }
        }
    }

    /// - Parameter hasCommitted: set once the commit was asked for.
    nonisolated(nonsending) private func attempt<Result>(
        _ database: DatabaseName, _ lastTransaction: inout [UInt8], _ hasCommitted: inout Bool,
        _ body: nonisolated(nonsending) (inout ClientTransaction) async throws -> Result
    ) async throws -> Result {
        var id: [UInt8] = []
        if !lastTransaction.isEmpty {
            id = try await beginTransaction(
                database: database,
                options: .readWrite(retryTransaction: lastTransaction, concurrency: .unspecified))
            lastTransaction = id
        }
        var transaction = ClientTransaction(client: self, database: database, id: id)
        let result: Result
        do {
            result = try await body(&transaction)
        } catch {
            if !transaction.id.isEmpty {
                lastTransaction = transaction.id
                rollback(database: database, transaction: transaction.id, options: .standard) { _ in }
            }
            throw error
        }
        if !transaction.id.isEmpty { lastTransaction = transaction.id }
        if !transaction.id.isEmpty || !transaction.writes.isEmpty {
            hasCommitted = true
            try await commit(transaction.writes, transaction: transaction.id)
        }
        return result
    }
}
