// Commits, batches of independent writes, and transactions as the server knows them.

package import Basics
package import DocumentModel
package import FirestoreMessages

extension HearthClient {
    /// Commits the writes of a transaction, in a request of `CommitWrites.request`.
    ///
    /// - Parameter completion: called on the loop's thread with the bytes of the `CommitResponse`.
    package func commitTransaction(
        _ request: [UInt8], options: HearthClient.CallOptions,
        completion: @escaping @Sendable (Result<[UInt8], RequestError>) -> Void
    ) {
        call(.commit, request, kind: .transactionCommit, options: options, completion: completion)
    }

    /// A commit that keeps its place among the ordered commits of a client.
    package struct OrderedCommit: Sendable {
        let request: [UInt8]
        /// The identifier of the request, which its owner gives back.
        let ticket: CommitSequence.Ticket
        /// Whose write it is, empty for nobody's: it is sent with a token of this user alone. Nil for the first user of
        /// the client. It has no effect without a token provider.
        let user: String?
        /// Whether an earlier process has accepted the commit: it is not refused because too many others wait.
        let wasAccepted: Bool
        let cancellation: Cancellation?
        /// Called once, on the thread of ``HearthClient/orderedLoop``; on that of the caller if the commit is not sent.
        let completion: @Sendable (Result<[UInt8], RequestError>) -> Void

        package init(
            request: [UInt8], ticket: CommitSequence.Ticket, user: String? = nil, wasAccepted: Bool = false,
            cancellation: Cancellation?, completion: @escaping @Sendable (Result<[UInt8], RequestError>) -> Void
        ) {
            self.request = request
            self.ticket = ticket
            self.user = user
            self.wasAccepted = wasAccepted
            self.cancellation = cancellation
            self.completion = completion
        }
    }

    /// Commits in the order of the calls and of the array, however long the server cannot be reached.
    ///
    /// - Parameter numbers: what the tickets are of.
    package func commitInOrder(_ commits: [OrderedCommit], of numbers: WriteNumbers) {
        if commits.isEmpty { return }
        let calls = commits.map { commit in
            let call = UnaryCall(
                .commit, request: commit.request, kind: .queuedWrite, isOrdered: true,
                options: .standard.cancelled(by: commit.cancellation), timeoutMilliseconds: nil,
                completion: commit.completion)
            call.ticket = commit.ticket
            call.numbers = numbers
            call.owner = commit.user
            call.wasAccepted = commit.wasAccepted
            return call
        }
        startInOrder(calls)
    }

    /// Commits writes atomically. If the reply is lost, the commit is sent again and applied once.
    ///
    /// - Parameter transaction: the transaction that the commit ends; empty for none.
    /// - Throws: DEADLINE_EXCEEDED and CANCELLED leave open whether the commit was applied; other codes mean that it
    ///   was not.
    @discardableResult
    nonisolated(nonsending) package func commit(
        _ writes: CommitWrites, transaction: [UInt8] = [], options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) -> CommitResponse {
        let bytes = try await call(
            .commit, writes.request(transaction: transaction),
            kind: transaction.isEmpty ? .commit : .transactionCommit, options: options)
        return try Self.decode { try CommitResponse(wire: bytes.span.bytes) }.get()
    }

    /// Applies writes that succeed or fail independently. It is not sent again if the reply is lost.
    nonisolated(nonsending) package func batchWrite(
        _ writes: CommitWrites, options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) -> BatchWriteResponse {
        let bytes = try await call(.batchWrite, writes.request(), kind: .once, options: options)
        return try Self.decode { try BatchWriteResponse(wire: bytes.span.bytes) }.get()
    }

    /// Begins a read-write transaction.
    ///
    /// - Parameters:
    ///   - retrying: the id of the attempt before, which gives this one priority; empty for none.
    ///   - completion: called on the loop's thread with the new transaction's id.
    package func beginTransaction(
        database: DatabaseName, retrying: [UInt8], options: HearthClient.CallOptions,
        completion: @escaping @Sendable (Result<[UInt8], RequestError>) -> Void
    ) {
        let request = BeginTransactionRequest(
            database: database.description,
            options: .readWrite(retryTransaction: retrying, concurrency: .unspecified))
        call(.beginTransaction, request.encodedBytes(), kind: .repeatable, options: options) { result in
            completion(
                result.flatMap { bytes in
                    Self.decode { try BeginTransactionResponse(wire: bytes.span.bytes).transaction }
                })
        }
    }

    /// Begins a transaction.
    nonisolated(nonsending) package func beginTransaction(
        database: DatabaseName, options transaction: DocumentModel.TransactionOptions = .readWrite,
        options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) -> [UInt8] {
        let request = BeginTransactionRequest(database: database.description, options: transaction)
        let bytes = try await call(
            .beginTransaction, request.encodedBytes(), kind: .repeatable, options: options)
        return try Self.decode { try BeginTransactionResponse(wire: bytes.span.bytes).transaction }.get()
    }

    /// Ends a transaction without writing.
    package func rollback(
        database: DatabaseName, transaction: [UInt8], options: HearthClient.CallOptions,
        completion: @escaping @Sendable (Result<[UInt8], RequestError>) -> Void
    ) {
        let request = RollbackRequest(database: database.description, transaction: transaction)
        call(.rollback, request.encodedBytes(), kind: .repeatable, options: options, completion: completion)
    }

    /// Ends a transaction without writing.
    nonisolated(nonsending) package func rollback(
        database: DatabaseName, transaction: [UInt8], options: HearthClient.CallOptions = .standard
    ) async throws(RequestError) {
        let request = RollbackRequest(database: database.description, transaction: transaction)
        _ = try await call(.rollback, request.encodedBytes(), kind: .repeatable, options: options)
    }
}
