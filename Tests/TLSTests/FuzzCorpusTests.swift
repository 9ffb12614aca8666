// Replays the saved corpus of the TLS sessions' fuzzer; see Tests/Fuzz.

import Foundation
import Testing

@Suite("Saved inputs of the TLS fuzzer", .timeLimit(.minutes(20))) struct FuzzCorpusTests {
    @Test("Every saved input keeps every property")
    func replay() throws {
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
