// Random writers, listeners and changes of the rules. With every message of a target the client checks that the
// target is allowed at the hub's position, and that it was not removed; with every snapshot, that the targets that are
// left have all of their documents.

import Basics
import DocumentModel
import Foundation
import TestSupport
import Testing

@testable import Listening

@Suite(.timeLimit(.minutes(20)))
struct ListenJudgementModelTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let isSoak = environment["HEARTH_SOAK"] != nil

    /// `HEARTH_LISTEN_ROUNDS` makes the run longer, `HEARTH_SOAK` fifty times; `HEARTH_LISTEN_SEED` repeats a run.
    private static let rounds = Int(environment["HEARTH_LISTEN_ROUNDS"] ?? "") ?? (isSoak ? 20_000 : 400)
    private static let seed = UInt64(environment["HEARTH_LISTEN_SEED"] ?? "")

    @Test(arguments: [true, false], [1, 2, 3] as [UInt64])
    func `Nothing of a target is sent that is not allowed`(losesChanges: Bool, round: UInt64) throws {
        let seed = Self.seed ?? (Self.isSoak ? UInt64.random(in: 0 ... .max) : 900 + round)
        print("seed \(seed), \(losesChanges ? "a small feed" : "an ample feed")")
        let run = try JudgedListening(seed: seed, losesChanges: losesChanges)
        for _ in 0..<Self.rounds { try run.step() }
        try run.finish()
    }
}

/// One random history.
private final class JudgedListening {
    private let harness: ListenHarness
    private let judge: TestJudge
    private let clients: [ListenClient]
    private var random: RandomListening
    private let seed: UInt64
    private var denials = 0
    private var queuedDenials = 0

    init(seed: UInt64, losesChanges: Bool) throws {
        self.seed = seed
        harness = try ListenHarness { if losesChanges { $0.changeFeedBytesMax = 600 } }
        let judge = TestJudge(harness)
        self.judge = judge
        random = RandomListening(seed: seed)
        let harness = harness
        clients = (0..<3).map { _ in
            let client = ListenClient(harness)
            client.judge = judge
            return client
        }
        for client in clients { try client.connect() }
        for collection in ["c", "d"] { try setRule(of: collection, true) }
    }

    private func setRule(of collection: String, _ isOK: Bool) throws {
        try harness.set("rules/\(collection)", ["ok": .boolean(isOK)])
    }

    /// Takes messages, and counts the targets that were denied.
    private func drain(_ client: ListenClient, atMost: Int = .max) throws {
        let hadMessages = client.session.map { !$0.queue.isEmpty } ?? false
        try client.drain(atMost: atMost)
        for case .targetChange(let change) in client.takeMessages() where change.cause != nil {
            expectEqual(change.cause?.code, .permissionDenied, "seed \(seed)")
            denials += 1
            if hadMessages { queuedDenials += 1 }
        }
    }

    func step() throws {
        let client = random.generator.pick(clients)
        switch random.generator.below(20) {
        case 0..<6: _ = try harness.commit(random.writes())
        case 6, 7: try setRule(of: random.generator.pick(["c", "d"]), !random.generator.oneIn(3))
        case 8..<10: harness.hub.advance()
        case 10: try drain(client)
        case 11..<14: try drain(client, atMost: random.generator.below(4))
        case 14..<17:
            if client.targets.count < 4, let id = random.freeID(client) { try client.listen(id, to: random.subject()) }
        case 17:
            if let id = client.targets.keys.sorted().randomElement(using: &random.generator) {
                try client.stopListening(id)
            }
        case 18:
            client.disconnect()
            try client.resume(expectedCount: random.generator.oneIn(2))
        default:
            judge.deniesAll = random.generator.oneIn(4)
            for client in clients { client.session?.judgeAgain() }
        }
    }

    /// At the end every target that is left is allowed and current, and closed sessions leave nothing.
    func finish() throws {
        harness.hub.advance()
        for client in clients {
            try drain(client)
            for target in client.targets.values {
                expect(target.isCurrent, "seed \(seed)")
                let isAllowed = try judge.allows(target.subject, at: harness.hub.position)
                expect(isAllowed, "seed \(seed)")
            }
            client.disconnect()
        }
        expect(denials > 0 && queuedDenials > 0, "seed \(seed)")
        expectEqual(harness.hub.targetBytes, 0, "seed \(seed)")
        expectEqual(harness.hub.heldChanges, 0, "seed \(seed)")
        expectEqual(harness.hub.judgedDocuments, 0, "seed \(seed)")
    }
}
