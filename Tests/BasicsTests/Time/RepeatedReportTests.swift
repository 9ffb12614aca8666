import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct RepeatedReportTests {
    @Test
    func `The same failure is reported once a minute, and another one at once`() {
        var report = RepeatedReport()
        func isDue(_ text: String, at milliseconds: UInt64) -> Bool { report.isDue(text, at: milliseconds) }
        expect(isDue("a", at: 5))
        expect(!isDue("a", at: 6))
        expect(!isDue("a", at: 5 + RepeatedReport.pauseMilliseconds - 1))
        expect(isDue("a", at: 5 + RepeatedReport.pauseMilliseconds))
        expect(isDue("b", at: 5 + RepeatedReport.pauseMilliseconds))
        expect(isDue("a", at: 6 + RepeatedReport.pauseMilliseconds))
    }
}
