// One server of a store whose log is in a database that replicates: lease, append, look-up, take-over and bootstrap.
//
//     following ──► claiming ──► catching up ──► leading ◄────────────────┐
//         ▲                                        │ a connection ended     │
//         │                                        ▼                        │ the group is in the log,
//         ├──── the row has another epoch ──── raising ──► looking up ──────┘ or is appended again
//         └─────────────────────────────────────── (any)
//
// The database executes statements one at a time (`Statements.swift`). What keeps one log:
//
// - An append is executed only in the epoch of the lease's row, and only after the group that its leader knows as the
//   last. So once a server has claimed the next epoch, it reads everything that will ever be in the log before it.
// - A look-up alone does not decide an unknown outcome: the append of the lost connection may still be executed. The
//   leader raises its own epoch first, which locks that append out, and then looks.
// - No wall clock decides about the lease. The holder counts its time from before it sent the renewal, a candidate from
//   after it saw the row: the candidate's lease ends later.
// - No time above the ceiling of the row is given out, and the next leader starts above it.
// - A strict read sees what its leader has acknowledged, and the leader replies only while the lease holds.
// - Servers that follow get groups from the leader's stream when they are durable. They read the log to catch up, when
//   the epoch changes, and while there is no stream.
//
// A pure state machine. It knows headers of groups; its driver keeps their records. docs/scale.md has the rules, and
// what explores them.

package import Storage

/// One server of a store, as a state machine without I/O. Belongs to one thread.
///
/// Every method that may ask something of the driver returns actions, to be done in their order. Times are of the
/// server's own monotonic clock, in milliseconds; it must count while the machine sleeps (`CLOCK_BOOTTIME`).
package struct StoreMember: Hashable, Sendable {
    package let server: ServerIdentity
    let timing: LeaseTiming
    /// What the store is called if this server creates it.
    let proposed: StoreIdentity

    /// The store; nil until the database has been asked.
    package internal(set) var store: StoreIdentity?
    /// Everything up to here is durable, and applied by this server.
    package internal(set) var place: LogPlace
    package internal(set) var role = Role.following
    /// The epoch in which the server leads or led last.
    package internal(set) var epoch = Epoch(0)
    /// The highest version or time that was given out here, or may have been by the leaders before, in microseconds.
    package internal(set) var issued: UInt64 = 0
    /// Up to here times may be given out, in microseconds.
    package internal(set) var ceiling: UInt64 = 0
    /// The group whose append has no known outcome yet.
    package internal(set) var inFlight: GroupHeader?

    /// The statement about the lease that has no reply yet.
    package internal(set) var leaseRequest: SentStatement?
    /// When the next one is due.
    var leaseDue: UInt64 = 0
    /// From when the lease counts; nil if the server does not hold it.
    var leaseStart: UInt64?
    /// The row that another server holds.
    var seen: SeenRow?

    /// The statement about the groups that has no reply yet.
    package internal(set) var logRequest: LogStatement?
    /// When the next one is due, unless the server leads.
    var readDue: UInt64 = 0
    /// Until when groups are expected from the leader's stream, so that the log is not read.
    var streamedUntil: UInt64 = 0
    /// The read on its way began before the claim: it may lack groups.
    var mustReadAgain = false
    /// The database may be another one than that of the last append: this leader compares the end of the log.
    var mustCompare = false

    /// False for a server that shall not take over: its clock is wrong, or it is about to end.
    package var mayLead = true

    /// What a server is to its store.
    package enum Role: Hashable, Sendable {
        /// It applies the groups of the leader.
        case following
        /// It holds the lease, and reads what earlier leaders appended.
        case catchingUp
        /// It appends.
        case leading
        /// The outcome of an append is unknown; its own epoch is being raised.
        case raising
        /// The epoch is raised; the log is being read for the group.
        case lookingUp
        /// It has ended.
        case stopped(StopReason)
    }

    /// Why a server has ended.
    package enum StopReason: Hashable, Sendable {
        /// Its state is of another store than the database has.
        case otherStore
    }

    struct SeenRow: Hashable, Sendable {
        var row: LeaseRow
        var since: UInt64
    }

    /// - Parameters:
    ///   - proposed: the identity of the store if there is none yet.
    ///   - store: whose state this server has; nil if it has none.
    ///   - place: what this server has applied.
    package init(
        server: ServerIdentity, timing: LeaseTiming, proposed: StoreIdentity, store: StoreIdentity? = nil,
        place: LogPlace = .start
    ) {
        self.server = server
        self.timing = timing
        self.proposed = proposed
        self.store = store
        self.place = place
    }
}

/// A statement about the lease that is on its way.
package struct SentStatement: Hashable, Sendable {
    package let statement: LeaseStatement
    /// When it was sent.
    package var sentMilliseconds: UInt64
}

/// What a server's driver has to do.
package enum MemberAction: Hashable, Sendable {
    /// Send a statement about the lease. Its reply, or the end of the connection before it, is for ``StoreMember``.
    case ask(LeaseStatement)
    /// Send a statement about the groups, on another connection.
    case send(LogStatement)
    /// The server leads: commits may be staged.
    case lead(Epoch)
    /// The group in flight is durable: publish it and send its replies.
    case acknowledge(GroupHeader)
    /// The server leads no longer: drop what is staged or in flight, and end transactions and waits. The group in
    /// flight may come back as one to apply.
    case dropStaged
    /// Apply groups that another server appended.
    case apply([GroupHeader])
    /// Replace the state by the base at a place.
    case loadBase(LogPlace)
    /// The state is not one of this log: discard it, and say so.
    case discardState
    /// Say why the server has ended.
    case stop(StoreMember.StopReason)
}

extension StoreMember {
    /// Whether this server may append, now or after an outcome is known.
    package var isLeader: Bool {
        switch role {
        case .leading, .raising, .lookingUp: true
        case .following, .catchingUp, .stopped: false
        }
    }

    /// Whether no other server can lead at this moment.
    package func holdsLease(now: UInt64) -> Bool {
        guard isLeader, let leaseStart else { return false }
        return now < leaseStart + timing.leaseMilliseconds
    }

    /// Until when no other server can lead, in milliseconds; 0 if this server does not lead.
    package var leaseEnd: UInt64 {
        guard isLeader, let leaseStart else { return 0 }
        return leaseStart + timing.leaseMilliseconds
    }

    /// What a strict read that begins now must see: everything acknowledged so far. Nil if this server does not know.
    /// - Parameter now: read after the call began.
    package func newestPlace(now: UInt64) -> LogPlace? { holdsLease(now: now) ? place : nil }

    /// When ``tick(now:wallMicroseconds:)`` has something to send, in milliseconds; nil while nothing is due before a
    /// reply.
    package var nextTick: UInt64? {
        if case .stopped = role { return nil }
        let lease = leaseRequest == nil ? leaseDue : nil
        let read = nextReadDue
        guard let lease, let read else { return lease ?? read }
        return min(lease, read)
    }

    /// A version or a time was given out, in microseconds: the next renewal raises the ceiling above it.
    package mutating func noteIssued(_ time: UInt64) { issued = max(issued, time) }

    /// A version for a commit: above every version and time given out. Nil while the ceiling is too low, or this server
    /// does not lead.
    /// - Parameter wallMicroseconds: microseconds since 1970; may be wrong.
    package mutating func takeVersion(wallMicroseconds: UInt64) -> UInt64? {
        guard role == .leading else { return nil }
        let version = max(wallMicroseconds, issued + 1, place.version + 1)
        guard version <= ceiling else { return nil }
        issued = version
        return version
    }

    /// A time at or below which no commit will come, and all are durable. Nil if this server cannot promise that.
    /// - Parameters:
    ///   - wallMicroseconds: as for ``takeVersion(wallMicroseconds:)``.
    ///   - isIdle: nothing is staged.
    package mutating func closeTime(wallMicroseconds: UInt64, isIdle: Bool, now: UInt64) -> UInt64? {
        guard holdsLease(now: now) else { return nil }
        guard isIdle, inFlight == nil else { return place.version }
        issued = max(issued, min(wallMicroseconds, ceiling))
        return max(place.version, min(issued, ceiling))
    }
}
