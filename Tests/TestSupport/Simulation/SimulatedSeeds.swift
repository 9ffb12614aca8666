// The seeds that a run of the tests simulates.

internal import Foundation

/// Runs simulations with many seeds.
package enum SimulatedSeeds {
    private static let environment = ProcessInfo.processInfo.environment

    /// The seeds of this run: successive ones, others each day (`CaseShare.number`). `HEARTH_SOAK` takes `soak` of
    /// them, `HEARTH_SEEDS=N` the seeds 1 to N, and `HEARTH_SEED=N` the seed N alone.
    private static func seeds(_ count: Int, soak: Int) -> ClosedRange<UInt64> {
        if let one = environment["HEARTH_SEED"].flatMap({ UInt64($0) }) { return one...one }
        if let last = environment["HEARTH_SEEDS"].flatMap({ UInt64($0) }), last > 0 { return 1...last }
        let count = UInt64(environment["HEARTH_SOAK"] == nil ? count : soak)
        let first = UInt64(max(CaseShare.number, 0)) * 1_000_000 + 1
        return first...(first + count - 1)
    }

    /// Runs simulations until one finds a problem.
    /// - Parameters:
    ///   - count: of a usual run.
    ///   - soak: of a long run.
    ///   - body: returns what is wrong.
    /// - Returns: the problem, with the seed that repeats it.
    package static func problem(
        of name: String, count: Int, soak: Int, _ body: (Simulation) throws -> String?
    ) -> String? {
        var steps = 0
        var simulated: UInt64 = 0
        for seed in seeds(count, soak: soak) {
            simulated += 1
            var problem: String?
            do {
                problem = try Simulation.run(seed: seed) { simulation in
                    defer { steps += simulation.steps }
                    return try body(simulation)
                }
            } catch {
                problem = "\(error)"
            }
            if let problem {
                return "\(name): the seed \(seed), number \(simulated) of this run, finds: \(problem). "
                    + "HEARTH_SEED=\(seed) repeats it."
            }
        }
        print("\(name): \(simulated) seeds, \(steps) steps")
        return nil
    }
}
