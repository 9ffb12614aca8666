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
// Many may hold one document, and many may wait for it. So a request waits for the locks of a key, not for each of
// their holders, and a read for the commits to a key, not for each: what it costs does not grow with their number.
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
        /// A transaction, or its turn.
        case ticket(Ticket)
        /// The share locks of others at a key.
        case locks(Key)
        /// The parked commits that write a key.
        case writers(Key)
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

    /// What all parked requests wait for: blockers, each once for each request.
    var waitCount: Int { parked.values.reduce(0) { $0 + $1.blockers.count } }

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
                if writers[key] != nil { blockers.insert(.writers(key)) }
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
            if locks.isHeld(document, exceptBy: ticket) { blockers.insert(.locks(document)) }
            guard waitsForTurns else { continue }
            if let holder = turns.holder(of: document), holder != ticket { blockers.insert(.ticket(holder)) }
            let collection = ByteTable.hash(key.bytes.extracting(0..<parts.collectionByteCount))
            if let holder = turns.holder(of: collection), holder != ticket { blockers.insert(.ticket(holder)) }
        }
        return (blockers, writes)
    }

    /// Gives a transaction share locks. A commit that is parked already and waits for other locks of these documents
    /// now waits for these too; any other finds them when it is checked again.
    mutating func grant(_ read: LockRequest) {
        ages[read.ticket] = read.age
        locks.take(read.ticket, keys: read.keys)
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

    /// Unparks a request, and the reads that waited for it alone.
    private mutating func unpark(_ arrival: Arrival, _ outcome: Released.Outcome) {
        guard let gone = parked.removeValue(forKey: arrival) else { return }
        parkedBytes -= gone.request.byteCount
        for blocker in gone.blockers { Self.remove(arrival, of: blocker, from: &waiters) }
        for key in gone.writes { Self.remove(arrival, of: key, from: &writers) }
        if let ticket = gone.ticket, commits[ticket] == arrival { commits[ticket] = nil }
        released.append(
            Released(request: gone.request, outcome: outcome, sinceMilliseconds: gone.sinceMilliseconds))
        for key in gone.writes where writers[key] == nil { free(.writers(key)) }
    }

    /// Takes a request out of a list in order of arrival.
    private static func remove<Name>(_ arrival: Arrival, of name: Name, from lists: inout [Name: [Arrival]]) {
        guard let position = lists[name]?.partitioningIndex(where: { $0 >= arrival }),
            lists[name]?[position...].first == arrival
        else { return }
        lists[name]?.remove(at: position)
        if lists[name]?.isEmpty == true { lists[name] = nil }
    }

    /// Removes a blocker; requests without a further blocker continue.
    private mutating func free(_ blocker: Blocker) { unparkAll(unblocked(by: blocker)) }

    /// Removes a blocker.
    /// - Returns: the requests without a further one.
    private mutating func unblocked(by blocker: Blocker) -> [Arrival] {
        var free: [Arrival] = []
        for arrival in waiters.removeValue(forKey: blocker) ?? [] {
            parked[arrival]?.blockers.remove(blocker)
            if parked[arrival]?.blockers.isEmpty == true { free.append(arrival) }
        }
        return free
    }

    private mutating func unparkAll(_ arrivals: [Arrival]) {
        for arrival in arrivals { unpark(arrival, .again) }
    }

    /// Releases the share locks of a transaction, and what waited for them alone, in order of arrival.
    private mutating func releaseLocks(_ ticket: Ticket) {
        var left: [(key: Key, holder: Ticket?)] = []
        locks.release(ticket) { left.append(($0, $1)) }
        var free: [Arrival] = []
        for (key, holder) in left {
            guard let holder else {
                free += unblocked(by: .locks(key))
                continue
            }
            // A transaction does not wait for its own lock.
            guard let arrival = commits[holder], parked[arrival]?.blockers.remove(.locks(key)) != nil else { continue }
            Self.remove(arrival, of: .locks(key), from: &waiters)
            if parked[arrival]?.blockers.isEmpty == true { free.append(arrival) }
        }
        unparkAll(free.sorted())
    }

    // MARK: Deadlocks

    /// Aborts transactions until no cycle of waits includes the commit that has just been parked.
    private mutating func breakDeadlocks(through ticket: Ticket, _ arrival: Arrival) {
        // Transactions that do not wait for this one, however indirectly. The ends of others do not change that.
        var clear: Set<Ticket> = []
        for next in waitedFor(by: ticket) {
            while parked[arrival] != nil, let path = waits(from: next, to: ticket, &clear) {
                let cycle = [ticket] + path
                guard let victim = cycle.max(by: { (ages[$0] ?? $0) < (ages[$1] ?? $1) }), let commit = commits[victim]
                else { return }
                abort(commit, winners: cycle.filter { $0 != victim })
            }
        }
    }

    /// Whether a transaction holds something or waits to commit.
    private func isActive(_ ticket: Ticket) -> Bool {
        locks.holds(ticket) || turns.isHolder(ticket) || commits[ticket] != nil
    }

    /// The transactions that lead from one to another, each of which waits for the next; nil if none do.
    ///
    /// - Parameter clear: transactions known not to lead there. Gets those that turn out not to.
    private func waits(from start: Ticket, to end: Ticket, _ clear: inout Set<Ticket>) -> [Ticket]? {
        var seen: Set<Ticket> = []
        var path: [Ticket] = []
        var levels = [[start]]
        while let next = levels.last?.last {
            if next == end { return path }
            levels[levels.count - 1].removeLast()
            if !clear.contains(next), seen.insert(next).inserted {
                path.append(next)
                levels.append(waitedFor(by: next))
            }
            while levels.last?.isEmpty == true {
                levels.removeLast()
                _ = path.popLast()
            }
        }
        clear.formUnion(seen)
        return nil
    }

    /// The transactions that a transaction's parked commit waits for and whose commits are parked too.
    private func waitedFor(by ticket: Ticket) -> [Ticket] {
        guard let arrival = commits[ticket], let request = parked[arrival] else { return [] }
        var others: Set<Ticket> = []
        for case .ticket(let other) in request.blockers where commits[other] != nil { others.insert(other) }
        for key in request.writes where locks.isHeld(key, exceptBy: ticket) {
            let holders = locks.holders(of: key)
            if holders.count < commits.count {
                for holder in holders where commits[holder] != nil { others.insert(holder) }
            } else {
                for other in commits.keys where holders.contains(other) { others.insert(other) }
            }
        }
        others.remove(ticket)
        return others.sorted()
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
        ages[number] = nil
        begins[number] = nil
        releaseLocks(number)
        free(.ticket(number))
    }

    /// Releases what transactions held that were dropped. What a commit holds that is parked ends with it.
    mutating func release(dropped numbers: [UInt64]) {
        for number in numbers where commits[number] == nil { release(number) }
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
    /// - Returns: how many requests and transactions were looked at.
    mutating func endExpired(
        nowMilliseconds: UInt64, lastUsed: (UInt64) -> UInt64?, began: (UInt64) -> UInt64?,
        isDoomed: (UInt64) -> Bool, start: (BeginRequest) -> Void
    ) -> Int {
        let expiry = turns.expired(nowMilliseconds: nowMilliseconds, lastUsed: lastUsed)
        for ticket in expiry.ended where commits[ticket] == nil { endTurn(ticket) }
        for ticket in expiry.timedOut {
            let begin = begins[ticket]
            release(ticket)
            if let begin { start(begin) }
        }
        let (blocking, holders) = blockingTickets
        let looks = parked.count + begins.count + holders
        endIdleLocks(blocking, nowMilliseconds: nowMilliseconds, lastUsed: lastUsed)
        endDoomed(blocking, isDoomed)
        endLongWaits(nowMilliseconds: nowMilliseconds, began: began)
        return looks
    }

    /// The transactions that requests wait for, oldest first, and how many holders of all blockers were looked at.
    private var blockingTickets: (tickets: [Ticket], looks: Int) {
        var tickets: Set<Ticket> = []
        var looks = 0
        for (blocker, arrivals) in waiters {
            let holders = holders(blocker)
            looks += holders.count
            // A transaction whose commit waits for the other holders of a document is not in its own way.
            let own = arrivals.count == 1 ? parked[arrivals[0]]?.ticket : nil
            for ticket in holders where ticket != own { tickets.insert(ticket) }
        }
        return (tickets.sorted(), looks)
    }

    private mutating func endIdleLocks(
        _ blocking: [Ticket], nowMilliseconds: UInt64, lastUsed: (UInt64) -> UInt64?
    ) {
        for ticket in blocking where commits[ticket] == nil && locks.holds(ticket) {
            let isIdle = lastUsed(ticket).map { nowMilliseconds >= $0 + lockIdleMilliseconds } ?? true
            if isIdle { release(ticket) }
        }
    }

    /// Releases what transactions hold that can only be aborted and that block others.
    private mutating func endDoomed(_ blocking: [Ticket], _ isDoomed: (UInt64) -> Bool) {
        for ticket in blocking where isActive(ticket) && isDoomed(ticket) {
            if let commit = commits[ticket] { abort(commit) } else { release(ticket) }
        }
    }

    /// Ends the waiting of requests that have waited too long. Of those they waited for, the ones who may have been in
    /// the way all the time lose what they hold, so that nobody else waits for them as long. One whose commit waits
    /// itself is not slow.
    private mutating func endLongWaits(nowMilliseconds: UInt64, began: (UInt64) -> UInt64?) {
        let late = parked.filter { nowMilliseconds >= $0.value.sinceMilliseconds + lockWaitMilliseconds }.keys.sorted()
        var ended: Set<Blocker> = []
        for arrival in late {
            guard let request = parked[arrival] else { continue }
            if request.ticket != nil, !request.writes.isEmpty {
                abort(arrival)
            } else {
                unpark(arrival, .unconditional)
            }
            for blocker in request.blockers where ended.insert(blocker).inserted {
                for holder in holders(blocker) where commits[holder] == nil {
                    let isOld = began(holder).map { $0 + lockWaitMilliseconds <= nowMilliseconds } ?? true
                    if isOld { release(holder) }
                }
            }
        }
    }

    /// The transactions at whose end a blocker ends.
    private func holders(_ blocker: Blocker) -> Set<Ticket> {
        switch blocker {
        case .ticket(let ticket): [ticket]
        case .locks(let key): locks.holders(of: key)
        case .writers: []
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
