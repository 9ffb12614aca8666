// Disks that fill up and syncs that fail: which status clients get, and what is stored afterwards.

import Basics
import DocumentModel
import Foundation
import KeyValueStore
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

/// A switch for one kind of failing file operation.
final class FaultSwitch: Sendable {
    private let state = Mutex<(operations: Set<FileOperation>, errorNumber: Int32)?>(nil)

    func fail(_ operations: FileOperation..., with errorNumber: Int32) {
        state.withLock { $0 = (Set(operations), errorNumber) }
    }
    func heal() { state.withLock { $0 = nil } }
    func check(_ operation: FileOperation) -> Int32 {
        state.withLock { $0?.operations.contains(operation) == true ? $0!.errorNumber : 0 }
    }
}

@Suite("Faults", .timeLimit(.minutes(20)))
struct FaultTests {
    @Test(
        "A full disk refuses writes clearly, serves reads, and writes resume; counts and results stay right",
        .needsFiles)
    func full() async throws {
        let fault = FaultSwitch()
        let harness = try StoreHarness {
            $0.engine.logSegmentBytes = 32 << 10
            $0.engine.logSpareSegmentsMax = 0
            $0.engine.fault = { fault.check($0) }
        }
        let text = MapValue([("text", .string(String(repeating: "x", count: 2_000)))])
        try await harness.commit([.set("c/first", fields(1))])
        // A checkpoint would give segments back.
        fault.fail(.allocateSegment, .commitRun, with: ENOSPC)
        var written = 0
        var refusal: RequestError?
        while refusal == nil, written < 500 {
            let identifier = RequestIdentifier(
                sessionHigh: 5, sessionLow: 5, sequence: UInt64(written + 1), oldestPending: UInt64(written + 1))
            let outcome = await harness.outcome(
                CommitRequest(writes: try harness.list([.set("c/\(written)", text)]), identifier: identifier))
            switch outcome {
            case .success: written += 1
            case .failure(let error): refusal = error
            }
        }
        #expect(refusal?.code == .resourceExhausted)
        #expect(try harness.integer("c/first") == 1)
        #expect(try harness.get("c/\(written)") == nil)
        fault.heal()
        // The refused request again, under its own number: now it is applied.
        let identifier = RequestIdentifier(
            sessionHigh: 5, sessionLow: 5, sequence: UInt64(written + 1), oldestPending: UInt64(written + 1))
        var resumed = false
        // The engine looks for space again now and then; ask until it has.
        let deadline = ContinuousClock.now + .seconds(60)
        while !resumed, ContinuousClock.now < deadline {
            let outcome = await harness.outcome(
                CommitRequest(writes: try harness.list([.set("c/\(written)", text)]), identifier: identifier))
            if case .success = outcome { resumed = true } else { try await Task.sleep(for: .milliseconds(5)) }
        }
        #expect(resumed)
        #expect(try harness.store.makeReader().count("c", harness) == written + 2)
        try harness.finish()
    }

    @Test(
        "A failed sync is final: the outcome is called unknown, nothing later is acknowledged, reads succeed",
        .needsFiles)
    func failedSync() async throws {
        let fault = FaultSwitch()
        let harness = try StoreHarness { $0.engine.fault = { fault.check($0) } }
        try await harness.commit([.set("c/a", fields(1))])
        fault.fail(.syncLog, with: EIO)
        let first = try #require(try await harness.failure([.set("c/a", fields(2))]))
        #expect(first.code == .unavailable)
        fault.heal()
        for number in 0..<3 {
            #expect(try await harness.failure([.set("c/\(number)", fields(2))])?.code == .unavailable)
        }
        #expect(try harness.integer("c/a") == 1)
        #expect(harness.store.close() != nil)
        // After the restart it is one or the other, whole.
        let configuration = harness.configuration
        let again = try StoreHarness(in: harness.directory, clock: harness.clock) { $0 = configuration }
        let value = try again.integer("c/a")
        #expect(value == 1 || value == 2)
        #expect(try again.get("c/0") == nil)
        try again.finish()
    }
}
