// Replays the saved corpus of the fuzzer of managed exports, and files that mutate valid ones; see Tests/Fuzz.

import Basics
import TestSupport
import Testing

@testable import ManagedExport

@Suite(.timeLimit(.minutes(20)))
struct ManagedExportFuzzCorpusTests {
    @Test
    func `Every saved input of the fuzzer keeps every property`() throws {
        let inputs = try Repository.corpus("ManagedExport")
        #expect(inputs.count > 20)
        for (name, bytes) in inputs { #expect(ManagedExportCheck.violation(bytes) == nil, "\(name)") }
    }

    @Test
    func `Entities with bytes removed, repeated and exchanged keep every property`() {
        var log = LevelDBLogReader(GoldenExport.data)
        let entities = log.records().records
        var random = SeededGenerator(seed: UInt64(CaseShare.number))
        for _ in 0..<2_000 {
            let bytes = random.damaged(random.pick(entities))
            #expect(ManagedExportCheck.violation(bytes) == nil, "seed \(random.seed): \(bytes)")
        }
    }
}
