// Calls over a real socket: every shape, every end.

import Basics
import ConnectionTestSupport
import TestSupport
import Testing

@testable import Calls

@Suite(.timeLimit(.minutes(20))) struct CallTests {
    @Test func `A unary call brings back what the handler wrote`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let connection = live.connect()
        for size in [0, 1, 100, 20_000, 70_000, 1_000_000] {
            let payload = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            let reply = connection.callAndWait(.getDocument, payload)
            expectEqual(reply?.outcome, .ok)
            expectEqual(reply?.bytes, payload)
        }
    }

    @Test func `A failed call brings its code and text`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let reply = live.connect().callAndWait(.rollback, Array("zu spät".utf8))
        expectEqual(reply?.outcome, CallOutcome(.aborted, "zu spät"))
    }

    @Test func `A call can complete later from another thread`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let connection = live.connect()
        let promise = Promise<Reply>()
        connection.unary(.commit, [1]) { promise.fulfil(Reply(outcome: $0, bytes: [UInt8](copying: $1))) }
        expect(live.record.reaches { $0.pending.count == 1 })
        let call = live.record.state.withLock { $0.pending[0] }
        call.loop.execute { call.respond { $0.append([4, 2]) } }
        expectEqual(promise.wait(), Reply(outcome: .ok, bytes: [4, 2]))
    }

    @Test func `A streaming reply arrives whole and in order`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let collector = Collector()
        live.connect().stream(.runQuery, littleEndianBytes(5_000, 2_000), handler: collector)
        expectEqual(collector.waitForEnd(), .ok)
        expectEqual(collector.messages.count, 5_000)
        expect(
            collector.messages.indices.allSatisfy {
                collector.messages[$0].prefix(4) == littleEndianBytes(UInt32($0))[...]
            })
    }

    @Test func `A bidirectional call carries messages both ways until the client ends`() throws {
        let live = try LiveServer()
        defer { live.stop() }
        let collector = Collector()
        let call = live.connect().stream(.write, [0], isComplete: false, handler: collector)
        for number in 1..<200 { call.send([UInt8](repeating: UInt8(number), count: 10_000)) }
        call.finishSending()
        expectEqual(collector.waitForEnd(), .ok)
        expectEqual(collector.messages.map { $0[0] }, (0..<200).map { UInt8($0) })
    }
}
