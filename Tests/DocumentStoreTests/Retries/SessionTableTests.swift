// Repeated requests: what is kept, for how long, and where.

import Basics
import DocumentModel
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20)))
struct SessionTableTests {
    private func table(sessions: Int = 100, bytes: Int = 1 << 20, results: Int = 8) -> SessionTable {
        SessionTable(sessionsMax: sessions, bytesMax: bytes, resultsMax: results, idleMilliseconds: 1_000)
    }

    private func request(_ sequence: UInt64, oldest: UInt64, session: UInt64 = 1) -> RequestIdentifier {
        RequestIdentifier(sessionHigh: session, sessionLow: 9, sequence: sequence, oldestPending: oldest)
    }

    private func result(_ table: SessionTable, _ request: RequestIdentifier) -> [UInt8]? {
        if case .repeated(let bytes) = table.find(request) { bytes } else { nil }
    }

    private func refusal(_ table: SessionTable, _ request: RequestIdentifier) -> StatusCode? {
        if case .refused(let error) = table.find(request) { error.code } else { nil }
    }

    @Test
    func `A repetition finds the first result; another session of the same number does not`() {
        var table = table()
        _ = table.keep(request(1, oldest: 1), result: [7], nowMilliseconds: 0)
        expectEqual(result(table, request(1, oldest: 1)), [7])
        expectNil(result(table, request(1, oldest: 1, session: 2)))
        expectNil(refusal(table, request(2, oldest: 1)))
    }

    @Test
    func `A client that waits for each answer uses two slots at most`() {
        var table = table()
        var slots: Set<UInt32> = []
        for sequence in UInt64(1)...1_000 {
            slots.insert(
                table.keep(request(sequence, oldest: sequence), result: [1], nowMilliseconds: 0))
        }
        expect(slots.count <= 2)
    }

    @Test
    func `Bad numbers are refused: acknowledged before, too far ahead, later than itself`() {
        var table = table()
        _ = table.keep(request(5, oldest: 5), result: [1], nowMilliseconds: 0)
        expectEqual(refusal(table, request(4, oldest: 4)), .failedPrecondition)
        expectEqual(refusal(table, request(13, oldest: 5)), .resourceExhausted)
        expectNil(refusal(table, request(12, oldest: 5)))
        expectEqual(refusal(table, request(6, oldest: 7)), .invalidArgument)
    }

    @Test
    func `What was taken back can be done again`() {
        var table = table()
        let slot = table.keep(request(1, oldest: 1), result: [1], nowMilliseconds: 0)
        table.undo(request(1, oldest: 1))
        expectNil(result(table, request(1, oldest: 1)))
        let again = table.keep(request(2, oldest: 1), result: [2], nowMilliseconds: 0)
        expectEqual(again, slot)
    }

    @Test
    func `Idle sessions go, and the longest idle ones when there are too many`() {
        var table = table(sessions: 10)
        _ = table.keep(request(1, oldest: 1, session: 100), result: [1], nowMilliseconds: 0)
        _ = table.keep(request(2, oldest: 1, session: 100), result: [1], nowMilliseconds: 0)
        let early = table.removeIdle(nowMilliseconds: 999)
        expect(early.isEmpty)
        let removed = table.removeIdle(nowMilliseconds: 1_000)
        expectEqual(removed.map(\.slotCount), [2])
        for session in UInt64(1)...11 {
            _ = table.keep(
                request(1, oldest: 1, session: session), result: [1], nowMilliseconds: 2_000 + session)
        }
        expect(table.hasTooMany)
        let gone = table.removeIdle(nowMilliseconds: 2_100)
        expectEqual(gone.map(\.session.high).sorted(), [1, 2])
        expect(!table.hasTooMany)
    }

    @Test
    func `Sessions that take too many bytes go, the longest idle ones first, and not the one used last`() {
        var table = table(bytes: 64 << 10)
        let result = [UInt8](repeating: 1, count: 3_000)
        for session in UInt64(1)...19 {
            _ = table.keep(request(1, oldest: 1, session: session), result: result, nowMilliseconds: session)
            expect(table.byteCount > 3_000 * Int(session) && !table.hasTooMany)
        }
        _ = table.keep(request(1, oldest: 1, session: 20), result: result, nowMilliseconds: 20)
        expect(table.hasTooMany)
        let gone = table.removeIdle(nowMilliseconds: 20)
        expectEqual(gone.map(\.session.high), [1, 2, 3])
        expect(table.byteCount <= (64 << 10) * 9 / 10 && !table.hasTooMany)
        // One result alone is larger than all may be.
        let large = [UInt8](repeating: 1, count: 100_000)
        _ = table.keep(request(2, oldest: 1, session: 20), result: large, nowMilliseconds: 21)
        expectEqual(table.removeIdle(nowMilliseconds: 21).map(\.session.high), Array(4...19))
        expectEqual(self.result(table, request(2, oldest: 1, session: 20)), large)
        expect(!table.hasTooMany)
        expectEqual(table.removeIdle(nowMilliseconds: 1_021).count, 1)
        expectEqual(table.byteCount, 0)
    }

    @Test
    func `A session that leaves too many bytes unacknowledged is refused until it acknowledges them`() {
        var table = table(bytes: 64 << 10, results: 100)
        let result = [UInt8](repeating: 1, count: 1_000)
        var sequence: UInt64 = 1
        while refusal(table, request(sequence, oldest: 1)) == nil {
            _ = table.keep(request(sequence, oldest: 1), result: result, nowMilliseconds: 0)
            sequence += 1
        }
        expectEqual(sequence, 5)
        expectEqual(refusal(table, request(sequence, oldest: 1)), .resourceExhausted)
        // What is there is still found, and a request that acknowledges enough is taken.
        expectEqual(self.result(table, request(4, oldest: 1)), result)
        expectNil(refusal(table, request(sequence, oldest: 2)))
        _ = table.keep(request(sequence, oldest: 5), result: [1], nowMilliseconds: 0)
        expectNil(refusal(table, request(6, oldest: 5)))
        table.undo(request(sequence, oldest: 5))
        expect(table.byteCount < 1_000)
    }

    @Test(arguments: [UInt64(41), 42])
    func `A table restored from its slots answers as the one that wrote them`(seed: UInt64) throws {
        print("seed \(seed)")
        var generator = SeededGenerator(seed: seed)
        var table = table(results: 64)
        var stored: [[UInt8]: (sequence: UInt64, result: [UInt8])] = [:]
        var pending: Set<UInt64> = []
        var next: UInt64 = 1
        for _ in 0..<300 {
            let oldest = pending.min() ?? next
            if next - oldest < 60 {
                let request = request(next, oldest: oldest)
                let bytes = [UInt8(truncatingIfNeeded: next), 3]
                let slot = table.keep(request, result: bytes, nowMilliseconds: 0)
                var key = ByteBuffer()
                SessionTable.SlotName(session: SessionTable.SessionName(request), slot: slot).writeKey(into: &key)
                stored[key.copyBytes()] = (next, bytes)
                pending.insert(next)
                next += 1
            }
            while generator.oneIn(2), let done = pending.randomElement(using: &generator) { pending.remove(done) }
        }
        var restored = self.table(results: 64)
        for (key, entry) in stored {
            let found = SessionTable.SlotName(key: key.byteSpan)
            let name = try #require(found)
            restored.restore(name, sequence: entry.sequence, encodedResult: entry.result.byteSpan, nowMilliseconds: 0)
        }
        for sequence in pending {
            expectEqual(
                result(restored, request(sequence, oldest: sequence)), [UInt8(truncatingIfNeeded: sequence), 3])
        }
    }
}
