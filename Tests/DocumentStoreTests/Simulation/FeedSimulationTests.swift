// Subscriptions of the change feed that begin and end while commits are made: what a subscriber knows of the documents
// is what a reader finds at the same time.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import DocumentStore

/// Writers and subscribers of one store. The threads of a simulation use it, one at a time.
private final class FeedModel {
    private static let paths = ["c/0", "c/1", "c/2"]

    private let simulation: Simulation
    private let harness: StoreHarness
    private(set) var problem: String?

    init(_ simulation: Simulation) throws {
        self.simulation = simulation
        harness = try .simulated(simulation) {
            if simulation.random.oneIn(4) { $0.changeFeedBytesMax = 200 }
        }
    }

    func write(client: Int64) throws {
        for step in 0..<4 as Range<Int64> {
            let path = simulation.random.pick(Self.paths)
            let isDelete = simulation.random.oneIn(4)
            let write = isDelete ? StepWrite.delete(path) : .set(path, fields(client * 10 + step))
            _ = try harness.wait(for: [write], maySync: simulation.random.oneIn(4)).get()
        }
    }

    /// Subscribes and follows the changes, twice.
    func follow() throws {
        for _ in 0..<2 {
            let subscription = harness.store.subscribeToChanges {}
            var position = harness.store.currentReadTime
            var known = try contents(at: position)
            for _ in 0..<4 {
                let readTime = harness.store.currentReadTime
                if let batches = subscription.changes(after: position, through: readTime) {
                    for batch in batches { Self.apply(batch, after: position, through: readTime, to: &known) }
                    let found = try contents(at: readTime)
                    if known != found { problem = "at \(readTime) there is \(found), the feed has \(known)" }
                } else {
                    known = try contents(at: readTime)
                }
                position = readTime
            }
            withExtendedLifetime(subscription) {}
        }
    }

    private func contents(at time: UInt64) throws -> [String: Int64] {
        var contents: [String: Int64] = [:]
        for path in Self.paths { contents[path] = try harness.number(path, at: time) }
        return contents
    }

    private static func apply(
        _ batch: ChangeBatch, after position: UInt64, through readTime: UInt64, to known: inout [String: Int64]
    ) {
        batch.forEachChange(after: position, through: readTime) { change in
            let path = String(decoding: [UInt8](copying: change.path), as: UTF8.self)
            known[path] = nil
            guard change.existsAfter, case .integer(let number)? = try? MapValue(documentBytes: change.after)["n"]
            else { return }
            known[path] = number
        }
    }

    func finish() throws { try harness.finish() }
}

@Suite(.timeLimit(.minutes(600)), .simulated)
struct FeedSimulationTests {
    @Test
    func `A subscriber misses no change, whenever it comes`() {
        let problem = SimulatedSeeds.problem(of: "change feed", count: 60, soak: 300_000) { simulation in
            let model = try FeedModel(simulation)
            try simulation.concurrently([
                { try model.write(client: 1) }, { try model.write(client: 2) }, model.follow,
            ])
            try model.finish()
            return model.problem
        }
        expectNil(problem)
    }
}
