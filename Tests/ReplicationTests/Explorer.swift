// Visits every state that can be reached within bounds.

@testable import Replication

/// What an exploration has met.
struct Exploration {
    var states = 0
    /// The events that lead to a broken rule, and the rule.
    var counterexample: String?
    /// States in which something has happened that a test of this kind must reach.
    var takeOvers = 0
    var doneAfterFailure = 0
    var raisedEpochs = 0
    var basesLoaded = 0
    var streamed = 0
    /// Events by which a claim was given up.
    var abandoned = 0
}

/// The way to a state.
final class Step<Event> {
    let event: Event
    let before: Step?

    init(_ event: Event, after before: Step?) {
        self.event = event
        self.before = before
    }

    var trace: [String] { (before?.trace ?? []) + ["\(event)"] }
}

/// Explores all states within bounds, depth first, until a rule is broken.
func explore(_ bounds: Bounds) -> Exploration {
    var found = Exploration()
    var visited: Set<Int> = []
    var stack: [(world: World, step: Step<Event>?)] = [(World(bounds), nil)]
    while let (world, step) = stack.popLast() {
        world.forEachEvent(bounds) { event in
            guard found.counterexample == nil else { return }
            var next = world
            guard next.perform(event, bounds), visited.insert(next.fingerprint(bounds)).inserted else { return }
            let nextStep = Step(event, after: step)
            if let violation = next.violation {
                found.counterexample = "\(violation):\n" + nextStep.trace.joined(separator: "\n")
                return
            }
            found.note(next, bounds)
            if case .abandonClaim = event { found.abandoned += 1 }
            stack.append((next, nextStep))
        }
        if found.counterexample != nil { break }
    }
    found.states = visited.count
    return found
}

extension Exploration {
    fileprivate mutating func note(_ world: World, _ bounds: Bounds) {
        let epochs = Set(world.database.groups.map(\.epoch))
        if epochs.count > 1 { takeOvers += 1 }
        if world.failures == bounds.failures, world.acknowledged.count == bounds.groups { doneAfterFailure += 1 }
        if world.members.contains(where: { $0.role == .lookingUp }) { raisedEpochs += 1 }
        if world.streams > 0 { streamed += 1 }
        let trimmed = world.database.trimmedThrough
        if trimmed > 0, world.members.allSatisfy({ $0.place.sequence >= trimmed }) { basesLoaded += 1 }
    }
}
