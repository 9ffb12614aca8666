// Disks that fill up and syncs that fail: which status clients get, and what is stored afterwards.

import Basics
import DocumentModel
import Foundation
import Storage
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

/// A switch for one kind of failing file operation.
final class FaultSwitch: Sendable {
    private struct Fault {
        var operations: Set<FileOperation>
        /// Operations that succeed before.
        var delay: Int
        var errorNumber: Int32
    }
    private let state = Mutex<Fault?>(nil)

    func fail(_ operations: FileOperation..., after delay: Int = 0, with errorNumber: Int32) {
        state.withLock { $0 = Fault(operations: Set(operations), delay: delay, errorNumber: errorNumber) }
    }
    func heal() { state.withLock { $0 = nil } }
    func check(_ operation: FileOperation) -> Int32 {
        state.withLock { fault in
            guard fault?.operations.contains(operation) == true else { return 0 }
            fault!.delay -= 1
            return fault!.delay < 0 ? fault!.errorNumber : 0
        }
    }
}

@Suite(.timeLimit(.minutes(20)))
struct FaultTests {
    @Test(.needsFiles)
    func `On a full disk deletes are accepted that have no place in one group`() async throws {
        let fault = FaultSwitch()
        let holdsSyncs = SharedFlag()
        let harness = try StoreHarness {
            $0.engine.logSegmentBytes = 256 << 10
            $0.inlineSyncBytesMax = 0
            $0.engine.fault = { operation in
                while operation == .syncLog, holdsSyncs.isSet { usleep(1_000) }
                return fault.check(operation)
            }
        }
        // The names of a hundred documents are more than half of a segment.
        let names = (0..<400).map { "c/\($0)" + String(repeating: "n", count: 1_400) }
        for start in stride(from: 0, to: 400, by: 100) {
            try await harness.commit(names[start..<start + 100].map { .set($0, fields(1)) })
        }
        fault.fail(.allocateSegment, with: ENOSPC)
        let before = harness.store.statistics
        holdsSyncs.set()
        async let held = harness.outcome(CommitRequest(writes: try harness.list([.set("c/held", fields(1))])))
        defer { holdsSyncs.clear() }
        try await eventually("a group is on its way to the disk") {
            harness.store.statistics.commits > before.commits
        }
        var outcomes: [Task<Result<CommitResult, RequestError>, any Error>] = []
        for start in stride(from: 0, to: 400, by: 100) {
            let request = CommitRequest(writes: try harness.list(names[start..<start + 100].map { .delete($0) }))
            outcomes.append(Task { await harness.outcome(request) })
        }
        // A checkpoint that has begun ends after the sync, and the next group may wait for it.
        try await eventually("deletes are in the next group, or it waits") {
            let now = harness.store.statistics
            return now.commits > before.commits + 1 || now.engine.writerStalls > before.engine.writerStalls
        }
        holdsSyncs.clear()
        _ = try await held.get()
        for outcome in outcomes { _ = try await outcome.value.get() }
        try expectEqual(harness.ids("c"), ["held"])
        fault.heal()
        try harness.finish()
    }

    @Test(.needsFiles)
    func `A full disk refuses writes clearly, serves reads, and writes resume; counts and results stay right`()
        async throws
    {
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
        expectEqual(refusal?.code, .resourceExhausted)
        try expectEqual(harness.integer("c/first"), 1)
        try expectNil(harness.get("c/\(written)"))
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
        try expectEqual(harness.store.makeReader().count("c", harness), written + 2)
        try harness.finish()
    }

    /// A commit whose sync the test holds, and a request that fails because of what the commit has staged.
    private final class RestingError: Sendable {
        let gate = Gate(isOpen: true)
        let fault = FaultSwitch()
        let harness: StoreHarness
        private let answers = Collected<String>()
        private let errors = Mutex<[String: RequestError]>([:])
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

        /// What the first words of the error say of a request: whether it is known that it was not applied.
        func saidOf(_ name: String) -> String? {
            guard let message = errors.withLock({ $0[name]?.message }) else { return nil }
            if message.hasPrefix("The commit was not applied") { return "not applied" }
            return message.hasPrefix("The storage failed and the outcome is unknown") ? "unknown" : message
        }

        /// Submits both; returns when the first is on its way to the disk.
        func submit() throws {
            gate.close()
            try submit("first", [Self.largeWrite("c/a", .exists(false))])
            try gate.waitUntilReached()
            try submit("second", [.set("c/a", fields(1), .exists(false))])
        }

        /// So large that the log thread syncs it while the commit thread continues.
        static func largeWrite(_ path: String, _ precondition: Precondition? = nil) -> StepWrite {
            .set(path, ["text": .string(String(repeating: "x", count: 400_000))], precondition)
        }

        func submit(_ name: String, _ writes: [StepWrite], identifier: RequestIdentifier? = nil) throws {
            let request = CommitRequest(writes: try harness.list(writes), identifier: identifier)
            harness.store.commit(request) { [self] result in
                var code = "OK"
                if case .failure(let error) = result {
                    code = "\(error.code)"
                    errors.withLock { $0[name] = error }
                }
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

    @Test(.needsFiles)
    func `An error that rests on a commit is sent after the commit is durable, also at the end`() throws {
        let ground = try RestingError()
        try ground.submit()
        let closed = try ground.close()
        expectEqual(ground.answered, [])
        ground.gate.open()
        try closed.wait(until: "the store is closed")
        expectEqual(ground.answered, ["first: OK", "second: ALREADY_EXISTS"])
    }

    @Test(.needsFiles)
    func `Nothing is known of what rests on a commit whose sync fails`() throws {
        let ground = try RestingError()
        try ground.submit()
        ground.fault.fail(.syncLog, with: EIO)
        ground.gate.open()
        try waitUntil("both have their replies") { ground.answered.count == 2 }
        expectEqual(ground.answered, ["first: UNAVAILABLE", "second: UNAVAILABLE"])
        expect(ground.saidOf("first") == "unknown" && ground.saidOf("second") == "not applied")
        ground.harness.store.close()
    }

    @Test(.needsFiles)
    func `A request that fails beside others of its group was not applied, whatever becomes of them`() throws {
        let ground = try RestingError()
        ground.gate.close()
        try ground.submit("before", [RestingError.largeWrite("c/a")])
        try ground.gate.waitUntilReached()
        // Both wait for the sync and make up the next group.
        try ground.submit("other", [.set("c/b", fields(1))])
        try ground.submit("own", [.set("c/a", fields(1), .exists(false))])
        ground.fault.fail(.syncLog, after: 1, with: EIO)
        ground.gate.open()
        try waitUntil("all have their replies") { ground.answered.count == 3 }
        expectEqual(ground.answered, ["before: OK", "other: UNAVAILABLE", "own: UNAVAILABLE"])
        expect(ground.saidOf("other") == "unknown" && ground.saidOf("own") == "not applied")
        ground.harness.store.close()
    }

    @Test(.needsFiles)
    func `The outcome of a repeated request is unknown if that of the first is`() throws {
        let ground = try RestingError()
        let identifier = RequestIdentifier(sessionHigh: 5, sessionLow: 5, sequence: 1, oldestPending: 1)
        ground.gate.close()
        try ground.submit("first", [RestingError.largeWrite("c/a")], identifier: identifier)
        try ground.gate.waitUntilReached()
        try ground.submit("again", [RestingError.largeWrite("c/a")], identifier: identifier)
        ground.fault.fail(.syncLog, with: EIO)
        ground.gate.open()
        try waitUntil("both have their replies") { ground.answered.count == 2 }
        expect(ground.saidOf("first") == "unknown" && ground.saidOf("again") == "unknown")
        ground.harness.store.close()
    }

    @Test(.needsFiles)
    func `A failed sync is final: the outcome is called unknown, nothing later is acknowledged, reads succeed`()
        async throws
    {
        let fault = FaultSwitch()
        let harness = try StoreHarness { $0.engine.fault = { fault.check($0) } }
        try await harness.commit([.set("c/a", fields(1))])
        fault.fail(.syncLog, with: EIO)
        let first = try #require(try await harness.failure([.set("c/a", fields(2))]))
        expectEqual(first.code, .unavailable)
        fault.heal()
        for number in 0..<3 {
            try await expectEqual(harness.failure([.set("c/\(number)", fields(2))])?.code, .unavailable)
        }
        try expectEqual(harness.integer("c/a"), 1)
        expect(harness.store.close() != nil)
        // After the restart it is one or the other, whole.
        let configuration = harness.configuration
        let again = try StoreHarness(in: harness.directory, clock: harness.clock) { $0 = configuration }
        let value = try again.integer("c/a")
        expect(value == 1 || value == 2)
        try expectNil(again.get("c/0"))
        try again.finish()
    }
}
