// What other threads see of a driver.

package import Basics
internal import Glibc
package import Replication
internal import Synchronization

/// The state of a member for readers, metrics and the engine. Thread-safe.
package final class MemberState: Sendable {
    /// Figures for people.
    package struct Figures: Sendable {
        package var role = "connecting"
        /// The last read of the log has failed, so that this server cannot lead.
        package var isLogUnreadable = false
        /// The clock of the machine is too far from the database's, so that this server does not begin to lead.
        package var isClockWrong = false
        package var leader = ""
        /// Of the store's row, when it was read last; 0 before.
        package var level: UInt64 = 0
        package var epoch: UInt64 = 0
        package var place = LogPlace.start
        /// The last group that this server had, also after it has found out that the log lacks it.
        package var reached = LogPlace.start
        /// No later time was given out here, in microseconds.
        package var ceiling: UInt64 = 0
        /// The closed time of the last look at the log, in microseconds.
        package var closed: UInt64 = 0
        package var groupsAppended: UInt64 = 0
        package var bytesAppended: UInt64 = 0
        package var groupsApplied: UInt64 = 0
        /// Those of them that came over the stream of the leader.
        package var groupsStreamed: UInt64 = 0
        /// Appends whose connection ended before the reply.
        package var outcomesUnknown: UInt64 = 0

        package init() {}
    }

    /// Until when the lease is held, in milliseconds of `CLOCK_BOOTTIME`; 0 if it is not.
    private let leaseEnd = Atomic<UInt64>(0)
    private let ceiling = Atomic<UInt64>(0)
    private let leads = Atomic<Bool>(false)
    private let hasLedBefore = Atomic<Bool>(false)
    private let lastContact = Atomic<UInt64>(0)
    private let guarded = Mutex(Figures())
    /// The times of an append, from sending it to its reply.
    package let appendNanoseconds = Histogram()

    package init() {}

    /// Whether no other server can lead at this moment, and this one does.
    package var holdsLease: Bool {
        leads.load(ordering: .acquiring) && BootClock.milliseconds() < leaseEnd.load(ordering: .acquiring)
    }

    /// Whether this server leads, maybe with an expired lease.
    package var isLeading: Bool { leads.load(ordering: .acquiring) }

    /// Whether this server leads, or led and was replaced. The store has its state until it is closed.
    package var hasLed: Bool { hasLedBefore.load(ordering: .acquiring) }

    /// A server that ``hasLed`` gives out no later time, in microseconds. The next leader begins above it.
    package var timeMax: UInt64 { ceiling.load(ordering: .acquiring) }

    /// The clock of a server that ``hasLed`` stands still there, in microseconds: versions of commits that come in one
    /// microsecond take some more, and the rest of the ceiling is for them.
    package var clockMax: UInt64 { timeMax - min(timeMax, Self.reserveMicroseconds) }

    private static let reserveMicroseconds: UInt64 = 1_000_000

    package var figures: Figures { guarded.withLock { $0 } }

    /// When the database answered last.
    var lastContactMilliseconds: UInt64 { lastContact.load(ordering: .relaxed) }

    /// Milliseconds since the database answered last.
    package var silenceMilliseconds: UInt64 {
        let (now, last) = (BootClock.milliseconds(), lastContactMilliseconds)
        return now > last ? now - last : 0
    }

    func noteContact() { lastContact.store(BootClock.milliseconds(), ordering: .relaxed) }

    /// Times are below the ceiling from here on.
    func willLead() { hasLedBefore.store(true, ordering: .releasing) }

    func set(leads: Bool) { self.leads.store(leads, ordering: .releasing) }

    /// Takes over what a member has become.
    func update(_ member: StoreMember) {
        if member.isLeader || !hasLed { ceiling.store(member.ceiling, ordering: .releasing) }
        leaseEnd.store(member.leaseEnd, ordering: .releasing)
        guarded.withLock { figures in
            figures.role = member.isLeader ? member.role.name : figures.problem ?? member.role.name
            figures.epoch = member.epoch.number
            figures.ceiling = member.ceiling
            figures.place = member.place
            if member.place.sequence > 0 { figures.reached = member.place }
        }
    }

    func change(_ body: (inout Figures) -> Void) { guarded.withLock { body(&$0) } }
}

extension MemberState.Figures {
    /// Why a server that follows cannot lead, as its role; nil if it can.
    fileprivate var problem: String? {
        if isLogUnreadable { return "cannot read the log" }
        return isClockWrong ? "its clock is wrong" : nil
    }
}

extension StoreMember.Role {
    /// For people, and for servers that hand a lease over.
    var name: String {
        switch self {
        case .following: "following"
        case .catchingUp: "catching up"
        case .leading: "leading"
        case .raising, .lookingUp: "resolving"
        case .stopped: "stopped"
        }
    }
}

/// A clock that counts while the machine sleeps.
package enum BootClock {
    package static func milliseconds() -> UInt64 {
        var now = timespec()
        unsafe clock_gettime(CLOCK_BOOTTIME, &now)
        return UInt64(now.tv_sec) * 1_000 + UInt64(now.tv_nsec) / 1_000_000
    }
}
