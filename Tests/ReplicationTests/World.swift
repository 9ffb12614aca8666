// Everything there is in one state of an exploration, what may happen next, and what must hold.

import Storage

@testable import Replication

/// What an exploration may do, and which faults are planted.
struct Bounds: Hashable {
    var groups = 3
    var failures = 2
    var timeSteps: UInt64 = 2
    /// How often a time is given out.
    var closedTimes = 0
    /// How often a base is made of all there is, and the log trimmed up to it.
    var bases = 0
    /// How often groups arrive over the stream of a leader.
    var streams = 0
    var kinds = Event.Failure.allCases
    var hasRestarts = true
    /// How often a server gives up a lease that it has claimed.
    var abandons = 0
    /// Both servers may create the store.
    var hasRace = false
    /// The lease as each server believes it to be, in steps.
    var leases: [UInt64] = [1, 1]
    var broken: ModelDatabase.Broken = []
    /// The holder counts its lease from the reply.
    var countsFromReply = false
    /// An append whose reply is lost counts as done.
    var trustsLostAppends = false
    /// A leader streams groups before they are durable.
    var streamsStaged = false
}

/// Two servers, their database, and what is on its way between them.
struct World: Hashable {
    var database = ModelDatabase()
    var members: [StoreMember]
    /// By server, for the lease and for the log.
    var delays: [[Delay]]
    /// Statements whose connection has ended, and that may be executed yet.
    var late: [AnyStatement] = []
    var time: UInt64 = 0
    var nextContents: UInt64 = 1
    var acknowledged: [UInt64] = []
    /// The highest time given out.
    var timeGivenOut: UInt64 = 0
    var failures = 0
    var closedTimes = 0
    var bases = 0
    var streams = 0
    var abandons = 0
    var starts: UInt64 = 0
    /// The first rule that was found broken.
    var violation: String?

    init(_ bounds: Bounds) {
        members = []
        delays = [[.none, .none], [.none, .none]]
        for index in 0..<2 { members.append(Self.member(index, start: 0, bounds)) }
    }

    static func member(_ index: Int, start: UInt64, _ bounds: Bounds) -> StoreMember {
        StoreMember(
            server: ServerIdentity(high: UInt64(index), low: start),
            timing: LeaseTiming(
                leaseMilliseconds: bounds.leases[index], intervalMilliseconds: 0, marginMilliseconds: 0,
                ceilingMicroseconds: bounds.closedTimes > 0 ? 2 : 1_000),
            proposed: StoreIdentity(high: UInt64(index), low: 7))
    }

    /// The clock of the first server is ahead by an hour.
    func wall(_ server: Int) -> UInt64 { time + (server == 0 ? 3_600_000_000 : 1_000) }
}

/// What may happen.
enum Event: Hashable {
    case timePasses
    /// A server sends what is due; all of it is executed and answered, unless one statement meets a failure.
    case tick(Int, Failure?, Channel)
    /// A leader appends the next group.
    case commit(Int, Failure?)
    /// A delayed statement is executed if need be, and its reply arrives.
    case proceed(Int, Channel)
    /// A statement whose connection has ended is executed.
    case execute(Int)
    case closeTime(Int)
    case restart(Int, keepsState: Bool)
    /// A server that has claimed the lease gives that up, with its connections.
    case abandonClaim(Int)
    case makeBase(Int)
    /// A server gets all that a leader has streamed, now or long ago.
    case stream(Int)

    enum Channel: Int, CaseIterable { case lease, log }

    enum Failure: CaseIterable {
        /// The connection ends: the statement is never executed, is executed before, or is executed later.
        case statementLost, replyLost, statementLate
        /// The connection is slow: the statement is executed later, or its reply arrives later.
        case statementDelayed, replyDelayed
        /// The statement is executed again later.
        case statementDoubled
    }
}

/// What holds up a statement.
enum Delay: Hashable {
    case none
    case statement
    case reply(AnyReply)
}

// MARK: - What may happen

extension World {
    func forEachEvent(_ bounds: Bounds, _ body: (Event) -> Void) {
        if time < bounds.timeSteps { body(.timePasses) }
        for index in late.indices { body(.execute(index)) }
        let mayFail = failures < bounds.failures
        // Which server is the first one does not matter.
        for server in database.row == nil && !bounds.hasRace ? 0..<1 : members.indices {
            body(.tick(server, nil, .lease))
            let member = members[server]
            let mayCommit = member.canAppend && nextContents <= UInt64(bounds.groups)
            if mayCommit { body(.commit(server, nil)) }
            for channel in Event.Channel.allCases where delays[server][channel.rawValue] != .none {
                body(.proceed(server, channel))
            }
            if closedTimes < bounds.closedTimes, member.holdsLease(now: time) { body(.closeTime(server)) }
            if bases < bounds.bases, member.canAppend, member.place.sequence > 0 { body(.makeBase(server)) }
            if streams < bounds.streams { body(.stream(server)) }
            if abandons < bounds.abandons { body(.abandonClaim(server)) }
            guard mayFail else { continue }
            for failure in bounds.kinds {
                for channel in Event.Channel.allCases { body(.tick(server, failure, channel)) }
                if mayCommit { body(.commit(server, failure)) }
            }
            guard bounds.hasRestarts else { continue }
            body(.restart(server, keepsState: true))
            if bounds.bases > 0 { body(.restart(server, keepsState: false)) }
        }
    }

    private func statement(_ server: Int, _ channel: Event.Channel) -> AnyStatement? {
        switch channel {
        case .lease: members[server].leaseRequest.map { .lease($0.statement) }
        case .log: members[server].logRequest.map { .log($0) }
        }
    }

    /// - Returns: false if nothing has changed.
    mutating func perform(_ event: Event, _ bounds: Bounds) -> Bool {
        switch event {
        case .timePasses: time += 1
        case .tick(let server, let failure, let channel):
            if members[server].tick(now: time, wallMicroseconds: wall(server)).isEmpty { return false }
            guard settle(server, failure, channel, bounds) else { return false }
        case .commit(let server, let failure):
            guard let version = members[server].takeVersion(wallMicroseconds: wall(server)) else { return false }
            _ = members[server].append(version: version, contentHash: nextContents)
            nextContents += 1
            guard settle(server, failure, .log, bounds) else { return false }
        case .proceed(let server, let channel): proceed(server, channel, bounds)
        case .execute(let index): _ = execute(late.remove(at: index), bounds)
        case .closeTime(let server):
            guard let time = members[server].closeTime(wallMicroseconds: wall(server), isIdle: true, now: time) else {
                return false
            }
            timeGivenOut = max(timeGivenOut, time)
            closedTimes += 1
        case .restart(let server, let keepsState): restart(server, keepsState: keepsState, bounds)
        case .abandonClaim(let server):
            guard members[server].abandonClaim(now: time) else { return false }
            abandons += 1
            for channel in Event.Channel.allCases { abandonConnection(server, channel, bounds) }
        case .makeBase(let server):
            database.trimmedThrough = Int(members[server].place.sequence)
            bases += 1
        case .stream(let server):
            let place = members[server].place
            let actions = members[server].receive(streamed: streamed(bounds), now: time)
            if actions == nil || members[server].place == place { return false }
            streams += 1
        }
        check(bounds)
        return true
    }

    /// The groups that leaders have streamed: those up to the last that is acknowledged.
    private func streamed(_ bounds: Bounds) -> [GroupHeader] {
        var groups = Array(database.groups[..<acknowledgedEnd])
        guard bounds.streamsStaged, let staged = members.compactMap(\.inFlight).first else { return groups }
        groups.removeAll { $0.sequence >= staged.sequence }
        return groups + [staged]
    }

    /// The number of groups up to the last that is acknowledged.
    private var acknowledgedEnd: Int {
        database.groups.lastIndex { acknowledged.contains($0.contentHash) }.map { $0 + 1 } ?? 0
    }

    /// Executes what a server has sent, and lets one statement meet a failure.
    /// - Returns: false if there is no statement for the failure.
    private mutating func settle(
        _ server: Int, _ failure: Event.Failure?, _ failing: Event.Channel, _ bounds: Bounds
    ) -> Bool {
        var failure = failure
        for channel in Event.Channel.allCases {
            while delays[server][channel.rawValue] == .none, let statement = statement(server, channel) {
                if channel == failing, let met = failure.take() {
                    fail(met, statement, server, channel, bounds)
                    if channel == .log { break }
                } else {
                    deliver(execute(statement, bounds), to: server, bounds)
                }
            }
        }
        return failure == nil
    }

    private mutating func proceed(_ server: Int, _ channel: Event.Channel, _ bounds: Bounds) {
        let delay = delays[server][channel.rawValue]
        delays[server][channel.rawValue] = .none
        switch delay {
        case .none: break
        case .statement:
            if let statement = statement(server, channel) { deliver(execute(statement, bounds), to: server, bounds) }
        case .reply(let reply): deliver(reply, to: server, bounds)
        }
        _ = settle(server, nil, channel, bounds)
    }

    private mutating func fail(
        _ failure: Event.Failure, _ statement: AnyStatement, _ server: Int, _ channel: Event.Channel, _ bounds: Bounds
    ) {
        failures += 1
        switch failure {
        case .statementLost: endConnection(server, channel, bounds)
        case .replyLost:
            _ = execute(statement, bounds)
            endConnection(server, channel, bounds)
        case .statementLate:
            late.append(statement)
            endConnection(server, channel, bounds)
        case .statementDelayed: delays[server][channel.rawValue] = .statement
        case .replyDelayed: delays[server][channel.rawValue] = .reply(execute(statement, bounds))
        case .statementDoubled:
            late.append(statement)
            deliver(execute(statement, bounds), to: server, bounds)
        }
    }

    private mutating func endConnection(_ server: Int, _ channel: Event.Channel, _ bounds: Bounds) {
        switch channel {
        case .lease: members[server].leaseConnectionEnded(now: time)
        case .log:
            if bounds.trustsLostAppends, case .append? = members[server].logRequest {
                deliver(.log(.appended), to: server, bounds)
            } else {
                members[server].logConnectionEnded(now: time)
            }
        }
        members[server].connectionOpened(now: time)
    }

    /// Ends a connection whose statement may be on its way yet.
    private mutating func abandonConnection(_ server: Int, _ channel: Event.Channel, _ bounds: Bounds) {
        guard let statement = statement(server, channel) else { return }
        if delays[server][channel.rawValue] == .statement { late.append(statement) }
        delays[server][channel.rawValue] = .none
        endConnection(server, channel, bounds)
    }

    private mutating func restart(_ server: Int, keepsState: Bool, _ bounds: Bounds) {
        failures += 1
        starts += 1
        let old = members[server]
        members[server] = Self.member(server, start: starts, bounds)
        delays[server] = [.none, .none]
        guard keepsState else { return }
        members[server].store = old.store
        members[server].place = old.place
    }

    private mutating func execute(_ statement: AnyStatement, _ bounds: Bounds) -> AnyReply {
        let count = database.groups.count
        let end = database.end
        let reply = database.execute(statement, broken: bounds.broken)
        guard database.groups.count > count, let group = database.groups.last else { return reply }
        if !group.follows(end) { violation = "a group does not continue the log" }
        if group.version <= timeGivenOut { violation = "a commit is not above a time given out" }
        return reply
    }

    private mutating func deliver(_ reply: AnyReply, to server: Int, _ bounds: Bounds) {
        let actions: [MemberAction]
        switch reply {
        case .lease(let reply):
            if bounds.countsFromReply { members[server].leaseRequest?.sentMilliseconds = time }
            actions = members[server].receive(reply, now: time)
        case .log(let reply): actions = members[server].receive(reply, now: time)
        }
        for action in actions {
            switch action {
            case .acknowledge(let group): acknowledged.append(group.contentHash)
            case .discardState: violation = "a server discards its state"
            case .stop: violation = "a server stops"
            case .ask, .send, .lead, .dropStaged, .apply, .loadBase: break
            }
        }
    }
}

// MARK: - What must hold

extension World {
    private mutating func check(_ bounds: Bounds) {
        if violation == nil { violation = brokenRule }
    }

    private var brokenRule: String? {
        let contents = database.groups.map(\.contentHash)
        if Set(contents).count != contents.count { return "a group is in the log twice" }
        if Set(acknowledged).count != acknowledged.count { return "a group is acknowledged twice" }
        for group in acknowledged where !contents.contains(group) { return "an acknowledged group is lost" }
        for member in members {
            let sequence = Int(member.place.sequence)
            if sequence > contents.count { return "a server has a group that is not in the log" }
            if sequence > 0, database.groups[sequence - 1].hash != member.place.hash {
                return "a server has another group than the log"
            }
            if let newest = member.newestPlace(now: time), newest.sequence < acknowledgedEnd {
                return "a strict read is older than an acknowledgement"
            }
        }
        if members.allSatisfy({ $0.holdsLease(now: time) }) { return "two servers hold the lease" }
        return nil
    }
}
