// Replies: what a reply says, and what an error rests on, is visible and durable when the reply comes.

import Basics
import DocumentModel
import MemoryEngine
import TestSupport
import Testing

@testable import DocumentStore

/// Clients that create and delete the same documents. The threads of a simulation use it, one at a time.
private final class ReplyModel {
    private let simulation: Simulation
    private let harness: StoreHarness
    private var acknowledged: [(path: String, number: Int64?, time: UInt64)] = []
    private(set) var problem: String?

    init(_ simulation: Simulation) throws {
        self.simulation = simulation
        harness = try .simulated(simulation, syncFailsOnceIn: simulation.random.oneIn(2) ? 4 : nil)
    }

    /// Creates or deletes each of a few documents that others create and delete too.
    func change(client: Int64) throws {
        for step in 0..<3 as Range<Int64> {
            let path = "c/\(step)"
            try create(path, client * 10 + step)
            if simulation.random.oneIn(2) { try delete("d/\(step)", client) }
        }
    }

    private func create(_ path: String, _ number: Int64) throws {
        let write = StepWrite.set(path, fields(number), .exists(false))
        switch try harness.wait(for: [write], maySync: simulation.random.oneIn(4)) {
        case .success(let result): try note(path, number, result)
        case .failure(let error):
            guard error.code == .alreadyExists else { return try expectFailedStore(error) }
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
        let found = try harness.number(path, at: time)
        if found != number { problem = "\(path) at \(time) is \(found as Any), not \(number as Any)" }
    }

    /// Only a sync that failed is an excuse.
    private func expectFailedStore(_ error: RequestError) throws {
        switch try harness.wait(for: [.set("e/e", fields(0))]) {
        case .success: problem = "a commit succeeds after the failure: \(error)"
        case .failure: break
        }
    }

    /// Opens what a crash would leave, which has all that was acknowledged.
    func crash() throws {
        let after = try harness.crashed { $0.engine.fault = nil }
        for (path, number, time) in acknowledged {
            let found = try after.number(path, at: time)
            if found != number { problem = "\(path) at \(time) is \(found as Any) after a crash" }
        }
        try after.finish()
        harness.store.close()
    }
}

@Suite(.timeLimit(.minutes(600)), .simulated)
struct ReplySimulationTests {
    @Test
    func `What a reply rests on is visible when it comes, and durable`() {
        let problem = SimulatedSeeds.problem(of: "replies", count: 60, soak: 300_000) { simulation in
            let model = try ReplyModel(simulation)
            try simulation.concurrently((1...3).map { client in { try model.change(client: client) } })
            try model.crash()
            return model.problem
        }
        #expect(problem == nil)
    }
}
