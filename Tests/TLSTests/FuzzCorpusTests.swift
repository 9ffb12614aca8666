// Replays the saved corpus of the TLS sessions' fuzzer; see Tests/Fuzz.

import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct FuzzCorpusTests {
    @Test
    func `Every saved input keeps every property`() throws {
        try FuzzCorpus.expectKept("TLSSession", over: 10, TLSSessionCheck.violation)
    }
}
