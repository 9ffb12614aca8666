// The registry of memtables under every order of its atomics: a reader's view stays whole until it leaves.

import Basics
import EngineTestSupport
import TestSupport
import Testing

@testable import EmbeddedEngine

/// Readers, and the thread that changes what they see. The threads of a simulation use it, one at a time.
private final class RegistryModel {
    private static let key: Bytes = [1, 2, 3]
    private static let noRuns = RunSet(Manifest(), generation: 1, open: [:])

    private let simulation: Simulation
    private let registry: MemtableRegistry
    private(set) var problem: String?

    init(_ simulation: Simulation) throws {
        self.simulation = simulation
        let first = try Memtable(reservedBytes: 1 << 16)
        Self.fill(first, with: 1)
        registry = MemtableRegistry(active: first, runs: Self.noRuns)
        // What is released is filled again with another number instead of going.
        registry.keepSpare(true)
    }

    /// Gives a memtable its number, that of the generation in which it is active first.
    private static func fill(_ memtable: Memtable, with number: UInt64) {
        key.withUnsafeBytes { key in
            withUnsafeBytes(of: number) { memtable.insert(key, version: 1, value: $0) }
        }
    }

    private static func number(in memtable: Memtable) -> UInt64? {
        let entry = key.withUnsafeBytes { memtable.find($0, atMost: 1) }
        return memtable.value(entry)?.loadUnaligned(as: UInt64.self)
    }

    func change() throws {
        for number in 2...7 as ClosedRange<UInt64> {
            let fresh = try registry.takeSpare() ?? Memtable(reservedBytes: 1 << 16)
            Self.fill(fresh, with: number)
            let old = registry.viewForUpdate.active
            registry.show(active: fresh, frozen: nil, retiring: old, runs: Self.noRuns)
            if simulation.random.oneIn(2) { registry.reclaim() }
        }
    }

    func read() {
        let slot = registry.makeSlot()
        for _ in 0..<4 {
            let view = registry.enter(slot)
            yieldPoint("in the view")
            let found = Self.number(in: view.active)
            if found != view.generation {
                problem = "a reader of generation \(view.generation) finds \(found.map { "\($0)" } ?? "nothing")"
            }
            registry.leave(slot)
        }
        registry.removeSlot(slot)
    }

    /// Nothing may be left when all readers are gone.
    func finish() {
        if !registry.reclaim() { problem = "what no reader uses is not released" }
    }
}

@Suite(.timeLimit(.minutes(600)), .simulated)
struct RegistrySimulationTests {
    @Test
    func `A reader's view stays whole until it leaves`() {
        let problem = SimulatedSeeds.problem(of: "memtable registry", count: 200, soak: 1_000_000) { simulation in
            let model = try RegistryModel(simulation)
            try simulation.concurrently([model.change, model.read, model.read])
            model.finish()
            return model.problem
        }
        expectNil(problem)
    }
}
