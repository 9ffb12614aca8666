// Replays the saved corpus of the TLS sessions' fuzzer; see Tests/Fuzz.

import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct FuzzCorpusTests {
    @Test
    func `Every saved input keeps every property`() throws {
        let inputs = try Repository.corpus("TLSSession")
        #expect(inputs.count > 10)
        for (name, bytes) in inputs { #expect(TLSSessionCheck.violation(bytes) == nil, "\(name)") }
    }
}
