// What a session does and holds between two pauses.

import Basics
import DocumentModel
import FirestoreMessages
import TestSupport
import Testing

@testable import Listening

@Suite(.timeLimit(.minutes(20)))
struct ListenStepTests {
    private let harness: ListenHarness
    private let session: ListenSession

    init() throws {
        harness = try ListenHarness()
        session = ListenSession(harness.hub, database: harness.database, judge: nil, wake: {})
    }

    /// Resumes a target from a version.
    private func resume(_ kind: ListenTarget.Kind, at time: UInt64) throws {
        let version = ListenTarget.Resume.readTime(TimestampValue(microseconds: Int64(time)))
        let target = ListenTarget(kind, id: 1, resume: version, once: false, expectedCount: 0)
        try session.receive(ListenRequest(database: "\(harness.database)", .add(target)))
    }

    private func query(_ filter: Filter) -> ListenTarget.Kind {
        .query(
            parent: harness.database.documentsRoot,
            StructuredQuery(from: [CollectionSelector(collectionID: "c")], filter: filter))
    }

    /// Takes all messages.
    /// - Returns: the number of documents among them, and the most bytes of messages that were held meanwhile.
    private func drain() throws -> (documents: Int, bytesMax: Int) {
        var (documents, bytesMax) = (0, 0)
        for _ in 0..<100_000 {
            var output = ByteBuffer()
            let step = session.next(into: &output)
            bytesMax = max(bytesMax, session.heldBytes + output.count)
            switch step {
            case .waiting:
                if !session.isWaitingForStorage { return (documents, bytesMax) }
                try waitUntil("storage is ready") {
                    harness.hub.continueReads()
                    return !session.isWaitingForStorage
                }
            case .yielding: continue
            case .failed(let error): throw error
            case .message:
                let message = try ListenResponse(wire: output.bytes)
                if case .documentChange = message { documents += 1 }
            }
        }
        throw ListenStepError.endless
    }

    private enum ListenStepError: Error { case endless }

    @Test
    func `Documents that have not changed are looked up in several steps`() throws {
        try harness.set("c/d0", [:])
        let paths = (0..<3_000).map { "c/d\($0)" }
        try resume(.documents(paths.map(harness.name)), at: harness.store.currentReadTime)
        try expectEqual(drain().documents, 0)
        // They are looked up at both versions.
        expect(session.steps > 20, "\(session.steps) steps")
    }

    @Test
    func `Documents that a query has lost are sent page by page`() throws {
        let text = Value.string(String(repeating: "x", count: 50_000))
        func set(_ number: Int64) throws {
            _ = try harness.commit((0..<60).map { ("c/d\($0)", ["n": .integer(number), "t": text]) })
        }
        try set(1)
        let time = harness.store.currentReadTime
        harness.clock.advance(milliseconds: 1)
        try set(2)
        try resume(query(.field(try FieldPath("n"), .equal, EncodedValue(.integer(1)))), at: time)
        let (documents, bytesMax) = try drain()
        expectEqual(documents, 60)
        expect(bytesMax < 256 << 10, "\(bytesMax) bytes are held")
    }

    @Test
    func `Documents that a query has not lost are compared with its conditions in several steps`() throws {
        var fields = Dictionary(uniqueKeysWithValues: (0..<2_000).map { ("f\(10_000 + $0)", Value.integer(Int64($0))) })
        func set(_ number: Int64) throws {
            fields["n"] = .integer(number)
            _ = try harness.commit((0..<8).map { ("c/d\($0)", fields) })
        }
        let conditions = try (1_900..<1_990).map { number in
            Filter.field(try FieldPath("f\(10_000 + number)"), .equal, EncodedValue(.integer(Int64(number))))
        }
        func steps(_ filter: Filter) throws -> Int {
            try set(1)
            let time = harness.store.currentReadTime
            harness.clock.advance(milliseconds: 1)
            try set(2)
            let before = session.steps
            try resume(query(filter), at: time)
            try expectEqual(drain().documents, 8)
            try session.receive(ListenRequest(database: "\(harness.database)", .remove(1)))
            return session.steps - before
        }
        let (few, many) = (try steps(conditions[0]), try steps(.and(conditions)))
        expect(many > few + 5, "\(few) and \(many) steps")
    }
}
