// Commit versions and read times: no commit is earlier than what clients have seen, whatever the wall clock does.

import Basics
import DocumentModel
import Foundation
import Storage
import StorageEngines
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

@Suite(.timeLimit(.minutes(20))) struct VersionClockTests {
    /// A version clock over its own engine, and the commit thread's part of it.
    private final class Ground {
        let clock = SteppedClock()
        let versions: VersionClock
        private let directory = TemporaryDirectory("versions")
        private let engine: StorageEngine
        private let writer: EngineWriter
        private(set) var last = CommitVersion(microseconds: 0)
        /// When the version clock was made.
        let opened: UInt64

        init(waits: ReadWaits = ReadWaits()) throws {
            var options = EngineOptions()
            options.runBytesMax = 1 << 28
            options.memtableBytesMax = 4 << 20
            options.logSegmentBytes = 1 << 20
            engine = try StorageEngine.open(directory: directory.path, options: options) { _, _, _, _ in }
            writer = try engine.makeWriter()
            versions = VersionClock(clock: clock, engine: engine, waits: waits)
            opened = clock.nowMicroseconds
            clock.advance(milliseconds: 1)
        }

        deinit { try? engine.close() }

        /// A version, with something staged under it.
        func stage() throws -> UInt64 {
            last = versions.nextVersion(after: last)
            var batch = MutationBatch()
            let key: [UInt8] = [1]
            batch.put(key: key.byteSpan, value: key.byteSpan)
            try writer.stage(version: last, record: key.byteSpan, mutations: batch)
            return last.microseconds
        }

        func publish() throws {
            try writer.commitGroup()
            versions.endWaits()
        }

        func commit() throws -> UInt64 {
            let version = try stage()
            try publish()
            return version
        }
    }

    @Test
    func `Versions are the wall clock's time, and increase when it stands still or steps back`() throws {
        let ground = try Ground()
        let first = try ground.commit()
        expectEqual(first, ground.clock.nowMicroseconds)
        try expectEqual(ground.commit(), first + 1)
        ground.clock.stepBack(milliseconds: 60_000)
        try expectEqual(ground.commit(), first + 2)
        ground.clock.advance(milliseconds: 120_000)
        try expectEqual(ground.commit(), ground.clock.nowMicroseconds)
    }

    @Test
    func `A read time beside the first version is not before the store was opened`() throws {
        let ground = try Ground()
        ground.clock.stepBack(milliseconds: 1)
        let version = ground.versions.nextVersion(after: ground.last)
        expectEqual(ground.versions.readTime(), ground.opened)
        expectEqual(version.microseconds, ground.opened + 1)
    }

    @Test
    func `A read time is now when nothing is in flight, and no commit comes at or below it`() throws {
        let ground = try Ground()
        let committed = try ground.commit()
        ground.clock.advance(milliseconds: 10)
        let time = ground.versions.readTime()
        expectEqual(time, committed + 10_000)
        expectEqual(ground.versions.lastIssued, time)
        try expectEqual(ground.commit(), time + 1)
        // Also when the clock is set back meanwhile.
        let later = ground.versions.readTime()
        ground.clock.stepBack(milliseconds: 5_000)
        try expect(ground.commit() > later)
        expect(ground.versions.readTime() > later)
    }

    @Test
    func `While commits are in flight a read time is just before the first of them`() throws {
        let ground = try Ground()
        _ = try ground.commit()
        // Nobody writes or reads for ten minutes.
        ground.clock.advance(milliseconds: 600_000)
        let second = try ground.stage()
        expectEqual(second, ground.clock.nowMicroseconds)
        ground.clock.advance(milliseconds: 10)
        expectEqual(ground.versions.readTime(), second - 1)
        let third = try ground.stage()
        expectEqual(ground.versions.readTime(), second - 1)
        expect(ground.versions.reserve(second - 1) && !ground.versions.reserve(second))
        try ground.publish()
        expect(ground.versions.readTime() >= third)
    }

    @Test
    func `A group that begins while another is synced: the read time is before the first, then what is published`()
        throws
    {
        let ground = try Ground()
        _ = try ground.commit()
        ground.clock.advance(milliseconds: 5_000)
        let first = try ground.stage()
        let next = ground.versions.nextVersion(after: ground.last)
        expectEqual(ground.versions.readTime(), first - 1)
        try ground.publish()
        expect(next.microseconds > first)
        expectEqual(ground.versions.readTime(), first)
    }

    @Test
    func `A read time does not step back when a commit begins`() throws {
        let ground = try Ground()
        _ = try ground.commit()
        ground.clock.advance(milliseconds: 60_000)
        let idle = ground.versions.readTime()
        ground.clock.stepBack(milliseconds: 30_000)
        let version = try ground.stage()
        expectEqual(version, idle + 1)
        expectEqual(ground.versions.readTime(), idle)
        try ground.publish()
        expectEqual(ground.versions.readTime(), version)
    }

    @Test
    func `No commit is at or below a read time from before a commit that was rolled back`() throws {
        let ground = try Ground()
        _ = try ground.commit()
        ground.clock.advance(milliseconds: 60_000)
        let dropped = ground.versions.nextVersion(after: ground.last)
        let time = ground.versions.readTime()
        expectEqual(time, dropped.microseconds - 1)
        // The next start of the store is to learn of it.
        expect(ground.versions.lastIssued >= time)
        ground.versions.returnVersion(dropped, last: ground.last, isReported: false)
        ground.clock.stepBack(milliseconds: 30_000)
        try expect(ground.commit() > time)
    }

    @Test
    func `While the first commit of a store is in flight a read time is just before it, which is above zero`() throws {
        let ground = try Ground()
        ground.clock.advance(milliseconds: 10)
        let first = try ground.stage()
        let time = ground.versions.readTime()
        expect(time > 0 && time == first - 1)
        expect(ground.versions.reserve(time))
        try ground.publish()
        expect(ground.versions.readTime() >= first)
        // Also when the clock is set back before the first commit.
        let other = try Ground()
        other.clock.stepBack(milliseconds: 5_000)
        let version = try other.stage()
        expect(other.versions.readTime() < version && other.versions.readTime() > 0)
    }

    @Test
    func `A version that was rolled back blocks nothing; one that a client has seen is not given again`() throws {
        let ground = try Ground()
        let first = try ground.commit()
        ground.clock.advance(milliseconds: 10)
        let dropped = ground.versions.nextVersion(after: ground.last)
        ground.versions.returnVersion(dropped, last: ground.last, isReported: false)
        expectEqual(ground.versions.readTime(), first + 10_000)
        let notified = ground.versions.nextVersion(after: ground.last)
        ground.versions.returnVersion(notified, last: ground.last, isReported: true)
        expect(ground.versions.readTime() >= notified.microseconds)
        try expect(ground.commit() > notified.microseconds)
    }

    @Test
    func `Nothing is committed at or below a reserved time; it is readable when what lies below is published`() throws {
        let ground = try Ground()
        let first = try ground.commit()
        let time = first + 3_000_000
        expect(ground.versions.reserve(time))
        try expectEqual(ground.commit(), time + 1)
        expect(ground.versions.reserve(first))
        // With a commit in flight only what is published is readable.
        let second = try ground.stage()
        expect(ground.versions.reserve(time + 1))
        expect(!ground.versions.reserve(second))
        try ground.publish()
        expect(ground.versions.reserve(second))
    }

    @Test
    func `The latest readable time is the latest of clock, read times and commits`() throws {
        let ground = try Ground()
        let now = ground.clock.nowMicroseconds
        expectEqual(ground.versions.latestReadable, now)
        expect(ground.versions.reserve(now + 500))
        expectEqual(ground.versions.latestReadable, now + 500)
        let version = try ground.commit()
        expectEqual(version, now + 501)
        expectEqual(ground.versions.latestReadable, version)
    }

    // MARK: Waits

    /// The outcome of one wait.
    private final class Waited: Sendable {
        private let results = Mutex<[Result<Void, RequestError>]>([])

        init(_ ground: Ground, for time: UInt64) {
            ground.versions.whenReadable(time) { result in self.results.withLock { $0.append(result) } }
        }

        /// Nil while it waits. Fails if the completion was called twice.
        var code: StatusCode? {
            let results = results.withLock(\.self)
            expect(results.count <= 1)
            return switch results.first {
            case .success: .ok
            case .failure(let error): error.code
            case nil: nil
            }
        }
    }

    @Test
    func `A read at a time with a commit in flight waits for its publication, and costs nothing without one`() throws {
        let ground = try Ground()
        let first = try ground.commit()
        expectEqual(Waited(ground, for: first).code, .ok)
        ground.clock.advance(milliseconds: 10)
        let second = try ground.stage()
        let early = Waited(ground, for: second)
        let late = Waited(ground, for: second + 1)
        let before = Waited(ground, for: second - 1)
        expectEqual(before.code, .ok)
        expect(early.code == nil && late.code == nil)
        expectEqual(ground.versions.waitCount, 2)
        try ground.publish()
        expect(early.code == .ok && late.code == .ok)
        expectEqual(ground.versions.waitCount, 0)
    }

    @Test
    func `A wait ends with the commits before its time, although later ones are in flight`() throws {
        let ground = try Ground()
        _ = try ground.commit()
        ground.clock.advance(milliseconds: 10)
        let staged = try ground.stage()
        let waited = Waited(ground, for: staged + 5)
        // The next commit has its version before the first one is published.
        let next = ground.versions.nextVersion(after: ground.last)
        expect(next.microseconds > staged + 5)
        expectNil(waited.code)
        try ground.publish()
        expectEqual(waited.code, .ok)
    }

    @Test
    func `A wait ends when the version that it waits for is returned`() throws {
        let ground = try Ground()
        _ = try ground.commit()
        ground.clock.advance(milliseconds: 10)
        let dropped = ground.versions.nextVersion(after: ground.last)
        let waited = Waited(ground, for: dropped.microseconds)
        expectNil(waited.code)
        ground.versions.returnVersion(dropped, last: ground.last, isReported: false)
        expectEqual(waited.code, .ok)
        try expect(ground.commit() > dropped.microseconds)
    }

    @Test
    func `A wait fails after its time limit, and when the sync fails`() throws {
        let ground = try Ground(waits: ReadWaits(timeLimitMilliseconds: 1_000))
        _ = try ground.commit()
        ground.clock.advance(milliseconds: 10)
        let staged = try ground.stage()
        let first = Waited(ground, for: staged)
        ground.clock.advance(milliseconds: 600)
        let second = Waited(ground, for: staged)
        ground.clock.advance(milliseconds: 399)
        ground.versions.endExpiredWaits()
        expectNil(first.code)
        ground.clock.advance(milliseconds: 1)
        ground.versions.endExpiredWaits()
        expectEqual(first.code, .unavailable)
        expectNil(second.code)
        ground.versions.failWaits(.shuttingDown)
        expectEqual(second.code, RequestError.shuttingDown.code)
        expectEqual(ground.versions.waitCount, 0)
        try ground.publish()
    }

    @Test
    func `Too many waits are refused`() throws {
        let ground = try Ground(waits: ReadWaits(countMax: 2))
        let staged = try ground.stage()
        let waited = (0..<3).map { _ in Waited(ground, for: staged) }
        expectEqual(waited.map(\.code), [nil, nil, .resourceExhausted])
        try ground.publish()
        expectEqual(waited.map(\.code), [.ok, .ok, .resourceExhausted])
    }

    private final class Readers: Sendable {
        let isOver = Atomic(false)
        /// The highest read time that a reader has got.
        let notified = Atomic<UInt64>(0)
        let count = Atomic(0)
        let finished = DispatchSemaphore(value: 0)
    }

    @Test
    func `Read times of several threads are below every commit that is not visible yet`() throws {
        let ground = try Ground()
        let readers = Readers()
        let versions = ground.versions
        for _ in 0..<2 {
            Thread.detachNewThread {
                while !readers.isOver.load(ordering: .acquiring) {
                    readers.notified.max(versions.readTime(), ordering: .sequentiallyConsistent)
                    readers.count.add(1, ordering: .relaxed)
                }
                readers.finished.signal()
            }
        }
        for round in 0..<3_000 {
            let before = readers.notified.load(ordering: .sequentiallyConsistent)
            let version = try ground.stage()
            expect(version > before)
            // Read times until the publication are lower, whatever the clock does.
            if round % 2 == 0 { ground.clock.advance(milliseconds: 1) }
            for _ in 0..<20 { expect(readers.notified.load(ordering: .sequentiallyConsistent) < version) }
            try ground.publish()
        }
        try waitUntil("the readers have read") { readers.count.load(ordering: .relaxed) > 1_000 }
        readers.isOver.store(true, ordering: .releasing)
        for _ in 0..<2 { try readers.finished.wait(until: "a reader has finished") }
    }

    @Test
    func `Every wait that another thread adds while commits are published ends`() throws {
        let ground = try Ground()
        let readers = Readers()
        let versions = ground.versions
        let clock = ground.clock
        Thread.detachNewThread {
            while !readers.isOver.load(ordering: .acquiring) {
                versions.whenReadable(max(clock.nowMicroseconds, versions.lastIssued)) { _ in
                    readers.notified.add(1, ordering: .relaxed)
                }
                readers.count.add(1, ordering: .relaxed)
            }
            readers.finished.signal()
        }
        for _ in 0..<3_000 {
            ground.clock.advance(milliseconds: 1)
            _ = try ground.stage()
            try ground.publish()
        }
        try waitUntil("the reader has asked") { readers.count.load(ordering: .relaxed) > 1_000 }
        readers.isOver.store(true, ordering: .releasing)
        try readers.finished.wait(until: "the reader has finished")
        // Nothing is in flight, so nothing may wait.
        expectEqual(versions.waitCount, 0)
        expectEqual(readers.notified.load(ordering: .relaxed), UInt64(readers.count.load(ordering: .relaxed)))
    }
}
