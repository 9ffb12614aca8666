// What a member that only follows does over connections that it shares with others (FollowerChannels).

internal import Basics
internal import Replication

extension MemberDriver {
    /// Whether the member has separate connections: it holds a lease, or has claimed one.
    var ownsConnections: Bool { member.role.isOfHolder }

    /// Whether the member has claimed a lease, and lacks a connection to keep it.
    var isSettling: Bool { !hasEnded && member.role == .catchingUp && !(lease.isOpen && log.isOpen) }

    /// Whether the statement about the lease that waits is a claim; nil if none waits.
    var wantsToClaim: Bool? {
        switch leaseStatement {
        case .claim?: hasEnded ? nil : true
        case .observe?: hasEnded ? nil : false
        default: nil
        }
    }

    /// Whether the read of groups has come to the commit that waits for the standby.
    var waitsForStandby: Bool {
        if case .standby? = reading?.step { true } else { false }
    }

    /// The row of the lease has come, which was asked for together with those of others.
    func takeSharedLease(_ outcome: SQLOutcome) {
        state.noteContact()
        dueAt = 0
        if !hasEnded { takeLease(outcome) }
    }

    /// The reply to a part of a read has come.
    func takeSharedLog(_ outcome: SQLOutcome) {
        state.noteContact()
        dueAt = 0
        if !hasEnded { takeLog(outcome) }
    }

    func note(_ event: MemberEvent) {
        if !hasEnded { host.note(event) }
    }

    /// Closes the connections of a member that only follows, and opens those of one that leads, or is about to.
    func keepConnections(_ now: UInt64) {
        if ownsConnections {
            tick(lease, now)
            tick(log, now)
            abandonClaimIfLate(now)
            abandonClaimIfUnreadable(now)
        }
        if ownsConnections { return }
        settlingSince = nil
        if lease.isInUse || log.isInUse { closeChannels() }
        // What waits for them was not sent, or has an outcome that does not matter: a read, or a renewal.
        if logStatement != nil, !readsShared { loseLog() }
        if leaseStatement != nil, wantsToClaim == nil { loseLease() }
    }

    /// A server that cannot get separate connections leaves the lease to others.
    private func abandonClaimIfLate(_ now: UInt64) {
        guard isSettling else { return settlingSince = nil }
        settlingSince = settlingSince ?? now
        if now >= settlingEnd { abandonClaim("no connection could be opened in time", now) }
    }

    /// A server that cannot read the log to its end leaves the lease to others, which may have what it cannot read.
    private func abandonClaimIfUnreadable(_ now: UInt64) {
        if now >= readingEnd { abandonClaim("the log could not be read to its end", now) }
    }

    private func abandonClaim(_ reason: String, _ now: UInt64) {
        guard member.abandonClaim(now: now) else { return }
        claimsAfter = now + Self.abandonedMilliseconds
        member.mayLead = false
        host.note(.claimGivenUp(reason))
    }

    /// When a claim is given up because the log cannot be read, in milliseconds.
    var readingEnd: UInt64 {
        guard let unreadableSince, member.role == .catchingUp else { return .max }
        return unreadableSince + settings.timing.leaseMilliseconds
    }

    /// When a claim is given up, in milliseconds. Without a connection it cannot be renewed; with one other servers
    /// wait.
    var settlingEnd: UInt64 {
        guard let settlingSince, isSettling else { return .max }
        return settlingSince + (lease.isOpen ? Self.settlingMilliseconds : settings.timing.leaseMilliseconds)
    }

    private static let settlingMilliseconds: UInt64 = 5_000
    /// How long no lease is claimed after one was given up: other servers have seen it unchanged by then.
    private static let abandonedMilliseconds: UInt64 = 4_000
}

extension StoreMember.Role {
    /// Whether the server holds the lease, as far as it knows, or has claimed it.
    var isOfHolder: Bool {
        switch self {
        case .following, .stopped: false
        case .catchingUp, .leading, .raising, .lookingUp: true
        }
    }
}
