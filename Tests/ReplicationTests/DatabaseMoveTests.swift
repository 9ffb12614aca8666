// Moves of a database: every order of events within bounds, and faults that must be found.

import TestSupport
import Testing

@testable import Replication

/// What an exploration of moves has met.
private struct MoveExploration {
    var states = 0
    /// The events that lead to a broken rule, and the rule.
    var counterexample: String?
    /// States in which something has happened that a test of this kind must reach.
    var moved = 0
    var movedAfterFailure = 0
    var movedByAnother = 0
    var givenUp = 0
    var twoDrivers = 0
    var writtenAfterMove = 0
}

@Suite(.timeLimit(.minutes(20)))
struct DatabaseMoveTests {
    /// Visits all states within bounds, depth first, until a rule is broken. From each of them the move must reach its
    /// end.
    private func explore(_ change: (inout MoveBounds) -> Void = { _ in }) -> MoveExploration {
        var bounds = MoveBounds()
        change(&bounds)
        var found = MoveExploration()
        var visited: Set<Int> = []
        var stack: [(world: MoveWorld, step: Step<MoveEvent>?)] = [(MoveWorld(bounds), nil)]
        while let (world, step) = stack.popLast(), found.counterexample == nil {
            world.forEachEvent(bounds) { event in
                guard found.counterexample == nil else { return }
                var next = world
                next.perform(event, bounds)
                guard visited.insert(next.hashValue).inserted else { return }
                let nextStep = Step(event, after: step)
                if let violation = next.violation ?? next.end(bounds) {
                    found.counterexample = "\(violation):\n" + nextStep.trace.joined(separator: "\n")
                    return
                }
                note(next, bounds, &found)
                stack.append((next, nextStep))
            }
        }
        found.states = visited.count
        return found
    }

    private func note(_ world: MoveWorld, _ bounds: MoveBounds, _ found: inout MoveExploration) {
        if world.aborts > 0, world.row.movingTo == nil { found.givenUp += 1 }
        if world.servers.allSatisfy({ $0.move != nil }) { found.twoDrivers += 1 }
        guard world.row.movingTo == nil, world.moves > world.aborts else { return }
        found.moved += 1
        if world.failures == bounds.failures { found.movedAfterFailure += 1 }
        if world.leaderChanges > 0 { found.movedByAnother += 1 }
        if world.writeCount == bounds.writes { found.writtenAfterMove += 1 }
    }

    // MARK: No rule is broken

    @Test
    func `No order of writes, a change of leader and two failures breaks a rule of a move`() {
        let found = explore { $0.failures = 2 }
        print("\(found.states) states of a move")
        expectNil(found.counterexample)
        expect(found.states > 10_000)
        expect(found.movedAfterFailure > 0)
        expect(found.movedByAnother > 0)
        expect(found.twoDrivers > 0)
        expect(found.writtenAfterMove > 0)
    }

    @Test
    func `Two changes of leader, and drivers that do not know of them, break no rule`() {
        let found = explore {
            $0.leaderChanges = 2
            $0.writes = 1
        }
        print("\(found.states) states with two changes of leader")
        expectNil(found.counterexample)
        expect(found.twoDrivers > 0)
        expect(found.movedByAnother > 0)
    }

    @Test
    func `A move that is given up, and begun again, breaks no rule`() {
        let found = explore {
            $0.aborts = 1
            $0.moves = 2
            $0.writes = 1
        }
        print("\(found.states) states with a move that is given up")
        expectNil(found.counterexample)
        expect(found.givenUp > 0)
        expect(found.moved > 0)
    }

    @Test
    func `A database that moves back meets what is left of its first move`() {
        let found = explore {
            $0.moves = 2
            $0.writes = 1
        }
        print("\(found.states) states with two moves")
        expectNil(found.counterexample)
        expect(found.movedAfterFailure > 0)
    }

    @Test
    func `A store in another database is raised before a move to it begins, though no transaction does both`() {
        let found = explore {
            $0.isElsewhere = true
            $0.writes = 1
            $0.moves = 2
        }
        print("\(found.states) states with a store in another database")
        expectNil(found.counterexample)
        expect(found.movedAfterFailure > 0)
        expect(found.movedByAnother > 0)
    }

    // MARK: Planted faults

    /// A rule that is broken on purpose, and what the explorer must say.
    private struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let rule: String
        let change: @Sendable (inout MoveBounds) -> Void

        static let all = [
            Fault(testDescription: "chunks need not continue what is there", rule: "an acknowledged write is lost") {
                $0.broken = .chunksContinueNothing
            },
            Fault(testDescription: "a release counts before it is durable", rule: "two stores admit") {
                $0.broken = .releaseIsStaged
            },
            Fault(testDescription: "a move is given up while the source releases", rule: "the store of the row") {
                $0.broken = .abortIgnoresRelease
                $0.aborts = 1
            },
            Fault(testDescription: "the row is changed for any move", rule: "") {
                $0.broken = .rowIgnoresGeneration
                $0.moves = 2
            },
            Fault(testDescription: "a move that is over is received again", rule: "") {
                $0.broken = .targetForgetsGeneration
                $0.moves = 2
            },
            Fault(testDescription: "the versions of the target are lower", rule: "an update time goes back") {
                $0.broken = .clockStays
            },
            Fault(testDescription: "the target owns the database before the release", rule: "two stores admit") {
                $0.broken = .lastBeforeRelease
            },
            Fault(testDescription: "rounds are skipped", rule: "an acknowledged write is lost") {
                $0.broken = .roundsAreSkipped
            },
            Fault(testDescription: "a leader that was replaced copies its state", rule: "an acknowledged write is lost")
            {
                $0.broken = .oldStatesAreRead
            },
            Fault(testDescription: "a store forgets what it gave up", rule: "a store that had the database") {
                $0.broken = .discardLeavesNothing
                $0.moves = 2
                $0.aborts = 1
            },
            Fault(testDescription: "a move begins before its stores are raised", rule: "a log has records of a move") {
                $0.broken = .levelsAreIgnored
                $0.isElsewhere = true
            },
            Fault(
                testDescription: "a raise is noted before its outcome is known", rule: "a log has records of a move"
            ) {
                $0.broken = .notedBeforeRaised
                $0.isElsewhere = true
            },
        ]
    }

    @Test(arguments: Fault.all)
    private func `A planted fault of a move is found`(fault: Fault) {
        let found = explore(fault.change)
        expect(found.counterexample != nil)
        expectEqual(found.counterexample?.hasPrefix(fault.rule), true, "\(found.counterexample ?? "")")
    }
}
