// Which source is asked when, without connections.

import Basics
import TestSupport
import Testing

@testable import Calls
@testable import Connections

@Suite(.timeLimit(.minutes(20))) struct CallTableTests {
    private final class Source: CallStream {
        func next(into output: inout ByteBuffer) -> SourceStep { .waiting }
        func cancelled() {}
        func received(_ message: RawSpan) {}
        func halfClosed() {}
    }

    private func table(streams: UInt32...) -> CallTable {
        var table = CallTable()
        for stream in streams { table.setSource(of: stream, Source(), receiver: nil) }
        return table
    }

    @Test func `Sources are asked in the order in which they became ready`() {
        var table = table(streams: 3, 1, 2)
        expectEqual(table.takeReady(), [3, 1, 2])
        expect(!table.hasReady)
        for stream in [1, 3] as [UInt32] {
            expect(table.beginProducing(stream) != nil)
            expectEqual(table.makeReady(stream), true)
        }
        expectEqual(table.takeReady(), [1, 3])
    }

    @Test func `A ready source is in the list once`() {
        var table = table(streams: 1)
        expectEqual(table.makeReady(1), false)
        table.makeAllReady()
        expectEqual(table.takeReady(), [1])
    }

    @Test func `A source that waits is asked after it is resumed, and not when a window opens`() {
        var table = table(streams: 1)
        _ = table.takeReady()
        _ = table.beginProducing(1)
        expectEqual(table.sourceWaits(1), true)
        table.makeAllReady()
        expect(!table.hasReady)
        expectEqual(table.resume(1), true)
        expectEqual(table.takeReady(), [1])
    }

    @Test func `A source that is resumed while it is asked is asked again`() {
        var table = table(streams: 1)
        _ = table.takeReady()
        _ = table.beginProducing(1)
        expectEqual(table.resume(1), false)
        expectEqual(table.sourceWaits(1), false)
        expectEqual(table.takeReady(), [1])
        // The next request starts again.
        _ = table.beginProducing(1)
        expectEqual(table.sourceWaits(1), true)
    }

    @Test func `What was not asked in a round is put back`() {
        var table = table(streams: 1, 2, 3)
        let round = table.takeReady()
        table.putBack(round[1...])
        expectEqual(table.takeReady(), [2, 3])
    }

    @Test func `A call without a source, or over, is never ready`() {
        var table = table(streams: 1)
        table.dropSource(of: 1)
        _ = table.takeReady()
        expectNil(table.beginProducing(1))
        expectEqual(table.makeReady(1), false)
        expectNil(table.remove(1)?.source)
        expectNil(table.remove(1))
        expectEqual(table.resume(1), false)
        expectEqual(table.sourceWaits(1), false)
        expect(table.isEmpty)
    }

    @Test func `Who receives messages goes with the call`() {
        var table = table(streams: 1)
        expectNil(table.receiver(of: 1))
        let stream = Source()
        table.setSource(of: 2, stream, receiver: stream)
        expect(table.receiver(of: 2) === stream)
        expect(table.remove(2)?.source === stream)
        expectNil(table.receiver(of: 2))
    }

    @Test func `A stall is counted from the first time that the window was found shut`() {
        var table = table(streams: 1, 2)
        table.noteWindow(of: 1, isOpen: false, now: 100)
        table.noteWindow(of: 1, isOpen: false, now: 150)
        expectEqual(table.stalled(now: 199, limit: 100), [])
        expectEqual(table.stalled(now: 200, limit: 100), [1])
        table.noteWindow(of: 1, isOpen: true, now: 200)
        expectEqual(table.stalled(now: 1_000, limit: 100), [])
    }
}
