// Replays the saved corpus of the fuzzer of pipelines, and requests that mutate valid ones; see Tests/Fuzz.

import Basics
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct PipelineFuzzCorpusTests {
    @Test
    func `Every saved input of the fuzzer keeps every property`() throws {
        try FuzzCorpus.expectKept("Pipeline", over: 20, PipelineCheck.violation)
    }

    @Test
    func `Inputs with bytes removed, repeated and exchanged keep every property`() throws {
        let inputs = try Repository.corpus("Pipeline").map(\.bytes)
        FuzzCorpus.expectKept(damaged: inputs, rounds: 200, PipelineCheck.violation)
    }
}
