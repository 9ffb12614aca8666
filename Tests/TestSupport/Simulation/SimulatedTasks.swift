// Tests with tasks in simulations: what a test awaits, and the tasks that it starts, run on threads of the simulation.

internal import Basics
internal import Foundation
package import Testing

/// Runs tasks on threads of a simulation, in an order that the seed chooses.
private final class SimulatedExecutor: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var isOver = false
    }

    private let state = Monitor(State())

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.update { $0.jobs.append(job) }
    }

    /// The body of a thread.
    func run(_ simulation: Simulation) {
        while true {
            let next = state.wait { state -> UnownedJob?? in
                if !state.jobs.isEmpty {
                    return .some(state.jobs.remove(at: simulation.random.below(state.jobs.count)))
                }
                return state.isOver ? .some(nil) : nil
            }
            guard let job = next else { return }
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }

    func stop() { state.update { $0.isOver = true } }
}

extension Simulation {
    /// Calls `body` on a few threads of the simulation, with all tasks that it starts without naming an executor.
    /// - Throws: what `body` throws.
    package func perform(_ body: @escaping @Sendable () async throws -> Void) throws {
        let executor = SimulatedExecutor()
        let outcome = Monitor<Result<Void, any Error>?>(nil)
        let threads = try (0..<3).map { number in
            try SystemThread(name: "tasks \(number)") { [self] in executor.run(self) }
        }
        Task(executorPreference: executor) {
            let result: Result<Void, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            outcome.update { $0 = result }
        }
        let result = outcome.wait { $0 }
        executor.stop()
        for thread in threads { thread.join() }
        try result.get()
    }
}

/// Runs each test of a suite in a few simulations if `HEARTH_TEST_ENGINE` is `simulated`. For tests that wait with
/// `await`, with `Monitor` and with `waitUntil`, and for nothing else.
package struct SimulationTrait: SuiteTrait, TestTrait, TestScoping {
    package static let isEnabled = ProcessInfo.processInfo.environment["HEARTH_TEST_ENGINE"] == "simulated"

    package let isRecursive = true

    package func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? {
        Self.isEnabled && testCase != nil ? self : nil
    }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try Simulation.checkYieldPoints()
        try withoutActuallyEscaping(function) { function in
            let problem = SimulatedSeeds.problem(of: test.name, count: 1, soak: 1_000) { simulation in
                print("\(test.name): HEARTH_SEED=\(simulation.seed)")
                try simulation.perform(function)
                return nil
            }
            if let problem { throw SimulatedFailure(description: problem) }
        }
    }
}

/// What a test threw in a simulation.
private struct SimulatedFailure: Error, CustomStringConvertible {
    let description: String
}

extension Trait where Self == SimulationTrait {
    /// The suite can also run in simulations (`HEARTH_TEST_ENGINE=simulated`).
    package static var inSimulations: Self { SimulationTrait() }
}
