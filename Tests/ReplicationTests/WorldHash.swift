// Which states are the same for everything that can follow: times that have passed are equal, and counts of renewals
// that differ from the row's, and leases that have ended. Versions count only if times are given out.

@testable import Replication

extension World {
    /// A number for all states from which the same can follow.
    func fingerprint(_ bounds: Bounds) -> Int {
        var hash = StateHash(row: database.row, groups: database.groups, time: time, hasTimes: bounds.closedTimes > 0)
        hash.add(self)
        return hash.hasher.finalize()
    }
}

private struct StateHash {
    let row: LeaseRow?
    let groups: [GroupHeader]
    let time: UInt64
    let hasTimes: Bool
    var hasher = Hasher()

    mutating func add(_ world: World) {
        for group in groups { add(group) }
        if let row { add(row) }
        for member in world.members { add(member) }
        for delay in world.delays.joined() { add(delay) }
        for statement in world.late { add(statement) }
        hasher.combine(time)
        hasher.combine(world.database.trimmedThrough)
        hasher.combine(world.nextContents)
        hasher.combine(world.acknowledged)
        if hasTimes { hasher.combine(world.timeGivenOut) }
        hasher.combine(world.failures)
        hasher.combine(world.closedTimes)
        hasher.combine(world.bases)
        hasher.combine(world.streams)
        hasher.combine(world.abandons)
    }

    mutating func add(_ member: StoreMember) {
        let lease = member.timing.leaseMilliseconds
        hasher.combine(member.server.high)
        hasher.combine(member.server.low)
        hasher.combine(member.role)
        hasher.combine(member.store?.high)
        hasher.combine(member.epoch.number)
        hasher.combine(member.ceiling > member.issued + 10)
        if hasTimes {
            hasher.combine(member.issued)
            hasher.combine(member.ceiling)
        }
        add(member.place)
        hasher.combine(member.inFlight?.contentHash)
        if let request = member.logRequest { add(.log(request)) }
        hasher.combine(member.mustReadAgain)
        hasher.combine(member.mustCompare)
        hasher.combine(member.leaseStart.map { max($0 + lease, time) })
        if let seen = member.seen {
            add(seen.row)
            hasher.combine(max(seen.since + lease, time))
        }
        if let request = member.leaseRequest {
            add(.lease(request.statement))
            hasher.combine(max(request.sentMilliseconds + lease, time))
        }
    }

    mutating func add(_ place: LogPlace) {
        let sequence = Int(place.sequence)
        hasher.combine(sequence)
        hasher.combine(sequence == 0 || sequence <= groups.count && groups[sequence - 1].hash == place.hash)
    }

    mutating func add(_ group: GroupHeader) {
        hasher.combine(group.sequence)
        hasher.combine(group.contentHash)
        hasher.combine(group.epoch.number)
        if hasTimes { hasher.combine(group.version) }
    }

    mutating func add(_ row: LeaseRow) {
        hasher.combine(row.store.high)
        hasher.combine(row.epoch.number)
        hasher.combine(row.holder.high)
        hasher.combine(row.holder.low)
        hasher.combine(row.renewals == self.row?.renewals)
        if hasTimes { hasher.combine(row.ceiling) }
    }

    mutating func add(_ delay: Delay) {
        switch delay {
        case .none: hasher.combine(0)
        case .statement: hasher.combine(1)
        case .reply(.lease(let reply)):
            add(reply.row)
            hasher.combine(reply.isDone)
        case .reply(.log(.groups(let groups, _))): for group in groups { add(group) }
        case .reply(.log(let reply)): hasher.combine(reply)
        }
    }

    mutating func add(_ statement: AnyStatement) {
        switch statement {
        case .lease(.create(_, let holder)): hasher.combine(holder)
        case .lease(.observe): hasher.combine(2)
        case .lease(.claim(let epoch, let renewals, let holder)):
            hasher.combine(epoch.number)
            hasher.combine(renewals == row?.renewals)
            hasher.combine(holder)
        case .lease(.renew(let epoch, let holder, let ceiling)):
            hasher.combine(epoch.number)
            hasher.combine(holder)
            if hasTimes { hasher.combine(ceiling) }
        case .lease(.raiseEpoch(let epoch, let holder)):
            hasher.combine(epoch.number)
            hasher.combine(holder)
        case .log(.append(let group)): add(group)
        case .log(.read(let place)): add(place)
        }
    }
}
