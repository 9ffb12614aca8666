// Waits at contended documents: commits that wait for turns and share locks, reads that wait for such commits,
// and transactions that wait for their turn.
//
//     commit W to x      waits for   the transaction whose turn it is at x, and every holder of a share lock on x
//     first read of x    waits for   the transaction whose turn it is at x, and the commits to x that wait already
//     retried begin      waits for   its turn in the queues of its keys (RetryTurns)
//
// A first read is one of a transaction that holds nothing yet: nobody can wait for it. Holders may wait for each
// other through their commits, which is a deadlock: T and U have both read x, and both commit a change of it. The
// deadlock is found when the commit that closes the cycle arrives. Its youngest transaction is aborted; age is that of
// the first attempt, so a retry wins in the end. A request that has waited too long is aborted or continues, and a
// transaction that has stood in its way all the time loses what it holds; so does one that can only be aborted
// (docs/transactions.md).
//
// `RetryTurns` and `ShareLocks` know keys and holders; this knows their requests. Correctness does not depend on them:
// every commit is validated, so a request that continues too early costs an abort and never a wrong result.

internal import Basics
internal import DocumentModel
internal import StoreFormat

/// Parked requests and waiting begins. Belongs to the commit thread.
struct LockManager: ~Copyable {
    private typealias Ticket = RetryTurns.Ticket
    private typealias Key = RetryTurns.Key
    private typealias Arrival = UInt64

    /// What a parked request waits for the end of.
    private enum Blocker: Hashable {
        /// A transaction.
        case ticket(Ticket)
        /// A parked commit that came before.
        case commit(Arrival)
    }

    private struct Parked {
        let request: QueuedRequest
        /// The transaction that it belongs to, if any.
        let ticket: Ticket?
        /// The documents that it writes; empty for reads.
        let writes: [Key]
        /// When it came, in elapsed milliseconds; it may have continued and been parked again since.
        let sinceMilliseconds: UInt64
        var blockers: Set<Blocker>
    }

    private var turns: RetryTurns
    private var locks: ShareLocks
    /// Ages of the transactions that hold something.
    private var ages: [Ticket: UInt64] = [:]

    private var parked: [Arrival: Parked] = [:]
    private var parkedBytes = 0
    private var nextArrival: Arrival = 0
    /// Who waits for a blocker, in order of arrival.
    private var waiters: [Blocker: [Arrival]] = [:]
    /// Parked commits that write a key, in order of arrival.
    private var writers: [Key: [Arrival]] = [:]
    /// The parked commits of transactions.
    private var commits: [Ticket: Arrival] = [:]

    private var begins: [RetryTurns.Ticket: BeginRequest] = [:]
    /// Requests without a blocker, from `releasedStart` on.
    private var released: [Released] = []
    private var releasedStart = 0
    /// Keys whose turn has ended.
    private var freed: [RetryTurns.Key] = []
    private var key = ByteBuffer(capacity: KeyLayout.keyBytesMax)

    private let parkedMax: Int
    private let parkedBytesMax: Int
    private let lockWaitMilliseconds: UInt64
    private let lockIdleMilliseconds: UInt64

    init(configuration: StoreConfiguration) {
        turns = RetryTurns(
            idleMilliseconds: configuration.turnIdleMilliseconds,
            holdMilliseconds: configuration.turnMilliseconds,
            waitMilliseconds: configuration.turnWaitMilliseconds)
        locks = ShareLocks(maximum: configuration.shareLocksMax)
        parkedMax = configuration.parkedCommitsMax
        parkedBytesMax = configuration.queuedBytesMax
        lockWaitMilliseconds = configuration.lockWaitMilliseconds
        lockIdleMilliseconds = configuration.lockIdleMilliseconds
    }

    /// A request that is no longer parked.
    struct Released {
        let request: QueuedRequest
        let outcome: Outcome
        /// When the request came, in elapsed milliseconds.
        let sinceMilliseconds: UInt64

        enum Outcome {
            /// Checked again: it may have a new blocker.
            case again
            /// It has waited for the maximum time and continues.
            case unconditional
            /// A transaction's commit, which is aborted. Its retry waits for a turn at the keys, after the winners.
            case aborted(keys: [UInt64], winners: [UInt64])
        }
    }

    /// No transaction holds a lock or turn, and no request waits.
    var isEmpty: Bool { turns.isEmpty && locks.isEmpty && parked.isEmpty }

    /// No lock or turn has ended since the last notification.
    var isSettled: Bool { freed.isEmpty && releasedStart == released.count }

    /// Requests parked now.
    var count: Int { parked.count }

    /// Memory of the locks and of the parked requests, in bytes, about.
    var byteCount: Int { locks.count * StoreConfiguration.shareLockBytes + parkedBytes }

    // MARK: Arriving requests

    /// Parks a commit that writes what another holds, or a first read of what is about to be written.
    ///
    /// - Parameters:
    ///   - sinceMilliseconds: when the request came.
    ///   - database: finds a database's number; one without a number has no documents to hold.
    mutating func parkIfBlocked(
        _ request: QueuedRequest, sinceMilliseconds: UInt64, database: (DatabaseName) -> UInt32?
    ) -> Bool {
        if turns.isEmpty && locks.isEmpty { return false }
        if parked.count >= parkedMax || parkedBytes >= parkedBytesMax { return false }
        switch request {
        case .commit(let commit): return park(request, of: commit.request, sinceMilliseconds, database)
        case .batch(let batch): return park(request, of: batch.request, sinceMilliseconds, database)
        case .lock(let read):
            if !read.mayWait || locks.holds(read.ticket) || turns.isHolder(read.ticket) { return false }
            var blockers: Set<Blocker> = []
            for key in read.keys {
                if let holder = turns.holder(of: key) { blockers.insert(.ticket(holder)) }
                for arrival in writers[key] ?? [] { blockers.insert(.commit(arrival)) }
            }
            if blockers.isEmpty { return false }
            park(request, read.ticket, writes: [], blockers, sinceMilliseconds)
            return true
        case .begin(let begin):
            // While a winner waits to commit, a retry would hold it up again, and lose again.
            let winners = begin.retried.winners.filter { isActive($0) }
            if winners.isEmpty { return false }
            park(request, nil, writes: [], Set(winners.map(Blocker.ticket)), sinceMilliseconds)
            return true
        case .release, .declare, .changeDatabase, .move, .collectResults, .follow, .stepDown: return false
        }
    }

    /// Parks a commit if another holds what it writes.
    private mutating func park(
        _ request: QueuedRequest, of commit: CommitRequest, _ sinceMilliseconds: UInt64,
        _ database: (DatabaseName) -> UInt32?
    ) -> Bool {
        guard let number = database(commit.writes.database) else { return false }
        let ticket = commit.transaction?.number
        let (blockers, writes) = blockers(of: commit.writes, ticket: ticket, database: number)
        if blockers.isEmpty { return false }
        let arrival = park(request, ticket, writes: writes, blockers, sinceMilliseconds)
        if let ticket { breakDeadlocks(through: ticket, arrival) }
        return true
    }

    /// Who must end before these writes continue, and the keys of the writes.
    private mutating func blockers(
        of list: borrowing WriteList, ticket: Ticket?, database: UInt32
    ) -> (Set<Blocker>, [Key]) {
        var blockers: Set<Blocker> = []
        var writes: [Key] = []
        // A transaction during its turn waits for no other turn: it has the turn at all of its keys.
        let waitsForTurns = !turns.isEmpty && !(ticket.map { turns.isHolder($0) } ?? false)
        for write in list.writes {
            let parts = DocumentKey.write(list.path(of: write), database: database, into: &key)
            let document = ByteTable.hash(key.bytes)
            writes.append(document)
            for holder in locks.holders(of: document) where holder != ticket { blockers.insert(.ticket(holder)) }
            guard waitsForTurns else { continue }
            if let holder = turns.holder(of: document), holder != ticket { blockers.insert(.ticket(holder)) }
            let collection = ByteTable.hash(key.bytes.extracting(0..<parts.collectionByteCount))
            if let holder = turns.holder(of: collection), holder != ticket { blockers.insert(.ticket(holder)) }
        }
        return (blockers, writes)
    }

    /// Gives a transaction share locks. A commit that waits to write one of the documents now waits for it too.
    mutating func grant(_ read: LockRequest) {
        ages[read.ticket] = read.age
        locks.take(read.ticket, keys: read.keys)
        if writers.isEmpty { return }
        for key in read.keys {
            for arrival in writers[key] ?? [] where parked[arrival]?.ticket != read.ticket {
                let isNew = parked[arrival]?.blockers.insert(.ticket(read.ticket)).inserted ?? false
                if isNew { waiters[.ticket(read.ticket), default: []].append(arrival) }
            }
        }
    }

    /// Lets a retried transaction join the queues of what it conflicted on; when too many wait, it continues without.
    /// - Returns: whether its turn is now; otherwise `grantNext` or `endExpired` brings it back.
    mutating func enter(_ request: BeginRequest, nowMilliseconds: UInt64) -> Bool {
        if begins.count >= parkedMax { return true }
        let number = request.identifier.number
        ages[number] = request.retried.age
        if turns.request(
            number, age: request.retried.age, keys: request.retried.conflicts, nowMilliseconds: nowMilliseconds)
        {
            return true
        }
        begins[number] = request
        return false
    }

    // MARK: Parking

    @discardableResult
    private mutating func park(
        _ request: QueuedRequest, _ ticket: Ticket?, writes: [Key], _ blockers: Set<Blocker>,
        _ sinceMilliseconds: UInt64
    ) -> Arrival {
        let arrival = nextArrival
        nextArrival += 1
        parked[arrival] = Parked(
            request: request, ticket: ticket, writes: writes, sinceMilliseconds: sinceMilliseconds,
            blockers: blockers)
        parkedBytes += request.byteCount
        for blocker in blockers { waiters[blocker, default: []].append(arrival) }
        for key in writes { writers[key, default: []].append(arrival) }
        if let ticket, !writes.isEmpty { commits[ticket] = arrival }
        return arrival
    }

    /// Unparks a request, and the requests that waited for it alone.
    private mutating func unpark(_ arrival: Arrival, _ outcome: Released.Outcome) {
        guard let gone = parked.removeValue(forKey: arrival) else { return }
        parkedBytes -= gone.request.byteCount
        for blocker in gone.blockers { waiters[blocker]?.removeAll { $0 == arrival } }
        for key in gone.writes {
            writers[key]?.removeAll { $0 == arrival }
            if writers[key]?.isEmpty == true { writers[key] = nil }
        }
        if let ticket = gone.ticket, commits[ticket] == arrival { commits[ticket] = nil }
        released.append(
            Released(request: gone.request, outcome: outcome, sinceMilliseconds: gone.sinceMilliseconds))
        free(.commit(arrival))
    }

    /// Removes a blocker; requests without a further blocker continue.
    private mutating func free(_ blocker: Blocker) {
        for arrival in waiters.removeValue(forKey: blocker) ?? [] {
            parked[arrival]?.blockers.remove(blocker)
            if parked[arrival]?.blockers.isEmpty == true { unpark(arrival, .again) }
        }
    }

    // MARK: Deadlocks

    /// Aborts transactions until no cycle of waits includes the commit that has just been parked.
    private mutating func breakDeadlocks(through ticket: Ticket, _ arrival: Arrival) {
        while parked[arrival] != nil, let cycle = cycle(through: ticket) {
            guard let victim = cycle.max(by: { (ages[$0] ?? $0) < (ages[$1] ?? $1) }), let commit = commits[victim]
            else { return }
            abort(commit, winners: cycle.filter { $0 != victim })
        }
    }

    /// Whether a transaction holds something or waits to commit.
    private func isActive(_ ticket: Ticket) -> Bool {
        locks.holds(ticket) || turns.isHolder(ticket) || commits[ticket] != nil
    }

    /// The transactions of a cycle of waiting commits through this transaction; nil if there is none.
    private func cycle(through ticket: Ticket) -> [Ticket]? {
        var predecessors: [Ticket: Ticket] = [:]
        var frontier = [ticket]
        while let waiting = frontier.popLast() {
            guard let arrival = commits[waiting], let blockers = parked[arrival]?.blockers else { continue }
            for case .ticket(let next) in blockers {
                if next == ticket {
                    var cycle = [waiting]
                    while let last = cycle.last, last != ticket, let before = predecessors[last] {
                        cycle.append(before)
                    }
                    return cycle
                }
                if predecessors[next] == nil {
                    predecessors[next] = waiting
                    frontier.append(next)
                }
            }
        }
        return nil
    }

    /// Takes a transaction's commit out to be aborted, and with it what the transaction holds.
    ///
    /// - Parameter winners: the older transactions of the deadlock for which it is aborted.
    private mutating func abort(_ arrival: Arrival, winners: [Ticket] = []) {
        guard let ticket = parked[arrival]?.ticket, let keys = parked[arrival]?.writes else { return }
        unpark(arrival, .aborted(keys: keys, winners: winners))
        release(ticket)
    }

    // MARK: Releasing requests

    /// Releases the locks and turns of a transaction and ends its wait for a turn. Unknown numbers are ignored.
    mutating func release(_ number: UInt64) {
        freed.append(contentsOf: turns.release(number))
        locks.release(number)
        ages[number] = nil
        begins[number] = nil
        free(.ticket(number))
    }

    /// Ends a transaction's turn; it keeps its locks. Requests that waited for the turn are checked again.
    private mutating func endTurn(_ number: UInt64) {
        freed.append(contentsOf: turns.release(number))
        if !locks.holds(number) { ages[number] = nil }
        free(.ticket(number))
    }

    /// The next unparked request, in order of arrival.
    mutating func nextReleased() -> Released? {
        if releasedStart == released.count {
            released.removeAll(keepingCapacity: true)
            releasedStart = 0
            return nil
        }
        releasedStart += 1
        return released[releasedStart - 1]
    }

    /// Starts the next turns at the keys whose turn has ended.
    /// - Returns: whether anything was free.
    mutating func grantNext(nowMilliseconds: UInt64, _ start: (BeginRequest) -> Void) -> Bool {
        if freed.isEmpty { return false }
        let keys = freed
        freed.removeAll(keepingCapacity: true)
        for ticket in turns.grantNext(at: keys, nowMilliseconds: nowMilliseconds) {
            if let begin = begins.removeValue(forKey: ticket) { start(begin) }
        }
        return true
    }

    /// Applies the time limits: idle and slow holders lose their locks and turns; requests that waited too long
    /// continue or are aborted.
    ///
    /// - Parameters:
    ///   - lastUsed: when a transaction was last heard of; nil if it has ended.
    ///   - began: when a transaction began; nil if it has ended.
    ///   - isDoomed: whether a transaction can only be aborted. Asked of those that block others.
    ///   - start: gets the transactions that begin now without a turn.
    mutating func endExpired(
        nowMilliseconds: UInt64, lastUsed: (UInt64) -> UInt64?, began: (UInt64) -> UInt64?,
        isDoomed: (UInt64) -> Bool, start: (BeginRequest) -> Void
    ) {
        let expiry = turns.expired(nowMilliseconds: nowMilliseconds, lastUsed: lastUsed)
        for ticket in expiry.ended where commits[ticket] == nil { endTurn(ticket) }
        for ticket in expiry.timedOut {
            let begin = begins[ticket]
            release(ticket)
            if let begin { start(begin) }
        }
        endIdleLocks(nowMilliseconds: nowMilliseconds, lastUsed: lastUsed)
        endDoomed(isDoomed)
        endLongWaits(nowMilliseconds: nowMilliseconds, began: began)
    }

    private mutating func endIdleLocks(nowMilliseconds: UInt64, lastUsed: (UInt64) -> UInt64?) {
        for ticket in Array(locks.tickets) where commits[ticket] == nil {
            guard let heard = lastUsed(ticket) else {
                release(ticket)
                continue
            }
            if blocksOthers(ticket), nowMilliseconds >= heard + lockIdleMilliseconds { release(ticket) }
        }
    }

    private func blocksOthers(_ ticket: Ticket) -> Bool { waiters[.ticket(ticket)]?.isEmpty == false }

    /// Releases what transactions hold that can only be aborted and that block others.
    private mutating func endDoomed(_ isDoomed: (UInt64) -> Bool) {
        for case .ticket(let ticket) in Array(waiters.keys) where blocksOthers(ticket) && isDoomed(ticket) {
            if let commit = commits[ticket] { abort(commit) } else { release(ticket) }
        }
    }

    /// Ends the waiting of requests that have waited too long. Of those they waited for, the ones who may have been in
    /// the way all the time lose what they hold, so that nobody else waits for them as long. One whose commit waits
    /// itself is not slow.
    private mutating func endLongWaits(nowMilliseconds: UInt64, began: (UInt64) -> UInt64?) {
        let late = parked.filter { nowMilliseconds >= $0.value.sinceMilliseconds + lockWaitMilliseconds }.keys.sorted()
        for arrival in late {
            guard let request = parked[arrival] else { continue }
            if request.ticket != nil, !request.writes.isEmpty {
                abort(arrival)
            } else {
                unpark(arrival, .unconditional)
            }
            for case .ticket(let holder) in request.blockers where commits[holder] == nil {
                let isOld = began(holder).map { $0 + lockWaitMilliseconds <= nowMilliseconds } ?? true
                if isOld { release(holder) }
            }
        }
    }

    /// Removes all requests.
    /// - Returns: the requests that waited; the caller refuses them.
    mutating func removeAll() -> [QueuedRequest] {
        var all = released[releasedStart...].map(\.request)
        all.append(contentsOf: parked.keys.sorted().compactMap { parked[$0]?.request })
        all.append(contentsOf: begins.values.map { .begin($0) })
        parked = [:]
        parkedBytes = 0
        waiters = [:]
        writers = [:]
        commits = [:]
        begins = [:]
        released = []
        releasedStart = 0
        return all
    }
}
