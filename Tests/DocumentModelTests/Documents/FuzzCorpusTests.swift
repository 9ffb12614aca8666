// Replays the saved corpus of the document walker's fuzzer; see Tests/Fuzz.

import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct FuzzCorpusTests {
    @Test
    func `Every saved input of the document walker's fuzzer keeps every property`() throws {
        try FuzzCorpus.expectKept("DocumentWalk", over: 50) { DocumentWalkCheck.violation($0.span.bytes) }
    }
}
