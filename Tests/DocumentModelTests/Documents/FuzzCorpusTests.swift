// Replays the saved corpus of the document walker's fuzzer; see Tests/Fuzz.

import DocumentModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct FuzzCorpusTests {
    @Test
    func `Every saved input of the document walker's fuzzer keeps every property`() throws {
        let inputs = try Repository.corpus("DocumentWalk")
        #expect(inputs.count > 50)
        for (name, bytes) in inputs { #expect(DocumentWalkCheck.violation(bytes.span.bytes) == nil, "\(name)") }
    }
}
