// Threads that run one at a time, as a seed decides (docs/decisions/0036-simulation-of-threads.md).
//
//     try Simulation.run(seed: 17) { simulation in
//         let store = try DocumentStore.open(configuration)       // its threads belong to the simulation
//         try simulation.concurrently([{ … }, { … }])             // and so do these
//         store.close()
//     }
//
// The threads are real, so the code under test runs as it is. One of them has the turn. At each yield point, lock, wait
// and wake-up it may pass the turn on, and then sleeps until it has it again. What the seed does not decide must not
// decide anything: hence the time of these threads is the simulation's, and no other thread may take part.

package import Basics
internal import Dispatch
internal import Foundation
package import Testing

/// Chooses which of its threads runs.
package final class Simulation: ThreadScheduler, @unchecked Sendable {
    // Unchecked: the thread that has the turn is the only one that uses the state.

    private final class Member {
        let name: String
        let turn = DispatchSemaphore(value: 0)
        let end: ThreadEnd?
        /// What it waits for, at most until the deadline.
        var awaited: ObjectIdentifier?
        var deadline = UInt64.max
        /// It does not run before this step, if another can.
        var heldUntil = 0
        /// Where it passed the turn on.
        var place: StaticString = "start"

        init(_ name: String, _ end: ThreadEnd?) {
            self.name = name
            self.end = end
        }
    }

    /// How often threads change. Some faults need many changes, others one thread that stands still for a long time.
    private struct Habits {
        let switchOneIn: Int
        let holdOneIn: Int
        let holdStepsMax: Int
        let nanosecondsPerStepMax: Int

        init(_ random: inout SeededGenerator) {
            switchOneIn = random.pick([1, 2, 4, 16])
            holdOneIn = random.pick([8, 50, 400, Int.max])
            holdStepsMax = random.pick([10, 100, 1_000])
            nanosecondsPerStepMax = random.pick([10, 1_000, 100_000])
        }
    }

    package let seed: UInt64
    /// Random numbers for the threads of the simulation.
    package var random: SeededGenerator
    private let habits: Habits
    private var members: [Member]
    private var current: Member
    /// Turns that were taken or kept so far.
    package private(set) var steps = 0
    /// The same for the same choices.
    package private(set) var fingerprint: UInt64 = 0xCBF2_9CE4_8422_2325
    package private(set) var nowNanoseconds: UInt64 = 1_700_000_000_000_000_000

    private static let stepsMax = 5_000_000
    private static let isTraced = ProcessInfo.processInfo.environment["HEARTH_TRACE"] != nil

    private init(seed: UInt64) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        habits = Habits(&random)
        current = Member("test", nil)
        members = [current]
    }

    /// - Throws: if the build has no yield points: then no test would be simulated.
    package static func checkYieldPoints() throws {
        if !SchedulerOfThread.isAsked { throw NoYieldPoints() }
    }

    /// Calls `body` on the calling thread, the first one of a new simulation, and waits until all its threads have
    /// ended. If `body` throws, the others stand still from then on.
    package static func run<Output>(seed: UInt64, _ body: (Simulation) throws -> Output) rethrows -> Output {
        let simulation = Simulation(seed: seed)
        return try SchedulerOfThread.with(simulation) {
            let output = try body(simulation)
            while simulation.members.count > 1 {
                _ = simulation.wait(for: ObjectIdentifier(simulation), untilNanoseconds: .max)
            }
            return output
        }
    }

    /// Calls each of `bodies` on a thread, and waits for them.
    /// - Throws: the error of the first that threw one.
    package func concurrently(_ bodies: [() throws -> Void]) throws {
        let errors = Monitor<[any Error]>([])
        let threads = try bodies.enumerated().map { index, body in
            try SystemThread(name: "client \(index)") {
                do { try body() } catch { errors.withLock { $0.append(error) } }
            }
        }
        for thread in threads { thread.join() }
        if let error = errors.withLock({ $0.first }) { throw error }
    }

    // MARK: ThreadScheduler

    package func yield(at place: StaticString) {
        step(place)
        if random.oneIn(habits.holdOneIn) { current.heldUntil = steps + random.below(habits.holdStepsMax) }
        if current.heldUntil <= steps, !random.oneIn(habits.switchOneIn) { return }
        pass(to: next())
    }

    package func giveWay(at place: StaticString) {
        step(place)
        let caller = current
        let others = members.filter { $0 !== caller && isReady($0) }
        // Without another one the holder is outside of the simulation, or sleeps.
        if !others.isEmpty { return pass(to: pick(others)) }
        if !advance() { sched_yield() }
    }

    package func wait(for object: ObjectIdentifier, untilNanoseconds deadline: UInt64) -> Bool {
        step("wait")
        let caller = current
        caller.awaited = object
        caller.deadline = deadline
        pass(to: next())
        defer { caller.awaited = nil }
        return caller.awaited == nil
    }

    package func wake(_ object: ObjectIdentifier) {
        for member in members where member.awaited == object { member.awaited = nil }
    }

    package func adopt(_ thread: ThreadEnd, name: String, _ body: @escaping () -> Void) -> () -> Void {
        let member = Member(name, thread)
        members.append(member)
        // What the thread holds goes while it has the turn.
        let held = Held(body)
        return { [self] in
            member.turn.wait()
            SchedulerOfThread.with(self) {
                held.body?()
                held.body = nil
            }
            end(member)
        }
    }

    private final class Held: @unchecked Sendable {  // The thread's.
        var body: (() -> Void)?

        init(_ body: @escaping () -> Void) { self.body = body }
    }

    // MARK: Turns

    private func step(_ place: StaticString) {
        steps += 1
        current.place = place
        nowNanoseconds += UInt64(random.below(habits.nanosecondsPerStepMax))
        if steps > Self.stepsMax { stop("there is no end after \(steps) steps") }
    }

    private func isReady(_ member: Member) -> Bool { member.awaited == nil || member.deadline <= nowNanoseconds }

    /// A thread that can run; time passes until there is one.
    private func next() -> Member {
        while true {
            let ready = members.filter(isReady)
            if !ready.isEmpty { return pick(ready) }
            if !advance() { stop("no thread can run") }
        }
    }

    private func pick(_ ready: [Member]) -> Member {
        let free = ready.filter { $0.heldUntil <= steps }
        return random.pick(free.isEmpty ? ready : free)
    }

    /// Lets time pass until the next deadline; false if there is none.
    private func advance() -> Bool {
        let deadline = members.filter { $0.awaited != nil }.map(\.deadline).min() ?? .max
        if deadline == .max { return false }
        nowNanoseconds = max(nowNanoseconds, deadline)
        return true
    }

    private func pass(to member: Member) {
        note(member)
        if member === current { return }
        let caller = current
        current = member
        member.turn.signal()
        caller.turn.wait()
    }

    private func end(_ member: Member) {
        steps += 1
        members.removeAll { $0 === member }
        if let end = member.end {
            end.hasEnded = true
            wake(ObjectIdentifier(end))
        }
        wake(ObjectIdentifier(self))
        current = next()
        note(current)
        current.turn.signal()
    }

    private func note(_ member: Member) {
        fingerprint =
            (fingerprint ^ UInt64(steps) ^ member.name.utf8.reduce(0) { $0 &* 31 &+ UInt64($1) })
            &* 0x100_0000_01B3
        if Self.isTraced { print("step \(steps): \(member.name), at \(member.place)") }
    }

    /// No thread can be stopped from outside, so the process ends.
    private func stop(_ problem: String) -> Never {
        let places = members.map { "\($0.name) at \($0.place)\($0.awaited == nil ? "" : ", waiting")" }
        fatalError("simulation with seed \(seed): \(problem): \(places.joined(separator: "; "))")
    }
}

private struct NoYieldPoints: Error, CustomStringConvertible {
    let description = "a release build has no yield points unless it is made with -Xswiftc -DHEARTH_YIELD_POINTS"
}

/// Tests that run simulations fail in a build in which nothing is simulated.
package struct YieldPointsTrait: SuiteTrait, TestTrait {
    package let isRecursive = true

    package func prepare(for test: Test) async throws { try Simulation.checkYieldPoints() }
}

extension Trait where Self == YieldPointsTrait {
    /// For tests that run simulations.
    package static var simulated: Self { YieldPointsTrait() }
}
