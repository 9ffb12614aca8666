// Disks that are full or fail, and uses that are refused.

import EngineTestSupport
import Foundation
import Storage
import StorageEngines
import Synchronization
import TestSupport
import Testing

/// Faults that a test turns on and off.
final class Faults: Sendable {
    private let operations: Set<FileOperation>
    private let status: Int32
    let isOn = Atomic<Bool>(false)
    let hits = Atomic<Int>(0)

    init(_ operations: Set<FileOperation>, _ status: Int32) {
        self.operations = operations
        self.status = status
    }

    var injection: @Sendable (FileOperation) -> Int32 {
        { [self] asked in
            guard operations.contains(asked), isOn.load(ordering: .acquiring) else { return 0 }
            hits.add(1, ordering: .relaxed)
            return status
        }
    }
}

@Suite(.timeLimit(.minutes(20)))
struct FaultTests {
    let directory = TemporaryDirectory()

    /// Commits until it is refused; answers the last version that was acknowledged.
    private func commitUntilFull(_ store: Store, from first: UInt64) -> (last: UInt64, error: StorageError?) {
        for version in first..<(first + 200) {
            do {
                try store.commit(
                    version, [Change(key: [UInt8(version % 200)], value: Bytes(repeating: 1, count: 8 << 10))])
            } catch {
                return (version - 1, error)
            }
        }
        return (first + 199, nil)
    }

    /// Commits again and again until it is accepted.
    private func commitWhenPossible(_ store: Store, _ version: UInt64) throws {
        try waitUntil("a commit is accepted") { try isAccepted(store, version) }
    }

    private func isAccepted(_ store: Store, _ version: UInt64) throws -> Bool {
        do throws(StorageError) {
            try store.commit(version, [.put("again", "\(version)")])
            return true
        } catch {
            if error.code == .full { return false }
            throw error
        }
    }

    @Test
    func `With no room for a log segment or a run, writes are refused until there is room; reads continue`() throws {
        let faults = Faults([.allocateSegment, .commitRun], ENOSPC)
        var options = EngineOptions.small
        options.fault = faults.injection
        let store = try Store(directory.path, options)
        try store.commit(1, [.put("first", "1")])
        faults.isOn.store(true, ordering: .releasing)
        let (last, error) = commitUntilFull(store, from: 2)
        expectEqual(error?.code, .full)
        expect(store.engine.statistics.isFull)
        expectEqual(store.engine.publishedVersion.microseconds, last)
        try expectEqual(store.get("first"), "1")
        expect(!store.writer.hasStaged)
        faults.isOn.store(false, ordering: .releasing)
        try commitWhenPossible(store, last + 1)
        try expectEqual(store.get("again"), "\(last + 1)")
        try store.engine.close()
        try expectClean(directory.path)
        let reopened = try Store(directory.path)
        expectEqual(reopened.engine.publishedVersion.microseconds, last + 1)
        try expectEqual(reopened.scan().count, Int(last) + 1)
        try reopened.engine.close()
    }

    @Test
    func `With no room for a new log segment a checkpoint frees segments, and writes continue`() throws {
        let faults = Faults([.allocateSegment], ENOSPC)
        var options = EngineOptions.small
        options.fault = faults.injection
        let store = try Store(directory.path, options)
        // Two segments are in use, and one is ready.
        for version in 1...10 as ClosedRange<UInt64> {
            try store.commit(version, [Change(key: [UInt8(version)], value: Bytes(repeating: 1, count: 8 << 10))])
        }
        faults.isOn.store(true, ordering: .releasing)
        // Each of these fills a segment many times over.
        for version in 11...200 as ClosedRange<UInt64> {
            try store.commit(version, [Change(key: [UInt8(version)], value: Bytes(repeating: 1, count: 8 << 10))])
        }
        expect(faults.hits.load(ordering: .relaxed) > 0)
        expect(store.engine.statistics.checkpoints > 0)
        try store.engine.close()
        try expectClean(directory.path)
    }

    @Test
    func `With no room for the runs' space, writes are refused before they are acknowledged, deletes are not`() throws {
        let faults = Faults([.allocateRun], ENOSPC)
        var options = EngineOptions.small
        options.fault = faults.injection
        let store = try Store(directory.path, options)
        try store.commit(1, [.put("first", "1"), .put("second", "2")])
        faults.isOn.store(true, ordering: .releasing)
        var last: UInt64 = 1
        var refusal: StorageError?
        // Each with its own key: nothing becomes free.
        while refusal == nil, last < 10_000 {
            do throws(StorageError) {
                try store.commit(
                    last + 1, [Change(key: Bytes("\(last)".utf8), value: Bytes(repeating: 1, count: 64 << 10))])
                last += 1
            } catch {
                refusal = error
            }
        }
        expectEqual(refusal?.code, .full)
        expect(store.engine.statistics.isFull)
        expect(!store.engine.statistics.hasFailed)
        try expectEqual(store.scan().count, Int(last) + 1)
        try store.delete(last + 1, "first")
        try expectNil(store.get("first"))
        // The next run has room for what was acknowledged.
        try store.engine.checkpointNow()
        expect(store.engine.statistics.isFull)
        #expect(throws: StorageError.self) {
            try store.commit(last + 2, [Change(key: [1], value: Bytes(repeating: 1, count: 8 << 20))])
        }
        faults.isOn.store(false, ordering: .releasing)
        try commitWhenPossible(store, last + 2)
        while store.engine.statistics.isFull { sched_yield() }
        try store.engine.close()
        try expectClean(directory.path)
    }

    @Test
    func `With no room for a log segment the reserve takes deletes`() throws {
        let faults = Faults([.allocateSegment, .commitRun], ENOSPC)
        var options = EngineOptions.small
        options.fault = faults.injection
        let store = try Store(directory.path, options)
        for version in 1...5 as ClosedRange<UInt64> { try store.commit(version, [.put("k\(version)", "1")]) }
        while store.engine.statistics.reserveBytes < options.diskReserveBytes { sched_yield() }
        faults.isOn.store(true, ordering: .releasing)
        let (last, error) = commitUntilFull(store, from: 6)
        expectEqual(error?.code, .full)
        for version in 1...5 as ClosedRange<UInt64> { try store.delete(last + version, "k\(version)") }
        #expect(throws: StorageError.self) { try store.commit(last + 6, [.put("more", "1")]) }
        try expectNil(store.get("k3"))
        expectEqual(store.engine.publishedVersion.microseconds, last + 5)
        faults.isOn.store(false, ordering: .releasing)
        try commitWhenPossible(store, last + 6)
        while store.engine.statistics.reserveBytes < options.diskReserveBytes { sched_yield() }
        try store.engine.close()
        try expectClean(directory.path)
    }

    @Test(arguments: [ENOSPC, EDQUOT])
    func `With no room for runs, writes are refused once a checkpoint failed, and resume`(status: Int32) throws {
        let faults = Faults([.commitRun], status)
        var options = EngineOptions.small
        options.memtableBytesMax = 100 << 10
        options.fault = faults.injection
        let store = try Store(directory.path, options)
        try store.commit(1, [.put("first", "1")])
        faults.isOn.store(true, ordering: .releasing)
        let (last, error) = commitUntilFull(store, from: 2)
        expectEqual(error?.code, .full)
        expect(store.engine.statistics.isFull)
        expectEqual(store.engine.publishedVersion.microseconds, last)
        try expectEqual(store.get("first"), "1")
        try expectEqual(store.scan().count, Int(last))
        #expect(throws: StorageError.self) { try store.engine.checkpointNow() }
        faults.isOn.store(false, ordering: .releasing)
        try commitWhenPossible(store, last + 1)
        try store.engine.checkpointNow()
        expect(!store.engine.statistics.isFull)
        try expectEqual(store.scan().count, Int(last) + 1)
        try store.engine.close()
        try expectClean(directory.path)
    }

    @Test
    func `During a long checkpoint the memtable grows to twice its bound; then commits wait`() throws {
        let bound = 100 << 10
        let gate = Gate(isOpen: false)
        var options = EngineOptions.small
        options.memtableBytesMax = bound
        options.fault = { operation in
            if operation == .commitRun { gate.pass() }
            return 0
        }
        let store = try Store(directory.path, options)
        let value = String(repeating: "v", count: 1000)
        var version: UInt64 = 0
        // One memtable frozen, the other beyond the bound, and nobody has waited.
        while store.engine.statistics.memtableBytes < bound * 5 / 2 {
            version += 1
            try store.commit(version, [.put("k\(version)", value)])
        }
        expectEqual(store.engine.statistics.writerStalls, 0)
        let last = version + 300
        let finished = DispatchSemaphore(value: 0)
        nonisolated(unsafe) let writing = store
        Thread.detachNewThread { [version] in
            for next in (version + 1)...last { try? writing.commit(next, [.put("k\(next)", value)]) }
            finished.signal()
        }
        try waitUntil("a commit waits for room") { store.engine.statistics.writerStalls > 0 }
        expect(store.engine.statistics.memtableBytes < bound * 7 / 2)
        gate.open()
        try finished.wait(until: "the writer has finished")
        expectEqual(store.engine.publishedVersion.microseconds, last)
        try expectEqual(store.scan().count, Int(last))
        try store.engine.close()
        try expectClean(directory.path)
    }

    @Test
    func
        `Without room for a sweep of history, writes resume when there is room, though no checkpoint is due`()
        throws
    {
        let faults = Faults([.commitRun], ENOSPC)
        var options = EngineOptions.small
        options.fault = faults.injection
        options.retentionMicroseconds = 0
        options.sweepPauseMicroseconds = 1 << 40
        options.clock = { 1 << 40 }
        let store = try Store(directory.path, options)
        try store.commit(1, [.put("a", "1")])
        try store.engine.checkpointNow()
        try store.commit(2, [.put("a", "2")])
        try store.engine.checkpointNow()
        faults.isOn.store(true, ordering: .releasing)
        let error = #expect(throws: StorageError.self) { try store.engine.sweepHistoryNow() }
        expectEqual(error?.code, .full)
        try expectEqual(store.get("a", at: 1), "1")
        faults.isOn.store(false, ordering: .releasing)
        try commitWhenPossible(store, 3)
        try store.engine.sweepHistoryNow()
        expectEqual(store.engine.statistics.historyEntriesSwept, 1)
        #expect(throws: StorageError.self) { try store.get("a", at: 1) }
        try store.engine.close()
        try expectClean(directory.path)
    }

    @Test
    func `A bound of the runs refuses writes and keeps everything acknowledged; a larger one accepts writes`() throws {
        var options = EngineOptions.small
        options.runBytesMax = 256 << 10
        options.memtableBytesMax = 100 << 10
        let last: UInt64
        do {
            let store = try Store(directory.path, options)
            let outcome = commitUntilFull(store, from: 1)
            last = outcome.last
            expectEqual(outcome.error?.code, .full)
            try expectEqual(store.scan().count, Int(last))
            #expect(throws: StorageError.self) { try store.engine.close() }
        }
        try expectClean(directory.path)
        let larger = try Store(directory.path)
        try expectEqual(larger.scan().map(\.version), Array(1...last))
        try larger.commit(last + 1, [.put("z", "1")])
        try larger.engine.close()
        try expectClean(directory.path)
    }

    @Test(arguments: [FileOperation.writeLog, .syncLog], [true, false])
    func `A failed write or sync of the log is final`(operation: FileOperation, isInline: Bool) throws {
        let faults = Faults([operation], EIO)
        var options = EngineOptions.small
        options.fault = faults.injection
        let store = try Store(directory.path, options)
        try store.commit(1, [.put("a", "1")])
        faults.isOn.store(true, ordering: .releasing)
        try store.stage(2, [.put("a", "2")])
        if isInline {
            let error = #expect(throws: StorageError.self) { try store.writer.commitGroup() }
            expectEqual(error?.code, .failed)
        } else {
            let outcome = Outcome()
            try store.writer.commitGroup { outcome.result.store($0) }
            store.writer.waitForGroup()
            expectEqual(outcome.code, .failed)
        }
        faults.isOn.store(false, ordering: .releasing)
        // Not even when the disk is well again.
        let error = #expect(throws: StorageError.self) { try store.commit(3, [.put("a", "3")]) }
        // Unlike that of commit 2, the outcome of commit 3 is known.
        expectEqual(error?.code, .refused)
        expectEqual(store.engine.publishedVersion.microseconds, 1)
        try expectEqual(store.get("a"), "1")
        expect(store.engine.statistics.hasFailed)
        #expect(throws: StorageError.self) { try store.engine.checkpointNow() }
        #expect(throws: StorageError.self) { try store.engine.close() }
        // The outcome of commit 2 was unknown; commit 1 is there.
        let reopened = try Store(directory.path)
        expectEqual(reopened.replayed.first, 1)
        expect(!reopened.replayed.contains(3))
        try expectEqual(reopened.get("a", at: 1), "1")
        try reopened.engine.close()
        try expectClean(directory.path)
    }

    @Test(arguments: [true, false])
    func `A group that is staged while the one before it fails is not acknowledged`(isInline: Bool) throws {
        let gate = Gate(isOpen: false)
        let faults = Faults([.syncLog], EIO)
        var options = EngineOptions.small
        options.fault = { operation in
            let status = faults.injection(operation)
            if status == 0 { return 0 }
            // The next sync would succeed.
            faults.isOn.store(false, ordering: .releasing)
            gate.pass()
            return status
        }
        let store = try Store(directory.path, options)
        try store.commit(1, [.put("a", "1")])
        faults.isOn.store(true, ordering: .releasing)
        try store.stage(2, [.put("a", "2")])
        let first = Outcome()
        try store.writer.commitGroup { first.result.store($0) }
        try gate.waitUntilReached()
        try store.stage(3, [.put("a", "3")])
        gate.open()
        let second = Outcome()
        let error = #expect(throws: StorageError.self) {
            if isInline {
                try store.writer.commitGroup()
            } else {
                try store.writer.commitGroup { second.result.store($0) }
            }
        }
        expectEqual(error?.code, .refused)
        store.writer.waitForGroup()
        expect(first.code == .failed && second.result.value == nil)
        expectEqual(store.engine.publishedVersion.microseconds, 1)
        #expect(throws: StorageError.self) { try store.engine.close() }
        let reopened = try Store(directory.path)
        expect(!reopened.replayed.contains(3))
        try reopened.engine.close()
        try expectClean(directory.path)
    }

    private func read(_ key: Bytes, _ latest: LatestReader) throws -> (text: String?, version: UInt64) {
        guard let value = try latest.value(forKey: key.span.bytes) else { return (nil, 0) }
        return (value.bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }, value.version.microseconds)
    }

    @Test(arguments: 0...3)
    func `A crash in a checkpoint loses nothing and mixes nothing up`(checkpoints: Int) throws {
        // Lets some checkpoints through, then fails.
        let allowed = Countdown(checkpoints)
        var options = EngineOptions.small
        options.latestOnlySpaces = [0xF0]
        options.fault = allowed.injection
        let store = try Store(directory.path, options)
        for version in 1...30 as ClosedRange<UInt64> {
            var changes = (0..<20).map {
                Change(key: [UInt8($0)], value: Bytes("\(version).\($0)".utf8) + Bytes(repeating: 0, count: 400))
            }
            if version % 2 == 0 { changes = changes.map { Change(key: $0.key, value: nil) } }
            changes.append(Change(key: [0xF0, 1], value: Bytes("\(version)".utf8)))
            try store.commit(version, changes)
            if version % 10 == 0 { try? store.engine.checkpointNow() }
            if store.engine.statistics.hasFailed { break }
        }
        let last = store.engine.publishedVersion.microseconds
        try? store.engine.close()
        options.fault = nil
        // During replay each commit must see the state just before it, whatever the runs have already.
        let engine = try StorageEngine.open(directory: directory.path, options: options) {
            version, record, batch, latest in
            let before = version.microseconds - 1
            let counter = try read([0xF0, 1], latest)
            expectEqual(counter.text, before == 0 ? nil : "\(before)")
            let key = try read([7], latest)
            expectEqual(key.text == nil, before % 2 == 0)
            expect(before % 2 == 0 || key.version == before)
            batch.add(Record.decode(record))
        }
        expectEqual(engine.publishedVersion.microseconds, last)
        do {
            let reader = try engine.makeReader()
            for version in 1...last {
                let entries = try reader.snapshot(at: CommitVersion(microseconds: version)).entries([], [0xF0])
                expectEqual(entries.count, version % 2 == 0 ? 0 : 20)
                expect(entries.allSatisfy { $0.version == version })
            }
        }
        try engine.close()
        try expectClean(directory.path)
    }
}

private final class Countdown: Sendable {
    private let left: Atomic<Int>

    init(_ count: Int) { left = Atomic(count) }

    var injection: @Sendable (FileOperation) -> Int32 {
        { [self] operation in
            guard operation == .commitRun else { return 0 }
            return left.subtract(1, ordering: .relaxed).newValue >= 0 ? 0 : EIO
        }
    }
}

/// Where a completion leaves its result.
private final class Outcome: Sendable {
    let result = Stored()

    var code: StorageError.Code? {
        if case .failure(let error) = result.value { error.code } else { nil }
    }

    final class Stored: Sendable {
        private let storage = Mutex<Result<CommitVersion, StorageError>?>(nil)
        var value: Result<CommitVersion, StorageError>? { storage.withLock { $0 } }
        func store(_ value: Result<CommitVersion, StorageError>) { storage.withLock { $0 = value } }
    }
}
