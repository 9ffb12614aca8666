// The lease: statements of the member as SQL, and replies for it.

internal import Basics
internal import Replication

extension MemberDriver {
    /// Does what the member wants.
    func perform(_ actions: [MemberAction]) {
        for action in actions {
            guard case .ask(let statement) = action else {
                logActions.append(action)
                continue
            }
            leaseStatement = statement
            if wantsToClaim != nil { settings.loop.followers.ask(self) }
        }
        pump()
    }

    func sendLease() {
        guard let statement = leaseStatement, wantsToClaim == nil else { return }
        // A closed time goes with a renewal only while nobody else can lead.
        var closed: UInt64 = 0
        if case .renew = statement, state.isLeading {
            let time = min(host.closedTime, member.ceiling)
            if state.holdsLease { closed = time }
        }
        let sql = settings.tables.statement(statement, closed: closed, timeline: 0)
        if let event = lease.send(sql) { handle(event, of: lease) }
    }

    func takeLease(_ outcome: SQLOutcome) {
        let now = BootClock.milliseconds()
        switch outcome {
        case .failed(let failure):
            noteRefusal(failure.description, of: lease)
            loseLease(after: failure.state == "55P03" ? 0 : 200)
        case .rows(let rows, let hasWarning):
            // A commit that was cancelled while it waited for the standby succeeds with a warning.
            guard !hasWarning, let row = StoreRow(rows) else { return loseLease(after: 100) }
            leaseStatement = nil
            compareClocks(row.clock)
            if isKeptForAnother(row) || BootClock.milliseconds() < claimsAfter || unreadableSince != nil {
                member.mayLead = false
            }
            if row.level == StoreTables.movedLevel {
                return end(.refused("the store was moved out of the database by hearth migrate"))
            }
            if row.level == StoreTables.leavingLevel {
                member.mayLead = false
            } else if row.level > settings.levelMax {
                let isShared = StoreTables.isSharing(level: row.level)
                return end(
                    .refused(
                        isShared
                            ? "the store shares the databases of its cluster: serve it with --cluster-stores"
                            : "the store has records of a later version of Hearth: upgrade this server"))
            }
            if let timeline = settings.timeline, row.timeline != timeline { return end(.newTimeline) }
            state.change { figures in
                figures.leader = row.address
                figures.level = row.level
            }
            noteAddress(row)
            if row.lease.holder != member.server { host.follow(row.address) }
            perform(member.receive(LeaseReply(row: row.lease, isDone: row.isDone), now: now))
            state.update(member)
        }
    }

    /// The outcome of the statement about the lease is not known, or it was refused.
    func loseLease(after milliseconds: UInt64 = 0) {
        leaseStatement = nil
        member.leaseConnectionEnded(now: BootClock.milliseconds() + milliseconds)
    }

    /// Whether the last leader has given the lease up for another server, and that one still has time to claim it.
    private func isKeptForAnother(_ row: StoreRow) -> Bool {
        let nobody = ServerIdentity(high: 0, low: 0)
        guard row.lease.holder == nobody, !row.address.isEmpty, row.address != settings.tables.advertised else {
            keptSince = nil
            return false
        }
        let now = BootClock.milliseconds()
        let since = keptSince ?? now
        keptSince = since
        return now < since + Self.keptMilliseconds
    }

    /// Reports a server that leads under the address of this one. The row may also be that of an earlier start of this
    /// server; then nobody renews it.
    private func noteAddress(_ row: StoreRow) {
        let lease = row.lease
        guard row.address == settings.tables.advertised, lease.holder != member.server else { return namesake = nil }
        if let namesake, namesake.holder == lease.holder {
            if namesake.renewals != lease.renewals { namesakeRenewals += 1 }
        } else {
            namesakeRenewals = 0
        }
        namesake = lease
        // The last renewal of an earlier start may come after the first look.
        if namesakeRenewals > 1, !isAddressReported {
            isAddressReported = true
            host.note(.addressIsTaken)
        }
    }

    private func compareClocks(_ database: UInt64) {
        let wall = settings.wallClock()
        databaseClock = DatabaseClock(microseconds: database, takenAt: BootClock.milliseconds())
        let ahead = Int64(clamping: wall) - Int64(clamping: database)
        let isRight = ahead.magnitude <= DatabaseClock.differenceMax
        if isRight != clockIsRight { host.note(isRight ? .clockAgrees : .clockDiffers(milliseconds: ahead / 1_000)) }
        clockIsRight = isRight
        state.change { $0.isClockWrong = !isRight }
        member.mayLead = isRight
    }
}
