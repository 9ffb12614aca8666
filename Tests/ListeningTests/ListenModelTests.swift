// Random writers, and listeners that join, leave, stall, break off and resume, also over restarts and crashes of the
// server. The client checks the six guarantees of docs/listen.md on every message.

import Basics
import DocumentModel
import Foundation
import Listening
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)), .inSimulations)
struct ListenModelTests {
    /// How the sessions' bounds are chosen: some runs lose changes all the time.
    enum Bounds: String, CaseIterable {
        case ample
        case smallFeed
        case fewChanges
    }

    private static let environment = ProcessInfo.processInfo.environment
    private static let isSoak = environment["HEARTH_SOAK"] != nil

    /// `HEARTH_LISTEN_ROUNDS` makes the run longer, `HEARTH_SOAK` fifty times.
    private static let rounds = Int(environment["HEARTH_LISTEN_ROUNDS"] ?? "") ?? (isSoak ? 20_000 : 400)

    /// `HEARTH_LISTEN_SEED` repeats a run. Without it only a soak takes random seeds: a change is tested with those of
    /// the change before.
    private static let seed = UInt64(environment["HEARTH_LISTEN_SEED"] ?? "")

    @Test(arguments: Bounds.allCases, [1, 2, 3] as [UInt64])
    func `Every snapshot is the query at its read time`(bounds: Bounds, round: UInt64) throws {
        let seed = Self.seed ?? (Self.isSoak ? UInt64.random(in: 0 ... .max) : 700 + round)
        print("seed \(seed), \(bounds.rawValue)")
        try run(bounds, seed)
    }

    private func run(_ bounds: Bounds, _ seed: UInt64) throws {
        var limits = ListenLimits()
        if bounds == .fewChanges { limits.changes = 3 }
        let harness = try ListenHarness(limits: limits) { if bounds == .smallFeed { $0.changeFeedBytesMax = 600 } }
        var random = RandomListening(seed: seed)
        var clients = (0..<3).map { _ in ListenClient(harness) }
        for client in clients { try client.connect() }
        for _ in 0..<Self.rounds {
            let client = random.generator.pick(clients)
            switch random.generator.below(20) {
            case 0..<8: _ = try harness.commit(random.writes())
            case 8..<11: harness.hub.advance()
            case 11..<14: try client.drain()
            case 14: try client.drain(atMost: random.generator.below(4))
            case 15, 16:
                if client.targets.count < 4, let id = random.freeID(client) {
                    try client.listen(id, to: random.subject())
                }
            case 17:
                if let id = client.targets.keys.sorted().randomElement(using: &random.generator) {
                    try client.stopListening(id)
                }
            case 18:
                client.disconnect()
                try client.resume(expectedCount: random.generator.oneIn(2))
            default:
                guard random.generator.oneIn(10) else { continue }
                for client in clients { client.disconnect() }
                if random.generator.oneIn(2) { try harness.reopen() } else { try harness.crash() }
                for client in clients { try client.resume() }
            }
        }
        harness.hub.advance()
        for client in clients {
            try client.drain()
            let isCurrent = client.targets.values.allSatisfy { $0.isCurrent }
            expect(isCurrent, "seed \(seed)")
            client.disconnect()
        }
        expectEqual(harness.hub.sessionCount, 0)
        clients = []
    }
}

/// Random documents, writes and targets over a few names.
struct RandomListening {
    var generator: SeededGenerator
    private var nextID: Int32 = 0

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    /// An id that the client does not use; an old one sometimes.
    mutating func freeID(_ client: ListenClient) -> Int32? {
        nextID += 1
        let id = generator.oneIn(3) ? Int32(generator.below(5) + 1) : nextID + 5
        return client.targets[id] == nil ? id : nil
    }

    private mutating func path() -> String {
        let collection = generator.pick(["c", "c", "d", "c/x/c", "d/y/e"])
        return "\(collection)/\(generator.pick(["a", "b", "c", "x", "y", "z", "k1", "k2"]))"
    }

    private mutating func fields() -> [String: Value] {
        var fields: [String: Value] = [:]
        if !generator.oneIn(6) { fields["n"] = .integer(Int64(generator.below(6))) }
        if generator.oneIn(2) { fields["s"] = .string(generator.pick(["p", "q", "r"])) }
        if generator.oneIn(2) {
            fields["t"] = .array((0..<generator.below(3)).map { _ in .string(generator.pick(["u", "v", "w"])) })
        }
        if generator.oneIn(5) { fields["n"] = .null }
        return fields
    }

    /// The writes of one commit; each document once.
    mutating func writes() -> [(path: String, fields: [String: Value]?)] {
        var writes: [String: [String: Value]?] = [:]
        for _ in 0...generator.below(generator.oneIn(5) ? 8 : 2) {
            writes[path()] = generator.oneIn(3) ? .some(nil) : fields()
        }
        return writes.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    mutating func subject() -> Subject {
        if generator.oneIn(4) { return .documents((0...generator.below(3)).map { _ in path() }) }
        var query = StructuredQuery(from: [
            CollectionSelector(
                collectionID: generator.pick(["c", "c", "d"]), allDescendants: generator.oneIn(3))
        ])
        query.filter = filter()
        if generator.oneIn(2), query.filter == nil {
            query.orderBy = [Order(field: Self.n, direction: generator.oneIn(2) ? .ascending : .descending)]
        }
        if generator.oneIn(2) { query.limit = Int32(generator.below(4)) }
        if generator.oneIn(6) { query.offset = Int32(generator.below(3)) }
        if generator.oneIn(6), !query.orderBy.isEmpty {
            query.startAt = Cursor(values: [EncodedValue(.integer(2))], before: generator.oneIn(2))
        }
        if generator.oneIn(6) { query.select = Projection(fields: [Self.s]) }
        return .query(query)
    }

    private static let n = field("n")
    private static let s = field("s")
    private static let t = field("t")

    private static func field(_ name: String) -> FieldPath {
        guard let path = try? FieldPath(name) else { fatalError("\(name) is not a field path") }
        return path
    }

    private mutating func filter() -> Filter? {
        switch generator.below(8) {
        case 0: .field(Self.n, .equal, EncodedValue(.integer(Int64(generator.below(6)))))
        case 1: .field(Self.n, .greaterThan, EncodedValue(.integer(2)))
        case 2: .field(Self.t, .arrayContains, EncodedValue(.string("u")))
        case 3: .field(Self.s, .isIn, EncodedValue(.array([.string("p"), .string("q")])))
        case 4:
            .or([
                .field(Self.n, .equal, EncodedValue(.integer(1))), .field(Self.s, .equal, EncodedValue(.string("r"))),
            ])
        case 5:
            .and([
                .field(Self.s, .equal, EncodedValue(.string("p"))),
                .field(Self.n, .lessThan, EncodedValue(.integer(4))),
            ])
        default: nil
        }
    }
}
