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
        // The engine looks for space again now and then; ask until it has.
        try await eventually("the refused request is applied") {
            let outcome = await harness.outcome(
                CommitRequest(writes: try harness.list([.set("c/\(written)", text)]), identifier: identifier))
            return (try? outcome.get()) != nil
        }
        #expect(try harness.store.makeReader().count("c", harness) == written + 2)
        try harness.finish()
    }

    /// A commit whose sync the test holds, and a request that fails because of what the commit has staged.
    private final class RestingError: Sendable {
        let gate = Gate(isOpen: true)
        let fault = FaultSwitch()
        let harness: StoreHarness
        private let answers = Collected<String>()
        /// The commit thread at the end of its run.
        private let closingThread = Collected<String>()

        init() throws {
            harness = try StoreHarness { [gate, fault, closingThread] in
                $0.engine.logSegmentBytes = 1 << 20
                $0.engine.fault = { operation in
                    if operation == .syncLog { gate.pass() }
                    return fault.check(operation)
                }
                $0.admitsHousekeeping = { task in
                    guard task == .clockNote else { return true }
                    // The last that the thread does before it looks for what it may answer.
                    let link = "/proc/thread-self"
                    if let thread = try? FileManager.default.destinationOfSymbolicLink(atPath: link) {
                        closingThread.append(thread)
                    }
                    return false
                }
            }
        }

        var answered: [String] { answers.all }

        /// Submits both; returns when the first is on its way to the disk.
        func submit() throws {
            gate.close()
            // Large, so that the log thread syncs it while the commit thread continues.
            let text = String(repeating: "x", count: 400_000)
            try submit("first", [.set("c/a", ["text": .string(text)], .exists(false))])
            try gate.waitUntilReached()
            try submit("second", [.set("c/a", fields(1), .exists(false))])
        }

        private func submit(_ name: String, _ writes: [StepWrite]) throws {
            harness.store.commit(CommitRequest(writes: try harness.list(writes))) { [answers] result in
                var code = "OK"
                if case .failure(let error) = result { code = "\(error.code)" }
                answers.append("\(name): \(code)")
            }
        }

        /// Begins to close the store; returns when its commit thread waits for the group that is being synced.
        func close() throws -> DispatchSemaphore {
            let closed = DispatchSemaphore(value: 0)
            // A read time above all versions is noted at the end.
            harness.clock.advance(milliseconds: 1)
            _ = try harness.readPoint(harness.store.makeReader(), .latest)
            Thread.detachNewThread { [harness] in
                harness.store.close()
                closed.signal()
            }
            try waitUntil("the commit thread has nothing left to decide") {
                guard let thread = closingThread.all.last else { return false }
                let status = (try? String(contentsOfFile: "/proc/\(thread)/stat", encoding: .utf8)) ?? ""
                return status.split(separator: ")").last?.hasPrefix(" S") == true
            }
            return closed
        }
    }

    @Test("An error that rests on a commit is sent after the commit is durable, also at the end", .needsFiles)
    func errorsWait() throws {
        let ground = try RestingError()
        try ground.submit()
        let closed = try ground.close()
        #expect(ground.answered == [])
        ground.gate.open()
        try closed.wait(until: "the store is closed")
        #expect(ground.answered == ["first: OK", "second: ALREADY_EXISTS"])
    }

    @Test("Nothing is known of what rests on a commit whose sync fails", .needsFiles)
    func errorsOfFailedSync() throws {
        let ground = try RestingError()
        try ground.submit()
        ground.fault.fail(.syncLog, with: EIO)
        ground.gate.open()
        try waitUntil("both have their replies") { ground.answered.count == 2 }
        #expect(ground.answered == ["first: UNAVAILABLE", "second: UNAVAILABLE"])
        ground.harness.store.close()
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
