// Concurrent random commits against a plain dictionary.
//
// Several clients commit random writes to few documents. Every answer carries its commit time; put in that order, a
// model that is a dictionary must give the same results, the same failures aside, and end with the same documents.
// Reads at every commit time must show the model's state at that time, also after a crash.

import Basics
import DocumentModel
import Storage
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)), .inSimulations)
struct ModelTests {
    private struct Done: Sendable {
        var time: UInt64
        var writes: [Step]
        var results: [WriteResult]
    }

    private struct Step: Sendable {
        enum Kind: Int, Sendable { case set, increment, delete }
        var kind: Kind
        var path: String
        var value: Int64

        var write: StepWrite {
            switch kind {
            case .set: .set(path, fields(value))
            case .increment: .increment(path, field: "n", by: value)
            case .delete: .delete(path)
            }
        }
    }

    /// The plain dictionary.
    private struct Model {
        var documents: [String: SeenDocument] = [:]

        mutating func apply(_ step: Step, at time: UInt64) -> WriteResult {
            let old = documents[step.path]
            var transformResults: [EncodedValue] = []
            var new: MapValue?
            switch step.kind {
            case .delete:
                documents[step.path] = nil
                return WriteResult(updateMicroseconds: nil)
            case .set: new = fields(step.value)
            case .increment:
                var value = step.value
                if case .integer(let number)? = old?.fields["n"] { value += number }
                new = fields(value)
                transformResults = [EncodedValue(.integer(value))]
            }
            let isChanged = old?.fields != new
            let document = SeenDocument(
                fields: new!, createMicroseconds: old?.createMicroseconds ?? time,
                updateMicroseconds: isChanged ? time : old!.updateMicroseconds)
            documents[step.path] = document
            return WriteResult(updateMicroseconds: document.updateMicroseconds, transformResults: transformResults)
        }
    }

    @Test(arguments: [UInt64(101), 102])
    func `Commits are serial in the order of their times, at every time, over checkpoints and a crash`(seed: UInt64)
        async throws
    {
        print("seed \(seed)")
        let harness = try StoreHarness {
            $0.clock = SystemClock()
            $0.engine.memtableBytesMax = 64 << 10
            $0.engine.logSegmentBytes = 32 << 10
        }
        let done = Collected<Done>()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for client in 0..<6 {
                group.addTask {
                    var generator = SeededGenerator(seed: seed &* 1_000 &+ UInt64(client))
                    for _ in 0..<120 {
                        let steps = (0..<(1 + generator.below(6))).map { _ in
                            Step(
                                kind: generator.pick([.set, .set, .increment, .delete]),
                                path: generator.pick(["a", "b", "a/1/s"]) + "/\(generator.below(8))",
                                value: Int64(generator.below(4)))
                        }
                        let result = try await harness.result(committing: steps.map(\.write))
                        done.append(Done(time: result.commitMicroseconds, writes: steps, results: result.writeResults))
                    }
                }
            }
            try await group.waitForAll()
        }
        let order = done.all.sorted { $0.time < $1.time }
        expectEqual(Set(order.map(\.time)).count, order.count)
        var model = Model()
        var moments: [(time: UInt64, documents: [String: SeenDocument])] = []
        for commit in order {
            expectEqual(commit.writes.map { model.apply($0, at: commit.time) }, commit.results)
            moments.append((commit.time, model.documents))
        }
        let crashed = try harness.crashed()
        for store in [harness, crashed] {
            for (path, document) in model.documents { try expectEqual(store.get(path), document) }
            var generator = SeededGenerator(seed: seed)
            for _ in 0..<60 {
                let moment = generator.pick(moments)
                let selector = ReadSelector.time(TimestampValue(microseconds: Int64(moment.time)))
                for collection in ["a", "b", "a/1/s"] {
                    let expected = moment.documents.keys.filter {
                        $0.hasPrefix("\(collection)/") && $0.count == collection.count + 2
                    }
                    try expectEqual(store.ids(collection, .all, selector), expected.map { String($0.last!) }.sorted())
                }
            }
        }
        try crashed.finish()
        try harness.finish()
    }
}
