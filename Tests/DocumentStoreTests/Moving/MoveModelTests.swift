// Moves of a database while a model writes, with crashes, restarts, repeated steps and late chunks at every point.
//
// The model is a dictionary with the documents and their times, and the results of the commits. After the moves the
// store that owns the database has these documents, gives repeated commits the results of the first ones, and has the
// index entries that its documents require.

import Basics
import DocumentModel
import Storage
import TestSupport
import Testing

@testable import DocumentStore
@testable import Indexing

@Suite(.timeLimit(.minutes(20)))
struct MoveModelTests {
    /// What the clients know.
    private struct Model {
        var documents: [String: SeenDocument] = [:]
        var answers: [(identifier: RequestIdentifier, writes: [StepWrite], result: CommitResult)] = []
        var lastCommit: UInt64 = 0
        private var sequences: [UInt64: UInt64] = [:]

        /// The next number of a session.
        mutating func identifier(session: UInt64) -> RequestIdentifier {
            sequences[session, default: 0] += 1
            return RequestIdentifier(
                sessionHigh: session, sessionLow: 9, sequence: sequences[session] ?? 0, oldestPending: 1)
        }

        mutating func note(
            _ identifier: RequestIdentifier, _ writes: [StepWrite], _ result: CommitResult
        ) {
            expect(result.commitMicroseconds > lastCommit)
            lastCommit = result.commitMicroseconds
            answers.append((identifier, writes, result))
            for (write, outcome) in zip(writes, result.writeResults) {
                switch write {
                case .set(let path, let fields, _): put(path, fields, outcome)
                case .increment(let path, let field, let amount):
                    var value = amount
                    if case .integer(let known)? = documents[path]?.fields[field] { value += known }
                    put(path, fieldsOf(value), outcome)
                case .delete(let path, _): documents[path] = nil
                default: break
                }
            }
        }

        private func fieldsOf(_ value: Int64) -> MapValue { DocumentStoreTests.fields(value) }

        private mutating func put(_ path: String, _ fields: MapValue, _ outcome: WriteResult) {
            let time = outcome.updateMicroseconds ?? 0
            documents[path] = SeenDocument(
                fields: fields, createMicroseconds: documents[path]?.createMicroseconds ?? time,
                updateMicroseconds: time)
        }
    }

    private struct Run {
        var stores: MovingStores
        var model = Model()
        var random: SeededGenerator
        /// Chunks of this move that were applied, or lost.
        var late: [MoveChunk] = []

        init(seed: UInt64) throws {
            random = SeededGenerator(seed: seed)
            stores = try MovingStores {
                $0.engine.memtableBytesMax = 64 << 10
                $0.engine.logSegmentBytes = 32 << 10
            }
            stores.source.clock.advance(milliseconds: UInt64(random.below(2)) * 3_600_000)
            stores.chunkBytes = random.pick([200, 2_000, 1 << 20])
        }

        private mutating func write() -> [StepWrite] {
            var paths: Set<String> = []
            for _ in 0...random.below(5) {
                let collection = random.pick(["a", "b", "a/d1/s", "b/" + String(repeating: "long", count: 60) + "/s"])
                paths.insert("\(collection)/d\(random.below(12))")
            }
            return paths.sorted().map { path in
                switch random.below(4) {
                case 0: .delete(path)
                case 1: .increment(path, field: "n", by: Int64(random.below(3)))
                default: .set(path, fields(Int64(random.below(1_000))))
                }
            }
        }

        mutating func commit(to harness: StoreHarness) async throws {
            harness.clock.advance(milliseconds: UInt64(random.below(3)))
            let identifier = model.identifier(session: UInt64(random.below(3)))
            let writes = write()
            model.note(identifier, writes, try await harness.result(committing: writes, identifier: identifier))
        }

        /// What may happen between two steps.
        mutating func disturb(writes: Bool) async throws {
            while random.oneIn(2) {
                switch random.below(6) {
                case 0: stores.source = try stores.source.restarted()
                case 1: stores.target = try stores.target.restarted()
                case 2: stores.source = try stores.source.reopened()
                case 3: stores.target = try stores.target.reopened()
                case 4:
                    guard let chunk = late.randomElement(using: &random) else { break }
                    let before = stores.target.store.tenure(of: stores.database)
                    if before.state == .receiving { _ = try await stores.apply(chunk) }
                default: break
                }
                if writes { try await commit(to: stores.source) }
            }
            if random.oneIn(3) { try stores.source.store.checkpoint() }
            if random.oneIn(3) { try stores.target.store.checkpoint() }
        }

        mutating func copy(writes: Bool, steps: Int) async throws {
            for _ in 0..<steps {
                try await disturb(writes: writes)
                let chunk = try stores.chunk()
                if chunk.bytes.isEmpty { return }
                late.append(chunk)
                // Some are lost on their way.
                if random.oneIn(5) { continue }
                _ = try await stores.apply(chunk)
                if chunk.isLast { return }
            }
        }

        mutating func move() async throws {
            late = []
            try await expectEqual(stores.receive().state, .receiving)
            try await disturb(writes: true)
            if random.oneIn(2) { try await expectEqual(stores.receive().state, .receiving) }
            try await copy(writes: true, steps: random.below(30))
            if random.oneIn(4) {
                try await expectEqual(stores.discard().state, .discarded)
                try await MovingStores.waitUntilRemoved(stores.target)
                stores.generation += 1
                late = []
                try await expectEqual(stores.receive().state, .receiving)
                try await copy(writes: true, steps: random.below(30))
            }
            try await expectEqual(stores.release().state, .released)
            try await disturb(writes: false)
            if random.oneIn(2) { try await expectEqual(stores.release().state, .released) }
            while stores.target.store.tenure(of: stores.database).state != .owned {
                try await copy(writes: false, steps: 100)
            }
            if random.oneIn(2) { stores.target = try stores.target.restarted() }
            try await expectEqual(stores.deleteReleased().state, .released)
        }

        /// Compares the owner with the model.
        mutating func check() async throws {
            let target = stores.target
            for path in Set(model.documents.keys).union(model.answers.flatMap { $0.writes.map(\.path) }).sorted() {
                try expectEqual(target.get(path), model.documents[path], "\(path)")
            }
            for collection in ["a", "b", "a/d1/s"] {
                let expected = model.documents.keys.filter {
                    $0.hasPrefix("\(collection)/") && !$0.dropFirst(collection.count + 1).contains("/")
                }
                let ids = expected.map { String($0.dropFirst(collection.count + 1)) }
                try expectEqual(target.ids(collection).sorted(), ids.sorted())
            }
            for answer in model.answers {
                let again = try await target.result(committing: answer.writes, identifier: answer.identifier)
                expectEqual(again, answer.result)
            }
            for path in model.documents.keys.sorted() {
                try expectEqual(target.get(path), model.documents[path], "\(path) after the repetitions")
            }
        }
    }

    @Test(arguments: CaseShare.of(UInt64(1)...24, 8))
    func `A move loses, doubles and reorders nothing`(seed: UInt64) async throws {
        print("seed \(seed)")
        var run = try Run(seed: seed)
        for _ in 0..<(5 + run.random.below(40)) { try await run.commit(to: run.stores.source) }
        try await run.move()
        try await run.check()
        for _ in 0..<10 { try await run.commit(to: run.stores.target) }
        if run.random.oneIn(2) {
            try await MovingStores.waitUntilRemoved(run.stores.source)
            run.stores.turn()
            try await run.move()
            try await run.check()
        }
        try await MovingStores.waitUntilRemoved(run.stores.source)
        try expectEqual(StoreCheck.run(run.stores.source.store).documents, 0)
        try run.stores.finish()
    }
}

extension StepWrite {
    fileprivate var path: String {
        switch self {
        case .set(let path, _, _), .merge(let path, _, _, _), .increment(let path, _, _), .delete(let path, _),
            .verify(let path, _):
            path
        }
    }
}
