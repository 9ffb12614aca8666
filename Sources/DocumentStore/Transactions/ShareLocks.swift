// Share locks: what pessimistic transactions have read.
//
// Any number of transactions may hold a lock on one document; commits of others to it wait until they have ended. Keys
// are hashes, as in `RetryTurns`: two documents of one hash share their locks, which costs a wait and nothing else. A
// pure state machine.

/// Who has read what. Belongs to the commit thread.
struct ShareLocks {
    typealias Ticket = RetryTurns.Ticket
    typealias Key = RetryTurns.Key

    /// Holders in order of arrival; few.
    private var holders: [Key: [Ticket]] = [:]
    private var keys: [Ticket: [Key]] = [:]
    private(set) var count = 0

    /// Locks of all transactions together; further ones are not taken, and validation alone decides.
    private let maximum: Int

    init(maximum: Int) {
        self.maximum = maximum
    }

    var isEmpty: Bool { keys.isEmpty }

    /// Transactions that hold a lock.
    var tickets: some Collection<Ticket> { keys.keys }

    func holds(_ ticket: Ticket) -> Bool { keys[ticket] != nil }

    func holders(of key: Key) -> [Ticket] { holders[key] ?? [] }

    /// Takes locks; those held already and those beyond the maximum are passed over.
    mutating func take(_ ticket: Ticket, keys wanted: [Key]) {
        for key in wanted where count < maximum {
            if holders[key]?.contains(ticket) == true { continue }
            holders[key, default: []].append(ticket)
            keys[ticket, default: []].append(key)
            count += 1
        }
    }

    /// Lets go of all locks of a transaction; one that holds none is fine.
    mutating func release(_ ticket: Ticket) {
        guard let released = keys.removeValue(forKey: ticket) else { return }
        count -= released.count
        for key in released {
            guard var left = holders.removeValue(forKey: key) else { continue }
            left.removeAll { $0 == ticket }
            if !left.isEmpty { holders[key] = left }
        }
    }
}
