// Requests of a client that breaks every rule: targets of all forms with bytes changed at random, ids used twice,
// tokens of no server, between random commits. Nothing crashes, a session comes to its end in a bounded number of
// steps, each message can be read, and a closed session leaves no memory in use.

import Basics
import DocumentModel
import FirestoreMessages
import Foundation
import Listening
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct HostileListenTests {
    private static let rounds = ProcessInfo.processInfo.environment["HEARTH_SOAK"] == nil ? 3_000 : 300_000

    @Test(arguments: [false, true])
    func `Random requests end in messages or an error`(isJudged: Bool) throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed \(seed)")
        var limits = ListenLimits()
        limits.targets = 20
        limits.targetBytes = 1 << 20
        let harness = try ListenHarness(limits: limits)
        let judge = isJudged ? TestJudge(harness) : nil
        var random = RandomListening(seed: seed)
        var session: ListenSession?
        var (malformed, refused, messages) = (0, 0, 0)
        for _ in 0..<Self.rounds {
            let open = session ?? Self.open(harness, judge)
            session = open
            do {
                try open.receive(try ListenRequest(wire: Self.request(harness, &random).byteSpan))
            } catch let error as RequestError {
                // The stream ends with the error.
                expect([.invalidArgument, .resourceExhausted].contains(error.code), "\(error), seed \(seed)")
                open.close()
                session = nil
                refused += 1
            } catch {
                malformed += 1
            }
            if random.generator.oneIn(3) { _ = try harness.commit(random.writes()) }
            if isJudged, random.generator.oneIn(5) {
                let isOK = !random.generator.oneIn(4)
                try harness.set("rules/\(random.generator.pick(["c", "d"]))", ["ok": .boolean(isOK)])
            }
            if random.generator.oneIn(3) { harness.hub.advance() }
            if let session, random.generator.oneIn(2) { messages += try Self.drain(session, seed: seed) }
        }
        session?.close()
        expect(malformed > 0 && refused > 0 && messages > 0)
        expectEqual(harness.hub.sessionCount, 0)
        expectEqual(harness.hub.targetBytes, 0, "seed \(seed)")
        expectEqual(harness.hub.heldChanges, 0, "seed \(seed)")
        expectEqual(harness.hub.judgedDocuments, 0, "seed \(seed)")
    }

    private static func open(_ harness: ListenHarness, _ judge: TestJudge?) -> ListenSession {
        ListenSession(
            harness.hub, database: harness.database, judge: judge, wake: {})
    }

    /// Takes what the session has to send.
    private static func drain(_ session: ListenSession, seed: UInt64) throws -> Int {
        var count = 0
        // Twenty targets over sixteen documents: far more steps than any snapshot of them takes.
        for _ in 0..<100_000 {
            var output = ByteBuffer()
            switch session.next(into: &output) {
            case .waiting: return count
            case .yielding: continue
            case .failed(let error): throw error
            case .message:
                let bytes = output.copyBytes()
                _ = try ListenResponse(wire: bytes.byteSpan)
                count += 1
            }
        }
        Issue.record("the session does not come to an end, seed \(seed)")
        return count
    }

    /// A request in wire format; four of five have changed bytes.
    private static func request(_ harness: ListenHarness, _ random: inout RandomListening) -> [UInt8] {
        var writer = ByteBuffer()
        let id = random.generator.pick([0, 1, 2, 3, 4, 5, 6, 7, -1, .max, .min] as [Int32])
        if random.generator.oneIn(5) {
            ListenRequest(database: "\(harness.database)", .remove(id)).encode(into: &writer)
        } else {
            let kind: ListenTarget.Kind =
                switch random.subject() {
                case .documents(let paths): .documents(paths.map(harness.name))
                case .query(let query): .query(parent: harness.database.documentsRoot, query)
                }
            let target = ListenTarget(
                kind, id: id, resume: resume(harness, &random), once: random.generator.oneIn(5),
                expectedCount: random.generator.pick([nil, nil, 0, 3, -1, .max]))
            ListenRequest(database: "\(harness.database)", .add(target)).encode(into: &writer)
        }
        var bytes = writer.copyBytes()
        if random.generator.oneIn(5) { return bytes }
        for _ in 0...random.generator.below(3) where !bytes.isEmpty {
            let position = random.generator.below(bytes.count)
            switch random.generator.below(4) {
            case 0: bytes[position] ^= 1 << UInt8(random.generator.below(8))
            case 1: bytes[position] = UInt8(random.generator.below(256))
            case 2: bytes.removeSubrange(position..<min(bytes.count, position + random.generator.below(4)))
            default: bytes.insert(UInt8(random.generator.below(256)), at: position)
            }
        }
        return bytes
    }

    private static func resume(_ harness: ListenHarness, _ random: inout RandomListening) -> ListenTarget.Resume? {
        switch random.generator.below(4) {
        case 0:
            return .token((0..<random.generator.below(20)).map { _ in UInt8(random.generator.below(256)) })
        case 1:
            // Around the position of the hub, or far from it.
            let distance = random.generator.pick([0, 1, 1_000, 1 << 40] as [Int64])
            let now = Int64(harness.clock.nowMicroseconds)
            var writer = ByteBuffer()
            let time = random.generator.oneIn(2) ? now &- distance : now &+ distance
            ResumeToken(microseconds: UInt64(max(0, time))).encode(into: &writer)
            return .token(writer.copyBytes())
        default: return nil
        }
    }
}
