// Replays the saved corpus of the fuzzer of managed exports, and files that mutate valid ones; see Tests/Fuzz.

import Basics
import TestSupport
import Testing

@testable import ManagedExport

@Suite(.timeLimit(.minutes(20)))
struct ManagedExportFuzzCorpusTests {
    @Test
    func `Every saved input of the fuzzer keeps every property`() throws {
        try FuzzCorpus.expectKept("ManagedExport", over: 20, ManagedExportCheck.violation)
    }

    @Test
    func `Entities with bytes removed, repeated and exchanged keep every property`() {
        var log = LevelDBLogReader(GoldenExport.data)
        FuzzCorpus.expectKept(damaged: log.records().records, rounds: 2_000, ManagedExportCheck.violation)
    }
}
