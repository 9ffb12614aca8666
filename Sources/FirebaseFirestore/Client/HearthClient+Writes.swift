// Commits, batches of independent writes, and transactions as the server knows them.

package import Basics
package import DocumentModel
package import FirestoreMessages
import Transport

extension HearthClient {
    /// Commits the writes in a request of `CommitWrites.request`.
    ///
    /// - Parameter completion: called on the loop's thread with the bytes of the `CommitResponse`.
    func commit(
        _ request: [UInt8], options: HearthClient.CallOptions,
        completion: @escaping @Sendable (Result<[UInt8], RequestError>) -> Void
    ) {
        call(.commit, request, kind: .commit, options: options, completion: completion)
    }

    /// Commits after all earlier ordered commits of this client, however long the server cannot be reached.
    ///
    /// - Parameter ticket: the identifier of the request, which its owner gives back to `numbers`.
    func commitInOrder(
        _ request: [UInt8], ticket: CommitSequence.Ticket, of numbers: WriteNumbers,
        options: HearthClient.CallOptions = .standard,
        completion: @escaping @Sendable (Result<[UInt8], RequestError>) -> Void
    ) {
        let call = UnaryCall(
            .commit, request: request, kind: .queuedWrite, isOrdered: true, options: options, timeoutMilliseconds: nil,
            completion: completion)
        call.ticket = ticket
        call.numbers = numbers
        start(call)
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
            .commit, writes.request(transaction: transaction), kind: .commit, options: options)
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
    func beginTransaction(
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
    func rollback(
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
