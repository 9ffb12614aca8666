// Turns at contended documents.
//
// A transaction that was aborted and tries again waits for its turn at the documents it conflicted on before it reads
// anything. During its turn other commits to these documents wait, so it has no new conflict there; when it has ended,
// the next in the queue gets its turn. So of N clients that increment one document all finish, after two attempts
// each.
//
// A request gets its turn at all of its keys at once, when it is first in the queue of each. Queues are in age
// order after the present holder, so the oldest request waits for holders alone, there is no deadlock, and no request
// starves. A turn ends early if its holder is idle, and it has a maximum duration; correctness does not depend on
// turns, since every commit is validated.
//
// Keys are hashes: two keys of one hash share a turn, which costs a wait and nothing else. A pure state machine: the
// time is an argument, and the effects are results.

/// Turns and the requests that wait for them. Belongs to the commit thread.
struct RetryTurns {
    /// Names a request: the number of the transaction that it is for.
    typealias Ticket = UInt64
    typealias Key = UInt64

    private struct Request {
        var age: UInt64
        var keys: [Key]
        var isGranted = false
        /// When the request was made or, if granted, granted; elapsed milliseconds.
        var sinceMilliseconds: UInt64
    }

    /// The requests whose time limit has passed.
    struct Expiry: Equatable {
        /// Requests whose turn was idle for too long, or has lasted too long.
        var ended: [Ticket] = []
        /// Requests that waited too long and continue without a turn.
        var timedOut: [Ticket] = []
    }

    private var requests: [Ticket: Request] = [:]
    /// Who waits for a key, first the holder if there is one.
    private var queues: [Key: [Ticket]] = [:]

    let idleMilliseconds: UInt64
    let holdMilliseconds: UInt64
    let waitMilliseconds: UInt64

    /// - Parameters:
    ///   - idleMilliseconds: how long a holder may be silent.
    ///   - holdMilliseconds: how long a turn lasts at most.
    ///   - waitMilliseconds: how long a request may wait.
    init(idleMilliseconds: UInt64, holdMilliseconds: UInt64, waitMilliseconds: UInt64) {
        self.idleMilliseconds = idleMilliseconds
        self.holdMilliseconds = holdMilliseconds
        self.waitMilliseconds = waitMilliseconds
    }

    var isEmpty: Bool { requests.isEmpty }

    /// Who holds a key now.
    func holder(of key: Key) -> Ticket? {
        guard let first = queues[key]?.first, requests[first]?.isGranted == true else { return nil }
        return first
    }

    func isHolder(_ ticket: Ticket) -> Bool { requests[ticket]?.isGranted == true }

    /// Joins the queues of all the keys.
    /// - Returns: whether the turn starts at once; otherwise a later `grantNext` returns the ticket.
    mutating func request(_ ticket: Ticket, age: UInt64, keys: [Key], nowMilliseconds: UInt64) -> Bool {
        precondition(requests[ticket] == nil, "a transaction requests its turn once")
        var distinct: [Key] = []
        for key in keys where !distinct.contains(key) { distinct.append(key) }
        requests[ticket] = Request(age: age, keys: distinct, sinceMilliseconds: nowMilliseconds)
        for key in distinct { enqueue(ticket, age: age, key: key) }
        return grantIfFirst(ticket, nowMilliseconds: nowMilliseconds)
    }

    /// Joins a queue after the present holder and those that are not younger.
    private mutating func enqueue(_ ticket: Ticket, age: UInt64, key: Key) {
        let position =
            queues[key]?.partitioningIndex { other in
                requests[other].map { !$0.isGranted && $0.age > age } ?? false
            } ?? 0
        queues[key, default: []].insert(ticket, at: position)
    }

    private mutating func grantIfFirst(_ ticket: Ticket, nowMilliseconds: UInt64) -> Bool {
        guard let request = requests[ticket], !request.isGranted,
            request.keys.allSatisfy({ queues[$0]?.first == ticket })
        else { return false }
        requests[ticket]?.isGranted = true
        requests[ticket]?.sinceMilliseconds = nowMilliseconds
        return true
    }

    /// Ends a request, granted or waiting.
    /// - Returns: the keys it stood in the queues of; give them to `grantNext`. Empty for an unknown ticket.
    mutating func release(_ ticket: Ticket) -> [Key] {
        guard let request = requests.removeValue(forKey: ticket) else { return [] }
        for key in request.keys {
            guard var queue = queues.removeValue(forKey: key) else { continue }
            queue.removeAll { $0 == ticket }
            if !queue.isEmpty { queues[key] = queue }
        }
        return request.keys
    }

    /// Starts the turns that can start at the given keys.
    /// - Returns: the tickets granted.
    mutating func grantNext(at keys: [Key], nowMilliseconds: UInt64) -> [Ticket] {
        var granted: [Ticket] = []
        for key in keys {
            guard let first = queues[key]?.first else { continue }
            if grantIfFirst(first, nowMilliseconds: nowMilliseconds) { granted.append(first) }
        }
        return granted
    }

    /// Finds the turns whose time is over and the requests that have waited too long. The caller releases them.
    ///
    /// - Parameter lastUsed: when a ticket's transaction was last heard of; nil if it has ended.
    func expired(nowMilliseconds: UInt64, lastUsed: (Ticket) -> UInt64?) -> Expiry {
        var expiry = Expiry()
        for (ticket, request) in requests {
            if request.isGranted {
                let heard = max(request.sinceMilliseconds, lastUsed(ticket) ?? request.sinceMilliseconds)
                let end = min(heard + idleMilliseconds, request.sinceMilliseconds + holdMilliseconds)
                if nowMilliseconds >= end { expiry.ended.append(ticket) }
            } else if nowMilliseconds >= request.sinceMilliseconds + waitMilliseconds {
                expiry.timedOut.append(ticket)
            }
        }
        expiry.ended.sort()
        expiry.timedOut.sort()
        return expiry
    }
}
