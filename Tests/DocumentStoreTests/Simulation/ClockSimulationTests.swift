// The version clock under every order of its atomics: no commit gets a version at or below a read time that was handed
// out, and what a read time covers is visible.

import Basics
import MemoryEngine
import Storage
import StorageEngines
import TestSupport
import Testing

@testable import DocumentStore

/// Commits and reads of one clock. The threads of a simulation use it, one at a time.
private final class ClockModel {
    private let versions: VersionClock
    private let engine: StorageEngine
    private let writer: EngineWriter
    private let simulation: Simulation
    private var last = CommitVersion.zero
    /// Versions that commits have, and are about to have.
    private var taken: Set<UInt64> = []
    /// Read times that were handed out.
    private var handedOut: [UInt64] = []
    private(set) var problem: String?

    init(_ simulation: Simulation) throws {
        self.simulation = simulation
        engine = try StorageEngine.open(directory: "", volume: MemoryVolume()) { _, _, _, _ in }
        writer = try engine.makeWriter()
        versions = VersionClock(clock: SystemClock(), engine: engine)
    }

    private func pause() {
        if simulation.random.oneIn(3) { SystemThread.sleep(microseconds: UInt32(simulation.random.below(1_500))) }
    }

    func commit() throws {
        for _ in 0..<6 {
            pause()
            for _ in 0..<(1 + simulation.random.below(2)) { try stage() }
            try writer.commitGroup()
            versions.endWaits()
        }
    }

    private func stage() throws {
        let version = versions.nextVersion(after: last)
        let highest = handedOut.max() ?? 0
        if version.microseconds <= highest {
            problem = "a commit takes the version \(version), and the read time \(highest) was handed out"
        }
        if simulation.random.oneIn(5) {
            return versions.returnVersion(version, last: last, isReported: simulation.random.oneIn(2))
        }
        taken.insert(version.microseconds)
        last = version
        var batch = MutationBatch()
        let key: [UInt8] = [1]
        batch.put(key: key.byteSpan, value: key.byteSpan)
        try writer.stage(version: version, record: key.byteSpan, mutations: batch, mayUseReserve: false)
    }

    func read() {
        for _ in 0..<6 {
            pause()
            if simulation.random.oneIn(3) {
                let time = versions.latestReadable
                if versions.reserve(time) { check(time) }
            } else {
                check(versions.readTime())
            }
        }
    }

    /// Looks whether all commits up to a read time are visible.
    private func check(_ time: UInt64) {
        handedOut.append(time)
        let covered = taken.filter { $0 <= time }.max() ?? 0
        let published = engine.publishedVersion.microseconds
        if published < covered {
            problem = "the read time \(time) covers \(covered), and \(published) is the last that is visible"
        }
    }
}

@Suite(.timeLimit(.minutes(600)), .simulated)
struct ClockSimulationTests {
    @Test
    func `No commit comes at or below a read time, and what it covers is visible`() {
        let problem = SimulatedSeeds.problem(of: "version clock", count: 200, soak: 1_000_000) { simulation in
            let model = try ClockModel(simulation)
            try simulation.concurrently([model.commit, model.read, model.read])
            return model.problem
        }
        expectNil(problem)
    }
}
