// Replays the saved corpus of the fuzzer of pipelines, and requests that mutate valid ones; see Tests/Fuzz.

import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct PipelineFuzzCorpusTests {
    @Test
    func `Every saved input of the fuzzer keeps every property`() throws {
        let inputs = try Repository.corpus("Pipeline")
        #expect(inputs.count > 20)
        for (name, bytes) in inputs { #expect(PipelineCheck.violation(bytes) == nil, "\(name)") }
    }

    @Test
    func `Inputs with bytes removed, repeated and exchanged keep every property`() throws {
        let inputs = try Repository.corpus("Pipeline").map(\.1)
        var random = SeededGenerator(seed: UInt64(CaseShare.number))
        for _ in 0..<200 {
            let bytes = random.damaged(random.pick(inputs))
            #expect(PipelineCheck.violation(bytes) == nil, "seed \(random.seed): \(bytes)")
        }
    }
}
