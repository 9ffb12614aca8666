// Lease, append, look-up, take-over and bootstrap: every order of events within bounds, and faults that must be found.

import Storage
import TestSupport
import Testing

@testable import Replication

@Suite(.timeLimit(.minutes(20)))
struct StoreMemberTests {
    /// Failures that may meet each other, in pairs, or one of them a restart.
    private struct Pair: Sendable, CustomTestStringConvertible {
        let kinds: [Event.Failure]
        let hasRestarts: Bool

        var testDescription: String { "\(kinds)\(hasRestarts ? " and restarts" : "")" }

        static let all = Event.Failure.allCases.flatMap { first in
            [Pair(kinds: [first], hasRestarts: true)]
                + Event.Failure.allCases.filter { $0.rank > first.rank }.map {
                    Pair(kinds: [first, $0], hasRestarts: false)
                }
        }
    }

    private func bounds(_ change: (inout Bounds) -> Void) -> Bounds {
        var bounds = Bounds()
        change(&bounds)
        return bounds
    }

    @Test
    func `No order of three groups and a failure of any kind breaks a rule`() {
        let found = explore(bounds { $0.failures = 1 })
        expectNil(found.counterexample)
        expect(found.states > 10_000)
        expect(found.takeOvers > 0)
        expect(found.doneAfterFailure > 0)
        expect(found.raisedEpochs > 0)
    }

    @Test(arguments: CaseShare.of(Pair.all, 2))
    private func `No order of three groups and two failures breaks a rule`(pair: Pair) {
        let found = explore(
            bounds {
                $0.kinds = pair.kinds
                $0.hasRestarts = pair.hasRestarts
            })
        print("\(pair.testDescription): \(found.states) states")
        expectNil(found.counterexample)
        expect(found.takeOvers > 0)
        expect(found.doneAfterFailure > 0)
    }

    @Test
    func `Claims that are given up at any moment break no rule`() {
        let found = explore(
            bounds {
                $0.groups = 2
                $0.failures = 1
                $0.abandons = 2
            })
        expectNil(found.counterexample)
        expect(found.abandoned > 100)
        expect(found.takeOvers > 0)
        expect(found.doneAfterFailure > 0)
    }

    @Test
    func `Two servers that create a store at once have one store`() {
        let found = explore(
            bounds {
                $0.groups = 1
                $0.failures = 1
                $0.hasRace = true
            })
        expectNil(found.counterexample)
        expectEqual(found.takeOvers, 0)
        expect(found.doneAfterFailure > 0)
    }

    @Test
    func `No commit is at or below a time given out`() {
        let found = explore(
            bounds {
                $0.groups = 2
                $0.failures = 1
                $0.closedTimes = 1
                $0.kinds = [.replyDelayed]
            })
        expectNil(found.counterexample)
        expect(found.takeOvers > 0)
        expect(found.doneAfterFailure > 0)
    }

    @Test
    func `A server that lacks trimmed groups, or has lost its disk, starts from the base`() {
        let found = explore(
            bounds {
                $0.groups = 2
                $0.failures = 1
                $0.bases = 1
            })
        expectNil(found.counterexample)
        expect(found.basesLoaded > 0)
        expect(found.takeOvers > 0)
    }

    @Test
    func `Groups that come over the stream of a leader, soon or late, break no rule`() {
        let found = explore(
            bounds {
                $0.groups = 2
                $0.failures = 1
                $0.streams = 2
            })
        expectNil(found.counterexample)
        expect(found.streamed > 1_000)
        expect(found.takeOvers > 0)
        expect(found.doneAfterFailure > 0)
    }

    @Test
    func `A server with a stream reads the log when groups are missing, the epoch changes or the stream ends`() throws {
        var database = ModelDatabase()
        let leader = leader(of: &database, groups: 3)
        let timing = LeaseTiming(intervalMilliseconds: 0, readMilliseconds: 0, streamMilliseconds: 1_000)
        var member = StoreMember(
            server: ServerIdentity(high: 5, low: 5), timing: timing, proposed: StoreIdentity(high: 5, low: 5),
            store: leader.store)
        func wantsRead(at time: UInt64) -> Bool {
            member.logRequest = nil
            member.leaseRequest = nil
            return member.tick(now: time, wallMicroseconds: 5).contains {
                if case .send(.read) = $0 { true } else { false }
            }
        }
        expect(wantsRead(at: 1))
        let groups = database.groups
        expectEqual(member.receive(streamed: [groups[0]], now: 1), [.apply([groups[0]])])
        expectEqual(member.receive(streamed: [], now: 1)?.isEmpty, true)
        expect(!wantsRead(at: 1_000))
        expect(wantsRead(at: 1_001))
        // A group is missing: what comes after it is left.
        expectEqual(member.receive(streamed: [], now: 2_000)?.isEmpty, true)
        expectNil(member.receive(streamed: [groups[2]], now: 2_000))
        expectEqual(member.place, groups[0].place)
        expect(wantsRead(at: 2_001))
        // Those that it has are skipped.
        expectEqual(member.receive(streamed: Array(groups[..<2]), now: 3_000), [.apply([groups[1]])])
        expect(!wantsRead(at: 3_001))
        var row = try #require(database.row)
        for epoch in [1, 2] {
            _ = member.tick(now: 3_002, wallMicroseconds: 5)
            row.epoch = Epoch(UInt64(epoch))
            _ = member.receive(LeaseReply(row: row, isDone: false), now: 3_002)
            expectEqual(wantsRead(at: 3_003), epoch == 2)
        }
        expectEqual(member.receive(streamed: [], now: 4_000)?.isEmpty, true)
        expect(!wantsRead(at: 4_001))
        member.streamEnded(now: 4_001)
        expect(wantsRead(at: 4_001))
    }

    // MARK: Databases that are not what they were

    /// A server that leads, and has appended groups.
    private func leader(of database: inout ModelDatabase, groups: UInt64) -> StoreMember {
        var member = World.member(0, start: 0, Bounds())
        _ = settle(&member, database: &database, at: 0)
        for group in 1...groups {
            _ = settle(&member, database: &database, at: 0)
            guard let version = member.takeVersion(wallMicroseconds: 5) else { return member }
            _ = member.append(version: version, contentHash: group)
            _ = settle(&member, database: &database, at: 0)
        }
        return member
    }

    private func settle(_ member: inout StoreMember, database: inout ModelDatabase, at time: UInt64) -> [MemberAction] {
        var actions = member.tick(now: time, wallMicroseconds: 5)
        for _ in 0..<4 {
            if let request = member.leaseRequest,
                case .lease(let reply) = database.execute(.lease(request.statement), broken: [])
            {
                actions += member.receive(reply, now: time)
            }
            if let request = member.logRequest, case .log(let reply) = database.execute(.log(request), broken: []) {
                actions += member.receive(reply, now: time)
            }
            actions += member.tick(now: time, wallMicroseconds: 5)
        }
        return actions
    }

    @Test
    func `A leader whose database was restored to yesterday drops what is staged and discards its state`() {
        var database = ModelDatabase()
        var member = leader(of: &database, groups: 3)
        expect(member.role == .leading && member.place.sequence == 3)
        database.groups.removeLast(2)
        if let version = member.takeVersion(wallMicroseconds: 9) { _ = member.append(version: version, contentHash: 9) }
        let actions = settle(&member, database: &database, at: 0)
        expect(actions.contains(.dropStaged))
        expect(actions.contains(.discardState))
        expectEqual(member.place, database.end)
    }

    @Test
    func `A server that takes over begins above every ceiling that it has seen`() {
        let store = StoreIdentity.random()
        let (leader, server) = (ServerIdentity(high: 0, low: 1), ServerIdentity(high: 0, low: 2))
        var member = StoreMember(server: server, timing: LeaseTiming(), proposed: store, store: store)
        func reply(_ row: LeaseRow, isDone: Bool = false, at now: UInt64) {
            let actions =
                member.tick(now: now, wallMicroseconds: 5)
                + member.receive(
                    LeaseReply(row: row, isDone: isDone), now: now)
            expect(actions.contains { if case .ask = $0 { true } else { false } })
        }
        var row = LeaseRow(store: store, epoch: Epoch(1), renewals: 8, holder: leader, ceiling: 100)
        reply(row, at: 0)
        // A standby that lacks the last renewal has taken over.
        (row.renewals, row.ceiling) = (7, 90)
        reply(row, at: 500)
        (row.epoch, row.renewals, row.holder) = (Epoch(2), 8, server)
        reply(row, isDone: true, at: 3_000)
        expectEqual(member.role, .catchingUp)
        expect(member.issued >= 100)
    }

    @Test
    func `A server with the state of another store stops`() {
        var database = ModelDatabase()
        _ = leader(of: &database, groups: 1)
        var member = World.member(1, start: 0, Bounds())
        member.store = StoreIdentity(high: 99, low: 99)
        expect(settle(&member, database: &database, at: 0).contains(.stop(.otherStore)))
        expect(member.tick(now: 100, wallMicroseconds: 5).isEmpty)
    }

    // MARK: Planted faults

    /// A rule that is broken on purpose, and what the explorer must say.
    private struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let rule: String
        var change: @Sendable (inout Bounds) -> Void

        static let all = [
            Fault(testDescription: "appends ignore the epoch", rule: "") { $0.broken = .appendIgnoresEpoch },
            Fault(testDescription: "a look-up without a new epoch", rule: "") {
                $0.broken = [.appendTakesEarlierEpoch, .appendIgnoresChain]
            },
            Fault(testDescription: "claims ignore renewals", rule: "two servers hold the lease") {
                $0.broken = .claimIgnoresRenewals
            },
            Fault(testDescription: "renewals ignore the epoch", rule: "two servers hold the lease") {
                $0.broken = .renewIgnoresEpoch
            },
            Fault(testDescription: "claims forget the ceiling", rule: "a commit is not above a time given out") {
                $0.broken = .claimForgetsCeiling
                $0.closedTimes = 1
            },
            Fault(testDescription: "reads skip what is trimmed", rule: "") {
                $0.broken = .readSkipsTrimmed
                $0.bases = 1
            },
            Fault(testDescription: "the holder counts from the reply", rule: "two servers hold the lease") {
                $0.countsFromReply = true
            },
            Fault(testDescription: "servers with different leases", rule: "two servers hold the lease") {
                $0.leases = [2, 1]
            },
            Fault(testDescription: "a lost append counts as done", rule: "an acknowledged group is lost") {
                $0.trustsLostAppends = true
            },
            Fault(testDescription: "a leader streams what is staged", rule: "a server has") {
                $0.streamsStaged = true
                $0.streams = 1
            },
        ]
    }

    @Test(arguments: Fault.all)
    private func `A planted fault is found`(fault: Fault) {
        let found = explore(
            bounds {
                $0.groups = 2
                $0.failures = 1
                fault.change(&$0)
            })
        expect(found.counterexample != nil)
        expectEqual(found.counterexample?.hasPrefix(fault.rule), true)
    }
}

extension Event.Failure {
    fileprivate var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
