// Share locks: what pessimistic transactions have read.
//
// Any number of transactions may hold a lock on one document; commits of others to it wait until they have ended. Keys
// are hashes, as in `RetryTurns`: two documents of one hash share their locks, which costs a wait and nothing else. A
// pure state machine.

/// Who has read what. Belongs to the commit thread.
struct ShareLocks {
    typealias Ticket = RetryTurns.Ticket
    typealias Key = RetryTurns.Key

    /// Many transactions may have read one document: a set, so that each costs the same.
    private var holders: [Key: Set<Ticket>] = [:]
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

    /// Whether another transaction than this one holds a key.
    func isHeld(_ key: Key, exceptBy ticket: Ticket?) -> Bool {
        guard let holders = holders[key] else { return false }
        return holders.count > 1 || ticket.map { !holders.contains($0) } ?? true
    }

    /// Who holds a key, in no particular order.
    func holders(of key: Key) -> Set<Ticket> { holders[key] ?? [] }

    /// Takes locks; those held already and those beyond the maximum are passed over.
    mutating func take(_ ticket: Ticket, keys wanted: [Key]) {
        for key in wanted where count < maximum {
            guard holders[key, default: []].insert(ticket).inserted else { continue }
            keys[ticket, default: []].append(key)
            count += 1
        }
    }

    /// Lets go of all locks of a transaction; one that holds none is fine.
    /// - Parameter visit: gets each key, and its holder if exactly one is left. Not called for keys with several.
    mutating func release(_ ticket: Ticket, _ visit: (Key, Ticket?) -> Void) {
        guard let released = keys.removeValue(forKey: ticket) else { return }
        count -= released.count
        for key in released {
            holders[key]?.remove(ticket)
            let left = holders[key]?.count ?? 0
            if left <= 1 { visit(key, holders[key]?.first) }
            if left == 0 { holders[key] = nil }
        }
    }
}
