// The queue before the commit thread: bounded in number and bytes, taken over whole by the one consumer.

internal import Basics
internal import DocumentModel
internal import Indexing

/// What the commit thread is asked to do.
enum QueuedRequest: Sendable {
    case commit(QueuedCommit)
    case batch(QueuedBatch)
    /// A transaction that waits for its turn.
    case begin(BeginRequest)
    /// Documents that a pessimistic transaction reads.
    case lock(LockRequest)
    /// A change of the indexes that a database declares.
    case declare(DeclarationChange, in: DatabaseName, @Sendable (Result<Void, RequestError>) -> Void)
    /// A change of a database itself.
    case changeDatabase(DatabaseChange, DatabaseName, @Sendable (Result<Void, RequestError>) -> Void)
    /// The transaction of this number has ended without a commit.
    case release(UInt64)
    /// A step of the move of a database.
    case move(MoveStep, @Sendable (Result<DatabaseTenure, RequestError>) -> Void)
    /// The remembered results of the database of this number.
    case collectResults(UInt32, @Sendable (Result<[RememberedResult], RequestError>) -> Void)
    /// Records of the leader.
    case follow(FollowedRecords, @Sendable (Result<Void, RequestError>) -> Void)
    /// Another server takes the writes from now on: the one of this number.
    case stepDown(UInt64, @Sendable (Result<Void, RequestError>) -> Void)

    /// Whether the request ends with a commit to the log.
    var needsLog: Bool {
        switch self {
        case .commit, .batch, .declare, .changeDatabase, .move, .stepDown: true
        case .begin, .lock, .release, .follow, .collectResults: false
        }
    }

    /// Memory that the request holds, roughly.
    var byteCount: Int {
        switch self {
        case .commit(let commit): commit.byteCount
        case .batch(let batch): batch.byteCount
        case .lock(let request): 256 + request.keys.count * MemoryLayout<UInt64>.stride
        case .declare(let change, _, _): 256 + change.byteCount
        case .follow(let records, _): 256 + records.bytes.count
        case .move(let step, _): 256 + step.byteCount
        case .begin, .release, .collectResults, .stepDown: 256
        case .changeDatabase: 1_024
        }
    }

    /// Answers a request that was never looked at.
    func refuse(_ error: RequestError) {
        switch self {
        case .commit(let commit): commit.completion(.failure(error))
        case .batch(let batch): batch.completion(.failure(error))
        case .begin(let begin): begin.completion(.failure(error))
        case .lock(let read): read.completion(.failure(error))
        case .declare(_, _, let completion): completion(.failure(error))
        case .changeDatabase(_, _, let completion): completion(.failure(error))
        case .move(_, let completion): completion(.failure(error))
        case .collectResults(_, let completion): completion(.failure(error))
        case .follow(_, let completion), .stepDown(_, let completion): completion(.failure(error))
        case .release: break
        }
    }
}

/// Writes, and who wants to know what has become of them. Objects, because a request is passed on several times, and
/// copying all that it consists of costs more than an allocation. Two classes, since a closure in a generic one is
/// wrapped in another one each time it is taken out.
class QueuedWrites: @unchecked Sendable {
    // Sendable: never changed.
    let request: CommitRequest

    fileprivate init(_ request: consuming CommitRequest) { self.request = request }

    /// Memory that the request holds, roughly.
    var byteCount: Int {
        request.writes.bytes.count + request.writes.count * MemoryLayout<Write>.stride + 256
            + (request.basis?.byteCount ?? 0)
    }
}

/// Writes that apply all or none.
final class QueuedCommit: QueuedWrites, @unchecked Sendable {
    let completion: @Sendable (Result<CommitResult, RequestError>) -> Void

    init(
        _ request: consuming CommitRequest,
        _ completion: @escaping @Sendable (Result<CommitResult, RequestError>) -> Void
    ) {
        self.completion = completion
        super.init(request)
    }
}

/// Writes that apply each by itself.
final class QueuedBatch: QueuedWrites, @unchecked Sendable {
    let completion: @Sendable (Result<BatchWriteResult, RequestError>) -> Void

    init(
        _ request: consuming CommitRequest,
        _ completion: @escaping @Sendable (Result<BatchWriteResult, RequestError>) -> Void
    ) {
        self.completion = completion
        super.init(request)
    }
}

/// A retried transaction, to be begun when its turn comes.
struct BeginRequest: Sendable {
    var identifier: TransactionIdentifier
    var database: DatabaseName
    var kind: StoreTransaction.Kind
    var retried: AbortedAttempt
    var account: TransactionAccount?
    /// To the number of a database that is not stored.
    var claim: DatabaseClaim?
    var completion: @Sendable (Result<TransactionIdentifier, RequestError>) -> Void
}

/// Share locks that a transaction wants.
struct LockRequest: Sendable {
    /// The transaction's number.
    var ticket: UInt64
    /// The number of its first attempt.
    var age: UInt64
    /// Hashes of document keys; none at all just waits for what is staged to become visible.
    var keys: [UInt64]
    /// The documents are yet to be read, so the reader may wait for a commit to them.
    var mayWait: Bool
    /// Called when everything that was decided before the lock is visible.
    var completion: @Sendable (Result<Void, RequestError>) -> Void
}

/// A queue with many producers and one consumer. Thread-safe.
///
/// While the consumer waits, a producer may claim its place and do its work for one request: that saves a lone client
/// two switches of threads. At any time one thread at most works: the consumer, or the one that has claimed its
/// place.
final class CommitQueue: Sendable {
    private struct State {
        var requests: [QueuedRequest] = []
        /// All that were ever added, and those of them before ``CommitQueue/mark()``.
        var added = 0
        var marked = 0
        var bytes = 0
        var isWoken = false
        var isClosed = false
        var consumerWaits = false
        /// A producer does the consumer's work.
        var isClaimed = false
        /// Requests that the consumer waits for.
        var wanted = 1

        var isIdle: Bool { requests.isEmpty && !isWoken && !isClosed }
        var hasWork: Bool {
            requests.count >= wanted || isWoken || isClosed || wanted > 1 && bytes >= CommitQueue.bytesAtOnce
        }
        /// Whether the consumer must be woken to see a change.
        var consumerMustWake: Bool { consumerWaits && !isClaimed }

        mutating func add(_ request: QueuedRequest) {
            requests.append(request)
            added += 1
        }

        mutating func take(into taken: inout [QueuedRequest]) -> Bool {
            consumerWaits = false
            wanted = 1
            isWoken = false
            swap(&requests, &taken)
            bytes = 0
            return !(isClosed && taken.isEmpty)
        }
    }

    /// Bytes that are taken although more requests are waited for.
    private static let bytesAtOnce = 1 << 20

    private let state = Monitor(State())
    private let requestsMax: Int
    private let bytesMax: Int

    init(requestsMax: Int, bytesMax: Int) {
        self.requestsMax = requestsMax
        self.bytesMax = bytesMax
    }

    /// Requests and bytes that wait now.
    var load: (requests: Int, bytes: Int) { state.withLock { ($0.requests.count, $0.bytes) } }

    /// Requests that the consumer has ever taken.
    var takenCount: Int { state.withLock { $0.added - $0.requests.count } }

    /// Requests that were added before the last mark.
    var markedCount: Int { state.withLock { $0.marked } }

    /// Notes how many requests were added so far.
    func mark() { state.withLock { $0.marked = $0.added } }

    /// Adds a request.
    /// - Returns: why it was not taken; the caller answers it then.
    func submit(_ request: QueuedRequest) -> RequestError? {
        let size = request.byteCount
        let (refusal, wakes) = state.withLock { state -> (RequestError?, Bool) in
            if state.isClosed { return (.shuttingDown, false) }
            if state.requests.count >= requestsMax
                || (state.bytes + size > bytesMax && !state.requests.isEmpty)
            {
                return (
                    RequestError(.resourceExhausted, "Too many commits are waiting; try again later."), false
                )
            }
            state.add(request)
            state.bytes += size
            return (nil, state.consumerMustWake && state.hasWork)
        }
        if wakes { state.wakeOne() }
        return refusal
    }

    /// Adds what must not be refused and takes no room worth counting.
    func submitRelease(_ number: UInt64) {
        change { $0.add(.release(number)) }
    }

    /// Wakes the consumer although there is no request: a sync has ended, or a clock was stepped.
    func wake() {
        change { $0.isWoken = true }
    }

    /// Refuses further requests. What is queued is still taken.
    func close() {
        change { $0.isClosed = true }
    }

    /// Gives the caller the consumer's place until ``release()``, if the consumer waits and nothing is queued before
    /// it.
    func claim() -> Bool {
        state.withLock { state in
            guard state.consumerWaits, state.isIdle, !state.isClaimed else { return false }
            state.isClaimed = true
            return true
        }
    }

    /// Gives the place back.
    func release() {
        change { $0.isClaimed = false }
    }

    /// Changes the state, and wakes the consumer if it waits and has work then.
    private func change(_ body: (inout State) -> Void) {
        let wakes = state.withLock { state in
            body(&state)
            return state.consumerMustWake && state.hasWork
        }
        if wakes { state.wakeOne() }
    }

    /// Takes everything queued, in order; waits for something to come, for a wake-up or for the end of the time.
    ///
    /// - Parameters:
    ///   - taken: empty; its memory becomes the queue's.
    ///   - wanted: so many requests are waited for, or ``bytesAtOnce`` bytes.
    /// - Returns: false when the queue is closed and was empty.
    func take(into taken: inout [QueuedRequest], waitMilliseconds: Int, atLeast wanted: Int = 1) -> Bool {
        if waitMilliseconds <= 0 { return state.withLock { $0.take(into: &taken) } }
        return take(into: &taken, waitNanoseconds: UInt64(waitMilliseconds) * 1_000_000, atLeast: wanted)
    }

    /// The same.
    func take(into taken: inout [QueuedRequest], waitNanoseconds: UInt64, atLeast wanted: Int = 1) -> Bool {
        while true {
            let deadline = SystemClock.monotonicNanoseconds() + waitNanoseconds
            let isOpen = state.wait(untilNanoseconds: deadline) { state -> Bool? in
                state.consumerWaits = true
                state.wanted = wanted
                return state.hasWork && !state.isClaimed ? state.take(into: &taken) : nil
            }
            // The time is over. A claim that lasts is waited for, because the one who made it does this thread's work.
            if let isOpen = isOpen ?? state.withLock({ $0.isClaimed ? nil : $0.take(into: &taken) }) { return isOpen }
        }
    }
}
