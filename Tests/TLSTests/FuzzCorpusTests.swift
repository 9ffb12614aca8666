// Replays the saved corpus of the TLS sessions' fuzzer; see Tests/Fuzz.

import Foundation
import Testing

@Suite(.timeLimit(.minutes(20))) struct FuzzCorpusTests {
    @Test
    func `Every saved input keeps every property`() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let corpus = tests.appendingPathComponent("Fuzz/Corpus/TLSSession")
        let files = try FileManager.default.contentsOfDirectory(at: corpus, includingPropertiesForKeys: nil)
        #expect(files.count > 10)
        for file in files {
            let bytes = [UInt8](try Data(contentsOf: file))
            #expect(TLSSessionCheck.violation(bytes) == nil, "\(file.lastPathComponent)")
        }
    }
}
