// Commit versions and read times: what is told is never overtaken, whatever the wall clock does.

import Basics
import DocumentModel
import Foundation
import KeyValueStore
import Synchronization
import TestSupport
import Testing

@testable import DocumentStore

@Suite("Version clock", .timeLimit(.minutes(2))) struct VersionClockTests {
    /// A version clock over an engine of its own, and the commit thread's part of it.
    private final class Ground {
        let clock = SteppedClock()
        let versions: VersionClock
        private let directory = TemporaryDirectory("versions")
        private let engine: StorageEngine
        private let writer: EngineWriter
        private(set) var last = CommitVersion(microseconds: 0)

        init() throws {
            var options = EngineOptions()
            options.mapBytesMax = 1 << 28
            options.overlayBytesMax = 4 << 20
            options.logSegmentBytes = 1 << 20
            engine = try StorageEngine.open(directory: directory.path, options: options) { _, _, _, _ in }
            writer = try engine.makeWriter()
            versions = VersionClock(clock: clock, engine: engine)
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

        func publish() throws { try writer.commitGroup() }

        func commit() throws -> UInt64 {
            let version = try stage()
            try publish()
            return version
        }
    }

    @Test("Versions are the wall clock's time, and increase when it stands still or steps back")
    func increase() throws {
        let ground = try Ground()
        let first = try ground.commit()
        #expect(first == ground.clock.nowMicroseconds)
        #expect(try ground.commit() == first + 1)
        ground.clock.stepBack(milliseconds: 60_000)
        #expect(try ground.commit() == first + 2)
        ground.clock.advance(milliseconds: 120_000)
        #expect(try ground.commit() == ground.clock.nowMicroseconds)
    }

    @Test("A read time is now when nothing is in flight, and no commit comes at or below it")
    func readTimes() throws {
        let ground = try Ground()
        let committed = try ground.commit()
        ground.clock.advance(milliseconds: 10)
        let time = ground.versions.readTime()
        #expect(time == committed + 10_000)
        #expect(ground.versions.lastHandedOut == time)
        #expect(try ground.commit() == time + 1)
        // Also when the clock is set back meanwhile.
        let later = ground.versions.readTime()
        ground.clock.stepBack(milliseconds: 5_000)
        #expect(try ground.commit() > later)
        #expect(ground.versions.readTime() > later)
    }

    @Test("While a commit is in flight a read time is what is published")
    func inFlight() throws {
        let ground = try Ground()
        let first = try ground.commit()
        ground.clock.advance(milliseconds: 10)
        let second = try ground.stage()
        ground.clock.advance(milliseconds: 10)
        #expect(ground.versions.readTime() == first)
        try ground.publish()
        #expect(ground.versions.readTime() >= second)
    }

    @Test("A version that came to nothing holds nobody up; one that was told is not given again")
    func returned() throws {
        let ground = try Ground()
        let first = try ground.commit()
        ground.clock.advance(milliseconds: 10)
        let dropped = ground.versions.nextVersion(after: ground.last)
        ground.versions.returnVersion(dropped, last: ground.last, wasTold: false)
        #expect(ground.versions.readTime() == first + 10_000)
        let told = ground.versions.nextVersion(after: ground.last)
        ground.versions.returnVersion(told, last: ground.last, wasTold: true)
        #expect(ground.versions.readTime() >= told.microseconds)
        #expect(try ground.commit() > told.microseconds)
    }

    @Test("A time that was asked for is settled: nothing is committed at or below it any more")
    func settles() throws {
        let ground = try Ground()
        let first = try ground.commit()
        let time = first + 3_000_000
        #expect(ground.versions.settle(time))
        #expect(try ground.commit() == time + 1)
        #expect(ground.versions.settle(first))
        // With a commit in flight only what is published is settled.
        let second = try ground.stage()
        #expect(ground.versions.settle(time + 1))
        #expect(!ground.versions.settle(second))
        try ground.publish()
        #expect(ground.versions.settle(second))
    }

    @Test("The latest readable time is the latest of clock, read times and commits")
    func latestReadable() throws {
        let ground = try Ground()
        let now = ground.clock.nowMicroseconds
        #expect(ground.versions.latestReadable == now)
        #expect(ground.versions.settle(now + 500))
        #expect(ground.versions.latestReadable == now + 500)
        let version = try ground.commit()
        #expect(version == now + 501)
        #expect(ground.versions.latestReadable == version)
    }

    private final class Readers: Sendable {
        let isOver = Atomic(false)
        /// The highest read time that a reader has been told.
        let told = Atomic<UInt64>(0)
        let count = Atomic(0)
        let finished = DispatchSemaphore(value: 0)
    }

    @Test("Read times told to several threads lie below every commit that is not visible yet")
    func concurrent() throws {
        let ground = try Ground()
        let readers = Readers()
        let versions = ground.versions
        for _ in 0..<2 {
            Thread.detachNewThread {
                while !readers.isOver.load(ordering: .acquiring) {
                    readers.told.max(versions.readTime(), ordering: .sequentiallyConsistent)
                    readers.count.add(1, ordering: .relaxed)
                }
                readers.finished.signal()
            }
        }
        for round in 0..<3_000 {
            let before = readers.told.load(ordering: .sequentiallyConsistent)
            let version = try ground.stage()
            #expect(version > before)
            // Whatever is told until the publication is below, however the clock goes on.
            if round % 2 == 0 { ground.clock.advance(milliseconds: 1) }
            for _ in 0..<20 { #expect(readers.told.load(ordering: .sequentiallyConsistent) < version) }
            try ground.publish()
        }
        try waitUntil("the readers have read") { readers.count.load(ordering: .relaxed) > 1_000 }
        readers.isOver.store(true, ordering: .releasing)
        for _ in 0..<2 { try readers.finished.wait(until: "a reader has finished") }
    }
}
