// The pool's decisions, with a clock that only the test moves.

import TestSupport
import Testing

@testable import HearthClient

private typealias Machine = PoolStateMachine<Int>
private typealias ID = Machine.ConnectionID

@Suite(.timeLimit(.minutes(20))) struct PoolStateMachineTests {
    private static let millisecond: UInt64 = 1_000_000

    private func machine(
        connections: Int = 2, growAt: Int = 4, streams: Int = 100, waiting: Int = 10
    ) -> Machine {
        var configuration = Machine.Configuration()
        configuration.connectionsMax = connections
        configuration.growthThreshold = growAt
        configuration.streamsPerConnection = streams
        configuration.waitingMax = waiting
        configuration.backoff = BackoffPolicy(
            initial: .milliseconds(100), multiplier: 2, maximum: .seconds(1), jitter: 0)
        return Machine(configuration: configuration, jitterSeed: 1)
    }

    private func take(_ machine: inout Machine) -> [Machine.Action] {
        defer { machine.actions = [] }
        return machine.actions
    }

    /// A machine whose slot 0 is connected.
    private func connectedMachine(
        connections: Int = 2, growAt: Int = 4, streams: Int = 100
    ) -> Machine {
        var machine = machine(connections: connections, growAt: growAt, streams: streams)
        _ = machine.submit(0, lane: .any, mayWait: true, now: 0)
        let id = ID(slot: 0, generation: 0)
        machine.connected(id, streamLimit: nil)
        machine.finished(on: id, answered: true)
        machine.actions = []
        return machine
    }

    @Test
    func `The first call dials, waits, and is sent when the connection is up`() {
        var machine = machine()
        expectEqual(machine.submit(7, lane: .any, mayWait: true, now: 0), .waiting)
        let id = ID(slot: 0, generation: 0)
        expectEqual(take(&machine).descriptions, ["connect 0.0"])
        machine.connected(id, streamLimit: nil)
        expectEqual(take(&machine).descriptions, ["send 7 on 0.0"])
        expectEqual(machine.inFlightCount, 1)
        machine.finished(on: id, answered: true)
        expectEqual(machine.inFlightCount, 0)
    }

    @Test
    func `A second call that waits does not dial again`() {
        var machine = machine()
        _ = machine.submit(1, lane: .any, mayWait: true, now: 0)
        _ = machine.submit(2, lane: .any, mayWait: true, now: 0)
        expectEqual(take(&machine).descriptions, ["connect 0.0"])
        machine.connected(ID(slot: 0, generation: 0), streamLimit: nil)
        expectEqual(take(&machine).descriptions, ["send 1 on 0.0", "send 2 on 0.0"])
    }

    @Test
    func `Calls go to the connection with the fewest in flight, and a busy pool grows to its maximum`() {
        var machine = connectedMachine(growAt: 2)
        for call in 1...2 {
            expectEqual(machine.submit(call, lane: .any, mayWait: true, now: 0), .send(ID(slot: 0, generation: 0)))
        }
        expect(take(&machine).isEmpty)
        _ = machine.submit(3, lane: .any, mayWait: true, now: 0)
        expectEqual(take(&machine).descriptions, ["connect 1.0"])
        _ = machine.submit(4, lane: .any, mayWait: true, now: 0)
        expect(take(&machine).isEmpty, "one dial at a time")
        machine.connected(ID(slot: 1, generation: 0), streamLimit: nil)
        expectEqual(machine.submit(5, lane: .any, mayWait: true, now: 0), .send(ID(slot: 1, generation: 0)))
        for call in 6...30 { _ = machine.submit(call, lane: .any, mayWait: true, now: 0) }
        expect(take(&machine).isEmpty, "two connections are the maximum")
        expectEqual(machine.inFlightCount, 30)
    }

    @Test
    func `A full connection makes calls wait, and each finished call lets one go, in order`() {
        var machine = connectedMachine(connections: 1, streams: 2)
        let id = ID(slot: 0, generation: 0)
        for call in 1...2 { expectEqual(machine.submit(call, lane: .any, mayWait: true, now: 0), .send(id)) }
        for call in 3...4 { expectEqual(machine.submit(call, lane: .any, mayWait: true, now: 0), .waiting) }
        machine.finished(on: id, answered: true)
        expectEqual(take(&machine).descriptions, ["send 3 on 0.0"])
        machine.finished(on: id, answered: true)
        expectEqual(take(&machine).descriptions, ["send 4 on 0.0"])
    }

    @Test
    func `A failed dial is repeated after a growing wait, not before`() {
        var machine = machine()
        _ = machine.submit(1, lane: .any, mayWait: true, now: 0)
        machine.lost(ID(slot: 0, generation: 0), now: 0)
        expectEqual(take(&machine).descriptions, ["connect 0.0", "wake at 100 ms"])
        machine.timerFired(now: 99 * Self.millisecond)
        expectEqual(take(&machine).descriptions, ["wake at 100 ms"])
        machine.timerFired(now: 100 * Self.millisecond)
        expectEqual(take(&machine).descriptions, ["connect 0.1"])
        machine.lost(ID(slot: 0, generation: 1), now: 150 * Self.millisecond)
        expectEqual(take(&machine).descriptions, ["wake at 350 ms"])
        machine.timerFired(now: 350 * Self.millisecond)
        machine.connected(ID(slot: 0, generation: 2), streamLimit: nil)
        expectEqual(take(&machine).descriptions, ["connect 0.2", "send 1 on 0.2"])
    }

    @Test
    func `A dial that fails lets the calls fail that must not wait, and keeps the others`() {
        var machine = machine()
        _ = machine.submit(1, lane: .any, mayWait: false, now: 0)
        _ = machine.submit(2, lane: .any, mayWait: true, now: 0)
        _ = machine.submit(3, lane: .ordered(1), mayWait: false, now: 0)
        machine.actions = []
        machine.lost(ID(slot: 0, generation: 0), now: 0)
        expectEqual(take(&machine).descriptions, ["fail 1 notConnected", "fail 3 notConnected", "wake at 100 ms"])
        expectEqual(machine.submit(4, lane: .any, mayWait: false, now: 50), .rejected(.notConnected))
        expectEqual(machine.waitingCount, 1)
    }

    @Test
    func `A connection that worked and is lost is dialled again at once`() {
        var machine = connectedMachine()
        expectEqual(machine.submit(1, lane: .any, mayWait: true, now: 0), .send(ID(slot: 0, generation: 0)))
        machine.lost(ID(slot: 0, generation: 0), now: 0)
        expectEqual(machine.inFlightCount, 0)
        expectEqual(machine.submit(1, lane: .any, mayWait: true, now: 0), .waiting)
        expectEqual(take(&machine).descriptions, ["connect 0.1"])
    }

    @Test
    func `Connections that are lost before they answer anything wait longer and longer`() {
        var machine = machine()
        _ = machine.submit(1, lane: .any, mayWait: true, now: 0)
        machine.connected(ID(slot: 0, generation: 0), streamLimit: nil)
        machine.lost(ID(slot: 0, generation: 0), now: 0)
        machine.actions = []
        _ = machine.submit(1, lane: .any, mayWait: true, now: 0)
        machine.connected(ID(slot: 0, generation: 1), streamLimit: nil)
        machine.lost(ID(slot: 0, generation: 1), now: 0)
        machine.actions = []
        _ = machine.submit(1, lane: .any, mayWait: true, now: 0)
        expectEqual(take(&machine).descriptions, ["wake at 200 ms"])
    }

    @Test
    func `After go-away the calls in flight finish, new ones dial, and the last one closes the old connection`() {
        var machine = connectedMachine()
        let old = ID(slot: 0, generation: 0)
        _ = machine.submit(1, lane: .any, mayWait: true, now: 0)
        machine.goingAway(old, now: 0)
        expect(take(&machine).isEmpty)
        expectEqual(machine.submit(2, lane: .any, mayWait: true, now: 0), .waiting)
        expectEqual(take(&machine).descriptions, ["connect 0.1"])
        machine.finished(on: old, answered: true)
        expectEqual(take(&machine).descriptions, ["close 0.0"])
        machine.lost(old, now: 0)
        machine.connected(ID(slot: 0, generation: 1), streamLimit: nil)
        expectEqual(take(&machine).descriptions, ["send 2 on 0.1"])
    }

    @Test
    func `Ordered calls travel on slot 0 in the order of their numbers, also when they come back`() {
        var machine = connectedMachine(growAt: 1)
        let first = ID(slot: 0, generation: 0)
        for call in 1...3 {
            expectEqual(machine.submit(call, lane: .ordered(UInt64(call)), mayWait: true, now: 0), .send(first))
        }
        machine.lost(first, now: 0)
        machine.actions = []
        // They come back in any order, and a new one joins them.
        for call in [3, 1] { _ = machine.submit(call, lane: .ordered(UInt64(call)), mayWait: true, now: 0) }
        _ = machine.submit(4, lane: .ordered(4), mayWait: true, now: 0)
        _ = machine.submit(2, lane: .ordered(2), mayWait: true, now: 0)
        machine.actions = []
        machine.connected(ID(slot: 0, generation: 1), streamLimit: nil)
        expectEqual(take(&machine).descriptions, ["send 1 on 0.1", "send 2 on 0.1", "send 3 on 0.1", "send 4 on 0.1"])
    }

    @Test
    func `An ordered call does not overtake one that waits for a full connection`() {
        var machine = connectedMachine(streams: 1)
        let id = ID(slot: 0, generation: 0)
        expectEqual(machine.submit(1, lane: .ordered(1), mayWait: true, now: 0), .send(id))
        expectEqual(machine.submit(2, lane: .ordered(2), mayWait: true, now: 0), .waiting)
        expectEqual(machine.submit(3, lane: .ordered(3), mayWait: true, now: 0), .waiting)
        machine.finished(on: id, answered: true)
        expectEqual(take(&machine).descriptions, ["send 2 on 0.0"])
        machine.finished(on: id, answered: true)
        expectEqual(take(&machine).descriptions, ["send 3 on 0.0"])
    }

    @Test
    func
        `Ordered calls that wait by the hundred thousand are sent one after the other, also after one that comes back`()
        throws
    {
        // A cost in proportion to the square of their number takes most of a minute.
        var machine = connectedMachine(streams: 1)
        let id = ID(slot: 0, generation: 0)
        let count = 300_000
        for call in 1...count {
            _ = machine.submit(call, lane: .ordered(UInt64(call)), mayWait: true, isNew: false, now: 0)
        }
        for call in 1..<count {
            if call % 2 == 0 {
                // The server refuses the call for a time. It comes back while it holds the others.
                machine.holdOrdered(after: UInt64(call))
                machine.finished(on: id, answered: true)
                machine.orderedEnded(UInt64(call), .unknown)
                expectEqual(machine.submit(call, lane: .ordered(UInt64(call)), mayWait: true, now: 0), .send(id))
                machine.holdOrdered(after: nil)
            }
            machine.orderedEnded(UInt64(call), .applied)
            machine.finished(on: id, answered: true)
            let actions = take(&machine).descriptions
            try #require(actions == ["send \(call + 1) on 0.0"])
        }
        expectEqual(machine.waitingCount, 0)
    }

    @Test
    func `While an ordered call is about to be sent again, those after it wait, and those before it do not`() {
        var machine = connectedMachine()
        let id = ID(slot: 0, generation: 0)
        for call in 1...3 { _ = machine.submit(call, lane: .ordered(UInt64(call)), mayWait: true, now: 0) }
        for _ in 1...3 { machine.finished(on: id, answered: true) }
        // The server has refused 2 and 3 for a time.
        machine.holdOrdered(after: 2)
        expectEqual(machine.submit(4, lane: .ordered(4), mayWait: true, now: 0), .waiting)
        expectEqual(machine.submit(3, lane: .ordered(3), mayWait: true, now: 0), .waiting)
        expectEqual(machine.submit(9, lane: .any, mayWait: true, now: 0), .send(id))
        expectEqual(machine.submit(1, lane: .ordered(1), mayWait: true, now: 0), .send(id))
        machine.finished(on: id, answered: true)
        expect(take(&machine).isEmpty)
        expectEqual(machine.submit(2, lane: .ordered(2), mayWait: true, now: 0), .send(id))
        machine.holdOrdered(after: nil)
        expectEqual(take(&machine).descriptions, ["send 3 on 0.0", "send 4 on 0.0"])
    }

    @Test
    func `After a refusal one ordered call is in flight, and one more with each that is applied`() {
        var machine = connectedMachine()
        let id = ID(slot: 0, generation: 0)
        func end(_ call: UInt64, _ end: OrderedFlight<Int>.End) {
            machine.orderedEnded(call, end)
            machine.finished(on: id, answered: true)
        }
        for call in 1...3 { _ = machine.submit(call, lane: .ordered(UInt64(call)), mayWait: true, now: 0) }
        expect(machine.predecessor(of: 1) == nil && machine.predecessor(of: 3) == 2)
        machine.holdOrdered(after: 1)
        for call: UInt64 in 1...3 { end(call, .refused) }
        for call in 2...9 {
            expectEqual(machine.submit(call, lane: .ordered(UInt64(call)), mayWait: true, now: 0), .waiting)
        }
        expectEqual(machine.submit(1, lane: .ordered(1), mayWait: true, now: 0), .send(id))
        machine.holdOrdered(after: nil)
        expect(take(&machine).isEmpty)
        end(1, .applied)
        expectEqual(take(&machine).descriptions, ["send 2 on 0.0", "send 3 on 0.0"])
        expect(machine.predecessor(of: 2) == nil && machine.predecessor(of: 3) == 2)
        end(2, .applied)
        expectEqual(take(&machine).descriptions, ["send 4 on 0.0", "send 5 on 0.0"])
        end(3, .unknown)
        expectEqual(take(&machine).descriptions, ["send 6 on 0.0"])
        end(4, .refused)
        end(5, .applied)
        expectEqual(take(&machine).descriptions, ["send 7 on 0.0"], "6 is in flight, and two are allowed")
    }

    @Test
    func `Past the bound calls are refused`() {
        var machine = machine(waiting: 2)
        expectEqual(machine.submit(1, lane: .any, mayWait: true, now: 0), .waiting)
        expectEqual(machine.submit(2, lane: .ordered(1), mayWait: true, now: 0), .waiting)
        expectEqual(machine.submit(3, lane: .any, mayWait: true, now: 0), .rejected(.queueFull))
    }

    @Test
    func `A call that was accepted once is not refused later because the queue is full`() {
        var machine = machine(waiting: 1)
        expectEqual(machine.submit(1, lane: .ordered(1), mayWait: true, now: 0), .waiting)
        expectEqual(machine.submit(2, lane: .ordered(2), mayWait: true, now: 0), .rejected(.queueFull))
        expectEqual(machine.submit(0, lane: .ordered(0), mayWait: true, isNew: false, now: 0), .waiting)
        expectEqual(machine.waitingCount, 2)
    }

    @Test
    func `A disabled network closes, refuses calls that do not wait and keeps the others until it is enabled`() {
        var machine = connectedMachine()
        machine.setNetworkEnabled(false, now: 0)
        expectEqual(take(&machine).descriptions, ["close 0.0"])
        expectEqual(machine.submit(1, lane: .any, mayWait: false, now: 0), .rejected(.notConnected))
        expectEqual(machine.submit(2, lane: .any, mayWait: true, now: 0), .waiting)
        expect(take(&machine).isEmpty)
        machine.lost(ID(slot: 0, generation: 0), now: 0)
        machine.setNetworkEnabled(true, now: 0)
        expectEqual(take(&machine).descriptions, ["connect 0.1"])
    }

    @Test
    func `A dial that succeeds after the network was switched off is closed`() {
        var machine = machine()
        _ = machine.submit(1, lane: .any, mayWait: true, now: 0)
        machine.setNetworkEnabled(false, now: 0)
        machine.actions = []
        machine.connected(ID(slot: 0, generation: 0), streamLimit: nil)
        expectEqual(take(&machine).descriptions, ["close 0.0"])
        expectEqual(machine.readyCount, 0)
    }

    @Test
    func `Shutting down fails what waits, closes what is open and refuses what comes`() {
        var machine = connectedMachine(connections: 1, streams: 1)
        _ = machine.submit(1, lane: .any, mayWait: true, now: 0)
        _ = machine.submit(2, lane: .any, mayWait: true, now: 0)
        machine.shutDown()
        expectEqual(take(&machine).descriptions, ["fail 2 shutDown", "close 0.0"])
        expectEqual(machine.submit(3, lane: .any, mayWait: true, now: 0), .rejected(.shutDown))
    }

    @Test(arguments: 0..<40)
    func `Whatever happens, no call is lost or sent twice`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var machine = machine(connections: 3, growAt: 2, streams: 3, waiting: 1000)
        var placed: [Int: ID] = [:]
        var waiting: Set<Int> = []
        var connecting: Set<ID> = []
        var open: Set<ID> = []
        var going: Set<ID> = []
        var now: UInt64 = 0
        var nextCall = 0

        func apply(_ actions: [Machine.Action]) {
            for action in actions {
                switch action {
                case .connect(let id): expect(connecting.insert(id).inserted)
                case .close(let id):
                    open.remove(id)
                    going.remove(id)
                    connecting.remove(id)
                case .send(let call, let id):
                    expect(waiting.remove(call) != nil, "seed \(seed): call \(call) was not waiting")
                    expect(open.contains(id), "seed \(seed): sent on a connection that is not ready")
                    placed[call] = id
                case .fail(let call, _): expect(waiting.remove(call) != nil)
                case .wake(let time): expect(time > now)
                }
            }
        }

        for _ in 0..<400 {
            now += random.next() % (40 * Self.millisecond)
            switch random.next() % 8 {
            case 0, 1, 2:
                nextCall += 1
                let lane = random.next() % 2 == 0 ? Machine.Lane.any : .ordered(UInt64(nextCall))
                switch machine.submit(nextCall, lane: lane, mayWait: true, now: now) {
                case .send(let id):
                    expect(open.contains(id))
                    placed[nextCall] = id
                case .waiting: waiting.insert(nextCall)
                case .rejected: break
                }
            case 3:
                if let (call, id) = placed.sorted(by: { $0.key < $1.key }).first {
                    placed[call] = nil
                    machine.finished(on: id, answered: true)
                }
            case 4:
                if let id = connecting.sorted(by: { $0.slot < $1.slot }).first {
                    connecting.remove(id)
                    if random.next() % 3 == 0 {
                        machine.lost(id, now: now)
                    } else {
                        open.insert(id)
                        machine.connected(id, streamLimit: nil)
                    }
                }
            case 5:
                if let id = open.union(going).sorted(by: { $0.slot < $1.slot }).first, random.next() % 3 == 0 {
                    open.remove(id)
                    going.remove(id)
                    placed = placed.filter { $0.value != id }
                    machine.lost(id, now: now)
                }
            case 6:
                if let id = open.sorted(by: { $0.slot > $1.slot }).first, random.next() % 4 == 0 {
                    open.remove(id)
                    going.insert(id)
                    machine.goingAway(id, now: now)
                }
            default: machine.timerFired(now: now)
            }
            apply(take(&machine))
            expectEqual(machine.inFlightCount, placed.count, "seed \(seed)")
            expectEqual(machine.waitingCount, waiting.count, "seed \(seed)")
        }
    }
}

extension [PoolStateMachine<Int>.Action] {
    fileprivate var descriptions: [String] {
        map { action in
            switch action {
            case .connect(let id): "connect \(id.slot).\(id.generation)"
            case .close(let id): "close \(id.slot).\(id.generation)"
            case .send(let call, let id): "send \(call) on \(id.slot).\(id.generation)"
            case .fail(let call, let reason): "fail \(call) \(reason)"
            case .wake(let time): "wake at \(time / 1_000_000) ms"
            }
        }
    }
}
