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

    /// A commit of the same writer without which this one is refused: unless it was applied, or the writer has its
    /// answer. Nil for none. Its `oldestPending` does not count.
    package var predecessor: RequestIdentifier?

    /// How many lists of writes that the transaction holds are among the writes; the commit stands only if it holds no
    /// others at its turn.
    package var heldLists = 0
    /// What a judgement of the request rested on; the commit stands only if it is unchanged at its turn. Nil without a
    /// judgement.
    package var basis: CommitBasis?

    /// Why the request is refused unless it is a repetition of one that was committed before. Nil for one that is
    /// allowed.
    package var refusal: RequestError?

    /// How often indexes and overrides had been declared when the store decided on the request by itself; the request
    /// stands only if that is unchanged at its turn. Nil for a client's.
    var declarations: Int?

    package init(
        writes: WriteList, transaction: TransactionIdentifier? = nil, heldLists: Int = 0,
        identifier: RequestIdentifier? = nil, predecessor: RequestIdentifier? = nil, basis: CommitBasis? = nil,
        refusal: RequestError? = nil
    ) {
        self.writes = writes
        self.transaction = transaction
        self.heldLists = heldLists
        self.identifier = identifier
        self.predecessor = predecessor
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
    package typealias Outcome = Result<WriteResult, RequestError>

    /// Microseconds since 1970; the time of every write that was applied.
    package let commitMicroseconds: UInt64

    /// One result for each write, in order; that of a write that failed has no time.
    private var results: [WriteResult] = []

    /// Why writes failed, by their positions. Few do, so the results of a commit are the array above as it is.
    private var failures: [Int: RequestError] = [:]

    package init(commitMicroseconds: UInt64, outcomes: [Outcome] = []) {
        self.commitMicroseconds = commitMicroseconds
        for outcome in outcomes { append(outcome) }
    }

    /// How many writes there are.
    package var count: Int { results.count }

    /// One outcome for each write, in order.
    package var outcomes: [Outcome] { results.indices.map { self[$0] } }

    /// The outcome of the write at a position.
    package subscript(position: Int) -> Outcome {
        if let error = failures[position] { .failure(error) } else { .success(results[position]) }
    }

    /// Adds the outcome of the next write.
    package mutating func append(_ outcome: Outcome) {
        switch outcome {
        case .success(let result): results.append(result)
        case .failure(let error):
            failures[results.count] = error
            results.append(WriteResult(updateMicroseconds: nil))
        }
    }

    mutating func reserveCapacity(_ count: Int) { results.reserveCapacity(count) }

    /// Adds the results of writes that were applied together.
    mutating func append(contentsOf applied: [WriteResult]) { results += applied }

    /// The result of a commit, all of whose writes have succeeded; otherwise the first error.
    var asCommitResult: Result<CommitResult, RequestError> {
        if let first = failures.min(by: { $0.key < $1.key }) { return .failure(first.value) }
        return .success(CommitResult(commitMicroseconds: commitMicroseconds, writeResults: results))
    }
}
