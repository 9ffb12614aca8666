// Replies: what a reply says, and what an error rests on, is visible and durable when the reply comes.

import Basics
import DocumentModel
import MemoryEngine
import TestSupport
import Testing

@testable import DocumentStore

/// Clients that create and delete the same documents, while the store works, fails or is closed. The threads of a
/// simulation use it, one at a time.
private final class ReplyModel: @unchecked Sendable {
    private let simulation: Simulation
    private let harness: StoreHarness
    private let volume: MemoryVolume
    private let isClosedEarly: Bool
    private var acknowledged: [(path: String, number: Int64?, time: UInt64)] = []
    /// What a crash would leave when a reply said that a document exists.
    private var images: [(path: String, volume: MemoryVolume)] = []
    private(set) var problem: String?

    init(_ simulation: Simulation) throws {
        self.simulation = simulation
        isClosedEarly = simulation.random.oneIn(2)
        let volume = MemoryVolume(replaysRecords: true, syncsInBackground: true)
        self.volume = volume
        harness = try .simulated(simulation, syncFailsOnceIn: simulation.random.oneIn(2) ? 4 : nil) {
            $0.volume = volume
        }
    }

    // MARK: Threads

    /// Creates or deletes each of a few documents that others create and delete too.
    func change(client: Int64) throws {
        for step in 0..<3 as Range<Int64> {
            try create("c/\(step)", client * 10 + step)
            if simulation.random.oneIn(2) { try delete("d/\(step)", client) }
        }
    }

    private func create(_ path: String, _ number: Int64) throws {
        let writes = [StepWrite.set(path, fields(number), .exists(false))]
        let outcome = try harness.wait(for: writes, maySync: simulation.random.oneIn(4)) { [self] result in
            guard isClosedEarly, case .failure(let error) = result, error.code == .alreadyExists else { return }
            images.append((path, volume.copy()))
        }
        switch outcome {
        case .success(let result): try note(path, number, result)
        case .failure(let error):
            guard error.code == .alreadyExists else { return try expectFailedStore(error) }
            if isClosedEarly { return }
            if try harness.get(path) == nil { problem = "\(path) exists, says the reply, and no reader finds it" }
        }
    }

    private func delete(_ path: String, _ client: Int64) throws {
        _ = try harness.wait(for: [.set(path, fields(client))])
        switch try harness.wait(for: [.delete(path, .exists(true))], maySync: simulation.random.oneIn(4)) {
        case .success(let result): try note(path, nil, result)
        case .failure(let error): if error.code != .notFound { try expectFailedStore(error) }
        }
    }

    private func note(_ path: String, _ number: Int64?, _ result: CommitResult) throws {
        let time = result.commitMicroseconds
        acknowledged.append((path, number, time))
        if isClosedEarly { return }
        let found = try harness.number(path, at: time)
        if found != number { problem = "\(path) at \(time) is \(found as Any), not \(number as Any)" }
    }

    /// Only a sync that failed is an excuse, or the end of the store.
    private func expectFailedStore(_ error: RequestError) throws {
        if isClosedEarly { return }
        switch try harness.wait(for: [.set("e/e", fields(0))]) {
        case .success: problem = "a commit succeeds after the failure: \(error)"
        case .failure: break
        }
    }

    /// Closes the store, early or when the others have ended.
    func close() {
        guard isClosedEarly else { return }
        SystemThread.sleep(microseconds: UInt32(simulation.random.below(simulation.random.pick([100, 1_000, 8_000]))))
        harness.store.close()
    }

    // MARK: The end

    /// Opens what a crash would leave. It has all that was acknowledged, and what errors rest on.
    func crash() throws {
        try withStore(volume.copy()) { after in
            for (path, number, time) in acknowledged {
                let found = try after.number(path, at: time)
                if found != number { problem = "\(path) at \(time) is \(found as Any) after a crash" }
            }
        }
        for (path, image) in images.suffix(2) {
            try withStore(image) { after in
                if try after.get(path) == nil { problem = "\(path) exists, says the reply, and not after a crash" }
            }
        }
        harness.store.close()
    }

    private func withStore(_ volume: MemoryVolume, _ body: (StoreHarness) throws -> Void) throws {
        let after = try StoreHarness.simulated(simulation) { $0.volume = volume }
        try body(after)
        try after.finish()
    }
}

@Suite(.timeLimit(.minutes(600)), .simulated)
struct ReplySimulationTests {
    @Test
    func `What a reply rests on is visible when it comes, and durable`() {
        let problem = SimulatedSeeds.problem(of: "replies", count: 60, soak: 300_000) { simulation in
            let model = try ReplyModel(simulation)
            let clients = (1...3).map { client in { try model.change(client: client) } }
            try simulation.concurrently(clients + [model.close])
            try model.crash()
            return model.problem
        }
        expectNil(problem)
    }

    @Test
    func `A seed repeats a simulation exactly, and another one does not`() throws {
        func fingerprint(_ seed: UInt64) throws -> UInt64 {
            try Simulation.run(seed: seed) { simulation in
                let model = try ReplyModel(simulation)
                try simulation.concurrently([{ try model.change(client: 1) }, { try model.change(client: 2) }])
                try model.crash()
                return simulation.fingerprint
            }
        }
        let first = try (1...5).map(fingerprint)
        print("fingerprints of the seeds 1 to 5: \(first)")
        try expectEqual((1...5).map(fingerprint), first)
        expectEqual(Set(first).count, first.count)
    }
}
