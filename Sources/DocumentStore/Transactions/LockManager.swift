// Who waits for whom at contended documents: commits held up by leases and share locks, reads held up by such
// commits, and transactions that wait for their lease.
//
//     commit W to x      waits for   the holder of the lease on x, and everyone with a share lock on x
//     first read of x    waits for   the holder of the lease on x, and the commits to x that wait already
//     retried begin      waits for   its turn in the queues of its keys (LeaseTable)
//
// A first read is one of a transaction that holds nothing yet: nobody can wait for it. Holders may wait for each
// other through their commits, and then in a circle: T and U have both read x, and both commit a change of it. The
// circle is found when the commit comes that closes it, and the youngest transaction on it is aborted; age is that of
// the first attempt, so a retry wins in the end. A request that has waited too long is aborted or continues, and a
// transaction that has stood in its way all the time loses what it holds; so does one that can only be aborted
// (docs/transactions.md).
//
// `LeaseTable` and `ShareLocks` know keys and holders; this knows their requests. Correctness does not depend on them:
// every commit is validated, so a request that continues too early costs an abort and never a wrong result.

internal import Basics
internal import DocumentModel
internal import StoreFormat

/// Parked requests and waiting begins. Belongs to the commit thread.
struct LockManager: ~Copyable {
    private typealias Ticket = LeaseTable.Ticket
    private typealias Key = LeaseTable.Key
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

    private var leases: LeaseTable
    private var locks: ShareLocks
    /// Ages of the transactions that hold something.
    private var ages: [Ticket: UInt64] = [:]

    private var parked: [Arrival: Parked] = [:]
    private var parkedBytes = 0
    private var nextArrival: Arrival = 0
    /// Who waits for a blocker, in order of arrival.
    private var heldUp: [Blocker: [Arrival]] = [:]
    /// Parked commits that write a key, in order of arrival.
    private var writers: [Key: [Arrival]] = [:]
    /// The parked commits of transactions.
    private var commits: [Ticket: Arrival] = [:]

    private var begins: [LeaseTable.Ticket: BeginRequest] = [:]
    /// Requests that nothing holds up any more, from `releasedStart` on.
    private var released: [Released] = []
    private var releasedStart = 0
    /// Keys of leases that have become free.
    private var freed: [LeaseTable.Key] = []
    private var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)

    private let parkedMaximum: Int
    private let parkedBytesMaximum: Int
    private let lockWaitMilliseconds: UInt64
    private let lockIdleMilliseconds: UInt64

    init(configuration: StoreConfiguration) {
        leases = LeaseTable(
            idleMilliseconds: configuration.leaseIdleMilliseconds,
            holdMilliseconds: configuration.leaseHoldMilliseconds,
            waitMilliseconds: configuration.leaseWaitMilliseconds)
        locks = ShareLocks(maximum: configuration.shareLocksMaximum)
        parkedMaximum = configuration.parkedCommitsMaximum
        parkedBytesMaximum = configuration.queuedBytesMaximum
        lockWaitMilliseconds = configuration.lockWaitMilliseconds
        lockIdleMilliseconds = configuration.lockIdleMilliseconds
    }

    /// A request on its way out of the room.
    struct Released {
        let request: QueuedRequest
        let outcome: Outcome
        /// When the request came, in elapsed milliseconds.
        let sinceMilliseconds: UInt64

        enum Outcome {
            /// Looked at again: something new may hold it up.
            case again
            /// It has waited long enough and continues.
            case unconditional
            /// It is a transaction's commit that is aborted. A retry leases the keys, after the winners have ended.
            case aborted(keys: [UInt64], winners: [UInt64])
        }
    }

    /// Nobody holds or waits for anything.
    var isEmpty: Bool { leases.isEmpty && locks.isEmpty && parked.isEmpty }

    /// Nothing has ended since the last notification.
    var isSettled: Bool { freed.isEmpty && releasedStart == released.count }

    /// Requests parked now.
    var count: Int { parked.count }

    // MARK: Coming in

    /// Parks a commit that writes what another holds, or a first read of what is about to be written.
    ///
    /// - Parameters:
    ///   - sinceMilliseconds: when the request came.
    ///   - database: finds a database's number; one without a number has no documents to hold.
    mutating func holdsUp(
        _ request: QueuedRequest, sinceMilliseconds: UInt64, database: (DatabaseName) -> UInt32?
    ) -> Bool {
        if leases.isEmpty && locks.isEmpty { return false }
        if parked.count >= parkedMaximum || parkedBytes >= parkedBytesMaximum { return false }
        switch request {
        case .commit(let commit, _), .batch(let commit, _):
            guard let number = database(commit.writes.database) else { return false }
            let ticket = commit.transaction?.number
            let (blockers, writes) = blockers(of: commit.writes, ticket: ticket, database: number)
            if blockers.isEmpty { return false }
            let arrival = park(request, ticket, writes: writes, blockers, sinceMilliseconds)
            if let ticket { breakCircles(through: ticket, arrival) }
            return true
        case .lock(let read):
            if !read.mayWait || locks.holds(read.ticket) || leases.isHolder(read.ticket) { return false }
            var blockers: Set<Blocker> = []
            for key in read.keys {
                if let holder = leases.holder(of: key) { blockers.insert(.ticket(holder)) }
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
        case .release, .declare: return false
        }
    }

    /// Who must end before these writes continue, and the keys of the writes.
    private mutating func blockers(
        of list: borrowing WriteList, ticket: Ticket?, database: UInt32
    ) -> (Set<Blocker>, [Key]) {
        var blockers: Set<Blocker> = []
        var writes: [Key] = []
        // A lease holder does not wait for other leases: all of its leases were granted at once.
        let heedsLeases = !leases.isEmpty && !(ticket.map { leases.isHolder($0) } ?? false)
        for write in list.writes {
            let parts = DocumentKey.write(list.path(of: write), database: database, into: &key)
            let document = ByteTable.hash(key.bytes)
            writes.append(document)
            for holder in locks.holders(of: document) where holder != ticket { blockers.insert(.ticket(holder)) }
            guard heedsLeases else { continue }
            if let holder = leases.holder(of: document), holder != ticket { blockers.insert(.ticket(holder)) }
            let collection = ByteTable.hash(key.bytes.extracting(0..<parts.collectionByteCount))
            if let holder = leases.holder(of: collection), holder != ticket { blockers.insert(.ticket(holder)) }
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
                if isNew { heldUp[.ticket(read.ticket), default: []].append(arrival) }
            }
        }
    }

    /// Lets a retried transaction join the queues of what it conflicted on; when too many wait, it continues without.
    /// - Returns: whether its turn is now; otherwise `grantNext` or `endExpired` brings it back.
    mutating func enter(_ request: BeginRequest, nowMilliseconds: UInt64) -> Bool {
        if begins.count >= parkedMaximum { return true }
        let number = request.identifier.number
        ages[number] = request.retried.age
        if leases.request(
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
        for blocker in blockers { heldUp[blocker, default: []].append(arrival) }
        for key in writes { writers[key, default: []].append(arrival) }
        if let ticket, !writes.isEmpty { commits[ticket] = arrival }
        return arrival
    }

    /// Takes a request out of the room, and continues those that waited for it alone.
    private mutating func unpark(_ arrival: Arrival, _ outcome: Released.Outcome) {
        guard let gone = parked.removeValue(forKey: arrival) else { return }
        parkedBytes -= gone.request.byteCount
        for blocker in gone.blockers { heldUp[blocker]?.removeAll { $0 == arrival } }
        for key in gone.writes {
            writers[key]?.removeAll { $0 == arrival }
            if writers[key]?.isEmpty == true { writers[key] = nil }
        }
        if let ticket = gone.ticket, commits[ticket] == arrival { commits[ticket] = nil }
        released.append(
            Released(request: gone.request, outcome: outcome, sinceMilliseconds: gone.sinceMilliseconds))
        free(.commit(arrival))
    }

    /// What this held up is held up by one less.
    private mutating func free(_ blocker: Blocker) {
        for arrival in heldUp.removeValue(forKey: blocker) ?? [] {
            parked[arrival]?.blockers.remove(blocker)
            if parked[arrival]?.blockers.isEmpty == true { unpark(arrival, .again) }
        }
    }

    // MARK: Circles

    /// Aborts transactions until none waits for itself through the commit that has just been parked.
    private mutating func breakCircles(through ticket: Ticket, _ arrival: Arrival) {
        while parked[arrival] != nil, let circle = circle(through: ticket) {
            guard let victim = circle.max(by: { (ages[$0] ?? $0) < (ages[$1] ?? $1) }), let commit = commits[victim]
            else { return }
            abort(commit, winners: circle.filter { $0 != victim })
        }
    }

    /// Whether a transaction holds something or waits to commit.
    private func isActive(_ ticket: Ticket) -> Bool {
        locks.holds(ticket) || leases.isHolder(ticket) || commits[ticket] != nil
    }

    /// The transactions of a circle of waiting commits, if there is one through this transaction.
    private func circle(through ticket: Ticket) -> [Ticket]? {
        var cameFrom: [Ticket: Ticket] = [:]
        var frontier = [ticket]
        while let waiting = frontier.popLast() {
            guard let arrival = commits[waiting], let blockers = parked[arrival]?.blockers else { continue }
            for case .ticket(let next) in blockers {
                if next == ticket {
                    var circle = [waiting]
                    while let last = circle.last, last != ticket, let before = cameFrom[last] { circle.append(before) }
                    return circle
                }
                if cameFrom[next] == nil {
                    cameFrom[next] = waiting
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

    // MARK: Going out

    /// Ends what a transaction holds, or its waiting for a lease. Unknown numbers are fine.
    mutating func release(_ number: UInt64) {
        freed.append(contentsOf: leases.release(number))
        locks.release(number)
        ages[number] = nil
        begins[number] = nil
        free(.ticket(number))
    }

    /// Ends a transaction's leases; it keeps its locks. What the lease held up is looked at again.
    private mutating func endTurn(_ number: UInt64) {
        freed.append(contentsOf: leases.release(number))
        if !locks.holds(number) { ages[number] = nil }
        free(.ticket(number))
    }

    /// The next request that leaves the room, in the order of their coming.
    mutating func nextReleased() -> Released? {
        if releasedStart == released.count {
            released.removeAll(keepingCapacity: true)
            releasedStart = 0
            return nil
        }
        releasedStart += 1
        return released[releasedStart - 1]
    }

    /// Gives turns at what has become free.
    /// - Returns: whether anything was free.
    mutating func grantNext(nowMilliseconds: UInt64, _ start: (BeginRequest) -> Void) -> Bool {
        if freed.isEmpty { return false }
        let keys = freed
        freed.removeAll(keepingCapacity: true)
        for ticket in leases.grantNext(at: keys, nowMilliseconds: nowMilliseconds) {
            if let begin = begins.removeValue(forKey: ticket) { start(begin) }
        }
        return true
    }

    /// What time brings: holders who are silent or slow lose what they hold, those who waited too long continue or are
    /// aborted.
    ///
    /// - Parameters:
    ///   - lastUsed: when a transaction was last heard of; nil if it has ended.
    ///   - began: when a transaction began; nil if it has ended.
    ///   - isDoomed: whether a transaction can only be aborted. Asked of those that block others.
    ///   - start: takes the transactions that begin now, without their turn.
    mutating func endExpired(
        nowMilliseconds: UInt64, lastUsed: (UInt64) -> UInt64?, began: (UInt64) -> UInt64?,
        isDoomed: (UInt64) -> Bool, start: (BeginRequest) -> Void
    ) {
        let expiry = leases.expired(nowMilliseconds: nowMilliseconds, lastUsed: lastUsed)
        for ticket in expiry.ended where commits[ticket] == nil { endTurn(ticket) }
        for ticket in expiry.gaveUp {
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
            if isInTheWay(ticket), nowMilliseconds >= heard + lockIdleMilliseconds { release(ticket) }
        }
    }

    private func isInTheWay(_ ticket: Ticket) -> Bool { heldUp[.ticket(ticket)]?.isEmpty == false }

    /// A transaction that can only be aborted holds nobody up any longer.
    private mutating func endDoomed(_ isDoomed: (UInt64) -> Bool) {
        for case .ticket(let ticket) in Array(heldUp.keys) where isInTheWay(ticket) && isDoomed(ticket) {
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

    /// Empties the room.
    /// - Returns: everyone who waited, to be refused.
    mutating func removeAll() -> [QueuedRequest] {
        var all = released[releasedStart...].map(\.request)
        all.append(contentsOf: parked.keys.sorted().compactMap { parked[$0]?.request })
        all.append(contentsOf: begins.values.map { .begin($0) })
        parked = [:]
        parkedBytes = 0
        heldUp = [:]
        writers = [:]
        commits = [:]
        begins = [:]
        released = []
        releasedStart = 0
        return all
    }
}
