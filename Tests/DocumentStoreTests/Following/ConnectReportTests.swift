import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(5)))
struct ConnectReportTests {
    @Test
    func `A follower that connects again and again is reported once a minute, each by itself`() {
        let state = ReplicationState()
        expect(state.isNews(connected: 7, at: 1_000))
        expect(state.isNews(connected: 8, at: 1_000))
        expect(!state.isNews(connected: 7, at: 2_000))
        expect(!state.isNews(connected: 8, at: 60_999))
        expect(state.isNews(connected: 7, at: 61_000))
        // Those without a number cannot be distinguished.
        for time: UInt64 in [1, 2] { expect(state.isNews(connected: 0, at: time)) }
        // What is known of them has a limit.
        for number: UInt64 in 100..<5_000 { expect(state.isNews(connected: number, at: 70_000)) }
        expect(state.isNews(connected: 7, at: 70_001))
    }
}
