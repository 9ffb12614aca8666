// What a commit asks for, and its result.

package import Basics
package import DocumentModel

/// A list of writes to apply, all or nothing.
///
/// What needs no stored state has been checked when the `WriteList` was read, on the thread
/// of the connection; the commit thread only compares, copies and stages.
package struct CommitRequest: Sendable {
    /// The writes and the database they belong to. May be empty: such a commit succeeds and gets a commit time.
    package var writes: WriteList

    /// The transaction to end with this commit; nil for one without.
    package var transaction: TransactionIdentifier?

    /// By what a repetition of this request is known, so that it applies once; nil when the client sends none.
    package var identifier: RequestIdentifier?

    /// What a judgement of the request rested on; the commit stands only if it is unchanged at its turn. Nil without a
    /// judgement.
    package var basis: CommitBasis?

    /// Why the request is refused unless it is a repetition of one that was committed before. Nil for one that is
    /// allowed.
    package var refusal: RequestError?

    package init(
        writes: WriteList, transaction: TransactionIdentifier? = nil, identifier: RequestIdentifier? = nil,
        basis: CommitBasis? = nil, refusal: RequestError? = nil
    ) {
        self.writes = writes
        self.transaction = transaction
        self.identifier = identifier
        self.basis = basis
        self.refusal = refusal
    }
}

/// The answer to a commit that was applied: it is durable and visible to every read from now on.
package struct CommitResult: Sendable, Equatable {
    /// Microseconds since 1970, above those of every commit before and every read time handed out before.
    package var commitMicroseconds: UInt64

    /// One result for each write, in order.
    package var writeResults: [WriteResult]

    package init(commitMicroseconds: UInt64, writeResults: [WriteResult]) {
        self.commitMicroseconds = commitMicroseconds
        self.writeResults = writeResults
    }
}

/// The answer to a batch of independent writes: each has its own outcome.
package struct BatchWriteResult: Sendable {
    /// Microseconds since 1970; the time of every write that was applied.
    package var commitMicroseconds: UInt64

    /// One outcome for each write, in order.
    package var outcomes: [Result<WriteResult, RequestError>]

    package init(commitMicroseconds: UInt64, outcomes: [Result<WriteResult, RequestError>]) {
        self.commitMicroseconds = commitMicroseconds
        self.outcomes = outcomes
    }
}

extension BatchWriteResult {
    /// The result of a commit, all of whose writes have succeeded; otherwise the first error.
    var asCommitResult: Result<CommitResult, RequestError> {
        var results: [WriteResult] = []
        results.reserveCapacity(outcomes.count)
        for outcome in outcomes {
            switch outcome {
            case .success(let result): results.append(result)
            case .failure(let error): return .failure(error)
            }
        }
        return .success(CommitResult(commitMicroseconds: commitMicroseconds, writeResults: results))
    }
}
