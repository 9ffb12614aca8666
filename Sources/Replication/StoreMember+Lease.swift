// The lease: who holds it, by counts of renewals and monotonic clocks.

extension StoreMember {
    /// Sends what is due. Call it at ``nextTick``, and after each change.
    /// - Parameter wallMicroseconds: microseconds since 1970, for the ceiling of times; may be wrong.
    package mutating func tick(now: UInt64, wallMicroseconds: UInt64) -> [MemberAction] {
        if case .stopped = role { return [] }
        var actions: [MemberAction] = []
        if leaseRequest == nil, now >= leaseDue {
            let statement = nextLeaseStatement(now: now, wallMicroseconds: wallMicroseconds)
            leaseRequest = SentStatement(statement: statement, sentMilliseconds: now)
            actions.append(.ask(statement))
        }
        if let statement = nextRead(now: now) {
            logRequest = statement
            actions.append(.send(statement))
        }
        return actions
    }

    private func nextLeaseStatement(now: UInt64, wallMicroseconds: UInt64) -> LeaseStatement {
        switch role {
        case .catchingUp, .leading, .lookingUp:
            return .renew(
                epoch, holder: server, ceiling: max(issued, wallMicroseconds) + timing.ceilingMicroseconds)
        case .raising: return .raiseEpoch(epoch, holder: server)
        case .following, .stopped: break
        }
        guard let seen else { return store == nil && mayLead ? .create(proposed, holder: server) : .observe }
        // A row that names this server is of a claim whose reply was lost: nobody leads by it.
        let isOver = now >= seen.since + timing.leaseMilliseconds + timing.marginMilliseconds
        guard mayLead, isOver || seen.row.holder == server else { return .observe }
        return .claim(seen.row.epoch, renewals: seen.row.renewals, holder: server)
    }

    /// Takes the reply to the last statement about the lease.
    package mutating func receive(_ reply: LeaseReply, now: UInt64) -> [MemberAction] {
        guard let sent = leaseRequest else { return [] }
        leaseRequest = nil
        leaseDue = now + timing.intervalMilliseconds
        if let store, store != reply.row.store { return stop(.otherStore) }
        store = reply.row.store
        switch sent.statement {
        case .observe: return note(reply.row, now: now)
        case .create, .claim:
            return reply.isDone ? begin(reply.row, from: sent, now: now) : note(reply.row, now: now)
        case .renew:
            guard reply.isDone else { return lose(to: reply.row, now: now) }
            hold(reply.row, from: sent)
            leaseDue = role == .raising ? now : sent.sentMilliseconds + timing.intervalMilliseconds
        case .raiseEpoch:
            // Not done, but held in a later epoch: an earlier attempt was executed and its reply lost.
            guard reply.row.holder == server, reply.row.epoch > epoch else { return lose(to: reply.row, now: now) }
            epoch = reply.row.epoch
            if reply.isDone { hold(reply.row, from: sent) }
            role = .lookingUp
            leaseDue = now
            readDue = now
        }
        return []
    }

    /// The connection of the last statement about the lease has ended before its reply: it may have been executed, or
    /// may be yet.
    package mutating func leaseConnectionEnded(now: UInt64) {
        leaseRequest = nil
        leaseDue = now
    }

    private mutating func hold(_ row: LeaseRow, from sent: SentStatement) {
        leaseStart = max(leaseStart ?? 0, sent.sentMilliseconds)
        ceiling = max(ceiling, row.ceiling)
    }

    /// The server is the holder: it reads the log to its end before it leads.
    private mutating func begin(_ row: LeaseRow, from sent: SentStatement, now: UInt64) -> [MemberAction] {
        role = .catchingUp
        seen = nil
        epoch = row.epoch
        issued = max(issued, row.ceiling)
        // A renewal comes first: no time is given out under the ceiling of another leader.
        ceiling = row.ceiling
        hold(row, from: sent)
        leaseDue = now
        // A read on its way may have been executed before the claim.
        mustReadAgain = logRequest != nil
        readDue = now
        return []
    }

    /// Another server holds the lease, or the database went back to an earlier state.
    mutating func lose(to row: LeaseRow, now: UInt64) -> [MemberAction] {
        let actions = stepDown(now: now)
        return actions + note(row, now: now)
    }

    mutating func stepDown(now: UInt64) -> [MemberAction] {
        let wasLeader = isLeader
        role = .following
        inFlight = nil
        mustCompare = false
        leaseStart = nil
        leaseDue = now
        readDue = now
        return wasLeader ? [.dropStaged] : []
    }

    /// Gives up a lease that was claimed before this server leads by it, as a server does that ends.
    /// - Returns: whether there was one.
    package mutating func abandonClaim(now: UInt64) -> Bool {
        guard role == .catchingUp else { return false }
        _ = stepDown(now: now)
        return true
    }

    private mutating func note(_ row: LeaseRow, now: UInt64) -> [MemberAction] {
        // Another server leads: what is in the log counts.
        if let seen, seen.row.epoch != row.epoch { streamEnded(now: now) }
        // A standby that lacked the last renewals has taken over: a leader may have given out times by them.
        if let seen, seen.row.ceiling > row.ceiling { issued = max(issued, seen.row.ceiling) }
        if seen?.row != row { seen = SeenRow(row: row, since: now) }
        if row.holder == server { leaseDue = now }
        return []
    }

    private mutating func stop(_ reason: StopReason) -> [MemberAction] {
        let actions = stepDown(now: 0)
        role = .stopped(reason)
        return actions + [.stop(reason)]
    }
}
