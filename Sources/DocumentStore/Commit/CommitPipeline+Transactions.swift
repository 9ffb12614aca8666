// The end of a transaction: whether what it read still stands, and what is remembered of one that was aborted.

internal import Basics
internal import DocumentModel
internal import Storage

extension CommitPipeline {
    /// Ends the request's transaction, whatever comes of the commit, and makes sure that what it read still stands.
    func endTransaction(of request: borrowing CommitRequest) throws(RequestError) {
        guard let identifier = request.transaction else { return }
        guard let transaction = transactions.end(identifier), transaction.database == request.writes.database else {
            // A repetition of a commit that was aborted, its answer lost: the answer is the same.
            if let attempt = transactions.abortedAttempt(identifier), attempt.request != nil,
                attempt.request == request.identifier
            {
                throw .contention
            }
            if identifier.isReadOnly, transactions.isForeign(identifier) {
                if request.writes.isEmpty { return }
                throw .readOnlyTransaction
            }
            throw transactions.absence(of: identifier)
        }
        if transaction.heldWrites.count != request.heldLists {
            // A pipeline has written in the transaction while its commit waited, and has had its answer.
            noteAborted(transaction, ReadValidation.Conflicts(), request: request.identifier)
            throw .contention
        }
        if request.writes.isEmpty && transaction.hasReadOneSnapshot { return }
        if transaction.isReadOnly {
            throw .readOnlyTransaction
        }
        guard let since = transaction.firstReadMicroseconds, stage.lastVersion.microseconds > since else { return }
        let conflicts = try validation.conflicts(of: transaction, changes: stage.draft.changes)
        if conflicts.isEmpty { return }
        noteAborted(transaction, conflicts, request: request.identifier)
        throw .contention
    }

    /// Remembers an aborted attempt with the keys at which its retry waits for a turn.
    ///
    /// - Parameter winners: the transactions that a retry waits for, because they won a deadlock.
    func noteAborted(
        _ transaction: StoreTransaction, _ conflicts: ReadValidation.Conflicts, winners: [UInt64] = [],
        request: RequestIdentifier?
    ) {
        var conflicts = conflicts
        for key in transaction.earlierConflicts { conflicts.add(key) }
        transactions.noteAborted(transaction, conflicts: conflicts.keys, winners: winners, request: request)
        counters.transactionsAborted.add(1, ordering: .relaxed)
    }

    /// Whether an open transaction can only be aborted; false where finding out takes more steps than are left.
    func isDoomed(_ number: UInt64, steps: inout Int) -> Bool {
        guard let transaction = transactions.open(number: number),
            let since = transaction.firstReadMicroseconds, stage.lastVersion.microseconds > since
        else { return false }
        return validation.isDoomed(transaction, changes: stage.draft.changes, steps: &steps)
    }
}

extension RequestError {
    fileprivate static let readOnlyTransaction = RequestError(
        .invalidArgument, "Cannot modify entities in a read-only transaction.")

    /// The commit's transaction read something that has changed since. The client begins again, naming this attempt.
    static let contention = RequestError(
        .aborted, "Too much contention on these documents. Please try again.")

    /// The writer has sent the commit after another one, which was not applied. It sends both again.
    static let outOfOrder = RequestError(
        .aborted, "An earlier write of this client was not applied. Please try again.")
}
