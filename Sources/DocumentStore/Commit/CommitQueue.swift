// The queue before the commit thread: bounded in number and bytes, taken over whole by the one consumer.

internal import Basics
internal import DocumentModel
internal import Glibc

/// What the commit thread is asked to do.
enum QueuedRequest: Sendable {
    /// Writes that apply all or none.
    case commit(CommitRequest, @Sendable (Result<CommitResult, RequestError>) -> Void)
    /// Writes that apply each by itself.
    case batch(CommitRequest, @Sendable (Result<BatchWriteResult, RequestError>) -> Void)
    /// A transaction that waits for its turn.
    case begin(BeginRequest)
    /// Documents that a pessimistic transaction reads.
    case lock(LockRequest)
    /// The declared indexes that a database is to have.
    case declare(IndexDeclaration, in: DatabaseName, @Sendable (Result<Void, RequestError>) -> Void)
    /// The transaction of this number has ended without a commit.
    case release(UInt64)

    /// Memory that the request holds, roughly.
    var byteCount: Int {
        switch self {
        case .commit(let request, _), .batch(let request, _):
            request.writes.bytes.count + request.writes.count * MemoryLayout<Write>.stride + 256
        case .lock(let request): 256 + request.keys.count * MemoryLayout<UInt64>.stride
        case .declare(let wanted, _, _): 256 + (wanted.indexes.count + wanted.fieldOverrides.count) * 1_024
        case .begin, .release: 256
        }
    }

    /// Answers a request that was never looked at.
    func refuse(_ error: RequestError) {
        switch self {
        case .commit(_, let completion): completion(.failure(error))
        case .batch(_, let completion): completion(.failure(error))
        case .begin(let begin): begin.completion(.failure(error))
        case .lock(let read): read.completion(.failure(error))
        case .declare(_, _, let completion): completion(.failure(error))
        case .release: break
        }
    }
}

/// A retried transaction, to be begun when it has its leases.
struct BeginRequest: Sendable {
    var identifier: TransactionIdentifier
    var database: DatabaseName
    var kind: Transaction.Kind
    var retried: AbortedAttempt
    var account: TransactionAccount?
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
    /// Told when everything that was decided before the lock is visible.
    var completion: @Sendable (Result<Void, RequestError>) -> Void
}

/// A queue with many producers and one consumer.
///
/// While the consumer waits, a producer may claim its place and do its work for one request: that saves a lone client
/// two switches of threads. At any time one thread at most works: the consumer, or the one that has claimed its
/// place.
///
/// `@unchecked`: the state is only touched with the mutex held; the mutex and the condition have the address of their
/// own allocation for as long as the queue lives.
@safe final class CommitQueue: @unchecked Sendable {
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private let condition: UnsafeMutablePointer<pthread_cond_t>

    private var requests: [QueuedRequest] = []
    private var bytes = 0
    private var isNudged = false
    private var isClosed = false
    private var consumerWaits = false
    /// A producer does the consumer's work.
    private var isClaimed = false

    private let requestsMaximum: Int
    private let bytesMaximum: Int

    init(requestsMaximum: Int, bytesMaximum: Int) {
        self.requestsMaximum = requestsMaximum
        self.bytesMaximum = bytesMaximum
        unsafe mutex = .allocate(capacity: 1)
        unsafe condition = .allocate(capacity: 1)
        unsafe pthread_mutex_init(mutex, nil)
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(condition, &attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(condition)
        unsafe pthread_mutex_destroy(mutex)
        unsafe condition.deallocate()
        unsafe mutex.deallocate()
    }

    private func withLock<Answer>(_ body: () -> Answer) -> Answer {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        return body()
    }

    /// Requests and bytes that wait now.
    var load: (requests: Int, bytes: Int) { withLock { (requests.count, bytes) } }

    var isEmpty: Bool { withLock { requests.isEmpty } }

    /// Adds a request.
    /// - Returns: why it was not taken; the caller answers it then.
    func submit(_ request: QueuedRequest) -> RequestError? {
        let size = request.byteCount
        return withLock {
            if isClosed { return .shuttingDown }
            if requests.count >= requestsMaximum || (bytes + size > bytesMaximum && !requests.isEmpty) {
                return RequestError(.resourceExhausted, "Too many commits are waiting; try again later.")
            }
            requests.append(request)
            bytes += size
            wakeConsumer()
            return nil
        }
    }

    /// Adds what must not be refused and takes no room worth counting.
    func submitRelease(_ number: UInt64) {
        withLock {
            requests.append(.release(number))
            wakeConsumer()
        }
    }

    /// Wakes the consumer although there is no request: a sync has ended, or a clock was stepped.
    func nudge() {
        withLock {
            isNudged = true
            wakeConsumer()
        }
    }

    /// Refuses further requests. What is queued is still taken.
    func close() {
        withLock {
            isClosed = true
            wakeConsumer()
        }
    }

    /// Gives the caller the consumer's place until ``release()``, if the consumer waits and nothing is queued before
    /// it.
    func claim() -> Bool {
        withLock {
            guard consumerWaits, requests.isEmpty, !isNudged, !isClosed, !isClaimed else { return false }
            isClaimed = true
            return true
        }
    }

    /// Gives the place back.
    func release() {
        withLock {
            isClaimed = false
            if !requests.isEmpty || isNudged || isClosed { wakeConsumer() }
        }
    }

    private func wakeConsumer() {
        if consumerWaits, !isClaimed { unsafe pthread_cond_signal(condition) }
    }

    /// Takes everything queued, in order; waits for something to come, for a nudge or for the end of the time.
    ///
    /// - Parameter taken: empty; its memory becomes the queue's.
    /// - Returns: false when the queue is closed and was empty.
    func take(into taken: inout [QueuedRequest], waitMilliseconds: Int) -> Bool {
        unsafe pthread_mutex_lock(mutex)
        defer { unsafe pthread_mutex_unlock(mutex) }
        if requests.isEmpty, !isNudged, !isClosed, waitMilliseconds > 0 {
            var deadline = Self.time(afterMilliseconds: waitMilliseconds)
            consumerWaits = true
            while isClaimed || (requests.isEmpty && !isNudged && !isClosed) {
                guard unsafe pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT else { continue }
                if !isClaimed { break }
                deadline = Self.time(afterMilliseconds: waitMilliseconds)
            }
            consumerWaits = false
        }
        isNudged = false
        swap(&requests, &taken)
        bytes = 0
        return !(isClosed && taken.isEmpty)
    }

    private static func time(afterMilliseconds milliseconds: Int) -> timespec {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        time.tv_nsec += (milliseconds % 1_000) * 1_000_000
        time.tv_sec += milliseconds / 1_000 + time.tv_nsec / 1_000_000_000
        time.tv_nsec %= 1_000_000_000
        return time
    }
}
