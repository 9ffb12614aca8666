// Who waits for whom at contended documents: commits held up by a lease, and transactions that wait for theirs.
//
// `LeaseTable` knows keys and turns; this knows the requests behind them. A commit to a leased document is parked until
// the lease ends, unless its own transaction holds a lease: holders never wait, so they cannot wait for each other.

internal import DocumentModel

/// Parked commits and waiting begins. Belongs to the commit thread.
struct WaitingRoom: ~Copyable {
    private var leases: LeaseTable
    private var parked: [LeaseTable.Ticket: [QueuedRequest]] = [:]
    private var parkedCount = 0
    private var parkedBytes = 0
    private var begins: [LeaseTable.Ticket: BeginRequest] = [:]
    /// Commits whose lease has ended, from `releasedStart` on.
    private var released: [QueuedRequest] = []
    private var releasedStart = 0
    /// Keys that have become free.
    private var freed: [LeaseTable.Key] = []
    private var key = WireWriter(capacity: KeyLayout.keyBytesMaximum)

    private let parkedMaximum: Int
    private let parkedBytesMaximum: Int

    init(configuration: StoreConfiguration) {
        leases = LeaseTable(
            idleMilliseconds: configuration.leaseIdleMilliseconds,
            waitMilliseconds: configuration.leaseWaitMilliseconds)
        parkedMaximum = configuration.parkedCommitsMaximum
        parkedBytesMaximum = configuration.queuedBytesMaximum
    }

    /// Nobody holds a lease or waits for one.
    var isEmpty: Bool { leases.isEmpty }

    /// No lease has ended since everybody was last told.
    var isSettled: Bool { freed.isEmpty && releasedStart == released.count }

    /// Commits parked now.
    var count: Int { parkedCount }

    /// Parks a commit that writes what somebody else has leased.
    /// - Parameter database: finds a database's number; one without a number has no documents to lease.
    mutating func holdsUp(_ request: QueuedRequest, database: (DatabaseName) -> UInt32?) -> Bool {
        if leases.isEmpty || parkedCount >= parkedMaximum || parkedBytes >= parkedBytesMaximum { return false }
        switch request {
        case .commit(let commit, _), .batch(let commit, _):
            if let transaction = commit.transaction, leases.isHolder(transaction.number) { return false }
            guard let number = database(commit.writes.database),
                let holder = WaitingRoom.holder(of: commit.writes, database: number, leases: leases, key: &key)
            else { return false }
            parked[holder, default: []].append(request)
            parkedCount += 1
            parkedBytes += request.byteCount
            return true
        case .begin, .release: return false
        }
    }

    /// Who holds a lease on one of the documents, or on its collection.
    private static func holder(
        of list: borrowing WriteList, database: UInt32, leases: LeaseTable, key: inout WireWriter
    ) -> LeaseTable.Ticket? {
        for write in list.writes {
            let parts = DocumentKey.write(list.path(of: write), database: database, into: &key)
            let collection = key.bytes.extracting(0..<parts.collectionByteCount)
            if let holder = leases.holder(of: ByteTable.hash(key.bytes)) { return holder }
            if let holder = leases.holder(of: ByteTable.hash(collection)) { return holder }
        }
        return nil
    }

    /// Lets a retried transaction join the queues of what it conflicted on; when too many wait, it goes on without.
    /// - Returns: whether its turn is now; otherwise `grantNext` or `endExpired` brings it back.
    mutating func enter(_ request: BeginRequest, nowMilliseconds: UInt64) -> Bool {
        if begins.count >= parkedMaximum { return true }
        let number = request.identifier.number
        if leases.request(
            number, age: request.retried.age, keys: request.retried.conflicts, nowMilliseconds: nowMilliseconds)
        {
            return true
        }
        begins[number] = request
        return false
    }

    /// Ends a transaction's leases, or its waiting for them. Unknown numbers are fine.
    mutating func release(_ number: UInt64) {
        freed.append(contentsOf: leases.release(number))
        begins[number] = nil
        guard let held = parked.removeValue(forKey: number) else { return }
        parkedCount -= held.count
        for request in held { parkedBytes -= request.byteCount }
        released.append(contentsOf: held)
    }

    /// The next commit whose lease has ended, in the order of their coming.
    mutating func nextReleased() -> QueuedRequest? {
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
    mutating func grantNext(nowMilliseconds: UInt64, _ goOn: (BeginRequest) -> Void) -> Bool {
        if freed.isEmpty { return false }
        let keys = freed
        freed.removeAll(keepingCapacity: true)
        for ticket in leases.grantNext(at: keys, nowMilliseconds: nowMilliseconds) {
            if let begin = begins.removeValue(forKey: ticket) { goOn(begin) }
        }
        return true
    }

    /// Ends the leases of silent holders, and lets those begin without a lease who have waited too long.
    mutating func endExpired(
        nowMilliseconds: UInt64, lastUsed: (LeaseTable.Ticket) -> UInt64?, goOn: (BeginRequest) -> Void
    ) {
        let expiry = leases.expired(nowMilliseconds: nowMilliseconds, lastUsed: lastUsed)
        for ticket in expiry.ended { release(ticket) }
        for ticket in expiry.gaveUp {
            let begin = begins[ticket]
            release(ticket)
            if let begin { goOn(begin) }
        }
    }

    /// Empties the room.
    /// - Returns: everyone who waited, to be refused.
    mutating func removeAll() -> [QueuedRequest] {
        var all = Array(released[releasedStart...])
        for held in parked.values { all.append(contentsOf: held) }
        all.append(contentsOf: begins.values.map { .begin($0) })
        parked = [:]
        parkedCount = 0
        parkedBytes = 0
        begins = [:]
        released = []
        releasedStart = 0
        return all
    }
}
