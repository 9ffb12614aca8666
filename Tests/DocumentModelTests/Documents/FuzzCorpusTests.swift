// Replays the saved corpus of the document walker's fuzzer; see Tests/Fuzz.

import DocumentModel
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20))) struct FuzzCorpusTests {
    @Test
    func `Every saved input of the document walker's fuzzer keeps every property`() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let corpus = tests.appendingPathComponent("Fuzz/Corpus/DocumentWalk")
        let files = try FileManager.default.contentsOfDirectory(at: corpus, includingPropertiesForKeys: nil)
        #expect(files.count > 50)
        for file in files {
            let bytes = [UInt8](try Data(contentsOf: file))
            #expect(DocumentWalkCheck.violation(bytes.span.bytes) == nil, "\(file.lastPathComponent)")
        }
    }
}
