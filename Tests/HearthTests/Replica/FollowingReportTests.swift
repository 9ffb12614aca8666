// When it is logged that a stream has begun, and that a move is held up.

import Replication
import TestSupport
import Testing

@testable import hearth

@Suite(.timeLimit(.minutes(5)))
struct FollowingReportTests {
    @Test
    func `A stream that begins again and again is logged once, and after each interruption that is logged`() {
        let report = FollowingReport()
        expect(report.isDue(of: "a:1"))
        for _ in 0..<3 { expect(!report.isDue(of: "a:1")) }
        report.reset()
        expect(report.isDue(of: "a:1"))
        expect(!report.isDue(of: "a:1"))
    }

    @Test
    func `A move that asks how far its target is, and finds nothing to send, is not further`() {
        let progress = MoveProgress([1])
        typealias Reply = DatabaseMove.Reply
        expect(!Reply.receiving(progress).isProgress(in: .receiving))
        expect(Reply.receiving(progress).isProgress(in: .sending(isShort: true)))
        let empty = DatabaseMove.Chunk(isEmpty: true, isShort: true, isReleased: false)
        expect(!Reply.chunk(empty).isProgress(in: .reading(after: progress)))
        let full = DatabaseMove.Chunk(isEmpty: false, isShort: true, isReleased: false)
        expect(Reply.chunk(full).isProgress(in: .reading(after: progress)))
        expect(Reply.released.isProgress(in: .releasing(after: progress)))
    }
}
