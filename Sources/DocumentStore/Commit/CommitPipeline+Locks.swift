// Requests that wait for locks and turns: parking them, continuing them, and ending locks and turns that last too long.

internal import Basics
internal import DocumentModel
internal import Storage

extension CommitPipeline {
    /// Time between two looks at who holds what for too long, while anything is held, in milliseconds.
    static let lockCheckMilliseconds: UInt64 = 50
    /// Documents and changes examined to find transactions that hold others up and can only be aborted.
    private static let doomedSteps = 10_000
    /// Transactions and requests examined in a look that is not followed by a longer pause: the looks at more of them
    /// take no larger share of the time.
    private static let looksPerCheck: UInt64 = 10_000

    /// Does what a request asks for, or parks it.
    func process(_ request: QueuedRequest) {
        process(request, sinceMilliseconds: locks.isEmpty ? 0 : configuration.clock.elapsedMilliseconds)
    }

    /// - Parameter sinceMilliseconds: when the request came; not used while nothing is held.
    private func process(_ request: QueuedRequest, sinceMilliseconds: UInt64) {
        let isBlocked = locks.parkIfBlocked(
            request, sinceMilliseconds: sinceMilliseconds, database: { databases.number(of: $0) })
        if !isBlocked { perform(request) }
    }

    /// Continues the requests whose blocking lock or turn ended: first the parked commits, then the next in the queue.
    func settleLocks() {
        if locks.isSettled { return }
        while true {
            if let released = locks.nextReleased() {
                switch released.outcome {
                case .again: process(released.request, sinceMilliseconds: released.sinceMilliseconds)
                case .unconditional: perform(released.request)
                case .aborted(let keys, let winners): abort(released.request, conflicts: keys, winners: winners)
                }
            } else if !locks.grantNext(
                nowMilliseconds: configuration.clock.elapsedMilliseconds, { replies.append(.begin($0)) })
            {
                return
            }
        }
    }

    /// Ends a transaction whose commit was part of a deadlock, or waited for too long.
    private func abort(_ request: QueuedRequest, conflicts: [UInt64], winners: [UInt64]) {
        guard case .commit(let commit) = request, let identifier = commit.request.transaction else { return }
        if let transaction = transactions.end(identifier) {
            var keys = ReadValidation.Conflicts()
            for key in conflicts { keys.add(key) }
            noteAborted(transaction, keys, winners: winners, request: commit.request.identifier)
        } else {
            counters.transactionsAborted.add(1, ordering: .relaxed)
        }
        replies.append(.commit(PendingResult(.failure(.contention)), commit.completion))
    }

    /// Ends what has been held or waited for too long.
    func endExpiredLocks() {
        if locks.isEmpty { return }
        let now = configuration.clock.elapsedMilliseconds
        if now < nextLockCheckMilliseconds { return }
        var steps = CommitPipeline.doomedSteps
        let looks = locks.endExpired(
            nowMilliseconds: now, lastUsed: { transactions.lastUsedMilliseconds(number: $0) },
            began: { transactions.open(number: $0)?.beganMilliseconds },
            isDoomed: { isDoomed($0, steps: &steps) }, start: { replies.append(.begin($0)) })
        let pauses = 1 + UInt64(looks) / CommitPipeline.looksPerCheck
        nextLockCheckMilliseconds = now + pauses * CommitPipeline.lockCheckMilliseconds
        settleLocks()
    }
}
