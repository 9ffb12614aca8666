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
            var bytes = random.pick(inputs)
            for _ in 0...random.below(4) where !bytes.isEmpty {
                let start = random.below(bytes.count)
                let end = min(bytes.count, start + random.below(12))
                switch random.below(3) {
                case 0: bytes.removeSubrange(start..<end)
                case 1: bytes.insert(contentsOf: bytes[start..<end], at: random.below(bytes.count))
                default: bytes[start] = UInt8(random.below(256))
                }
            }
            #expect(PipelineCheck.violation(bytes) == nil, "seed \(random.seed): \(bytes)")
        }
    }
}
