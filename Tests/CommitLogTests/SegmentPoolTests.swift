// Segments handed out in sequence, taken back, recycled, and refused while there is no room.

import EngineTestSupport
import Foundation
import Storage
import Synchronization
import TestSupport
import Testing

@testable import CommitLog

@Suite(.timeLimit(.minutes(20))) struct SegmentPoolTests {
    private static let usualBytes = 64 << 10

    /// A pool with its thread, on its own directory.
    private final class Fixture: Sendable {
        let directory = TemporaryDirectory("segments")
        let pool: SegmentPool
        private let ended = DispatchSemaphore(value: 0)

        init(spares: Int = 2, reserveBytes: Int = 0, fault: (@Sendable (FileOperation) -> Int32)? = nil) {
            var options = EngineOptions.small
            options.logSegmentBytes = SegmentPoolTests.usualBytes
            options.logSpareSegmentsMax = spares
            // A quarter of it is the log's.
            options.diskReserveBytes = 4 * reserveBytes
            options.fault = fault
            pool = SegmentPool(directory: directory.path, options: options)
            Thread.detachNewThread { [pool, ended] in
                pool.run()
                ended.signal()
            }
        }

        func next(
            byteCount: Int = SegmentPoolTests.usualBytes, mayUseReserve: Bool = false
        ) throws -> LogSegment {
            try pool.next(byteCount: byteCount, mayUseReserve: mayUseReserve)
        }

        func stop() throws {
            pool.stop()
            try ended.wait(until: "the pool's thread has ended")
        }

        /// Names of the segment files, and whether there is anything else.
        var files: [String] { Files.names(in: directory.path) }
    }

    @Test func `Segments come in sequence, durable under their names, and one is made ahead`() throws {
        let fixture = Fixture()
        for sequence in 1...3 as ClosedRange<UInt64> {
            let segment = try fixture.next()
            expectEqual(segment.sequence, sequence)
            expectEqual(segment.byteCount, Self.usualBytes)
            let bytes = Files.read(fixture.directory.path(of: LogFormat.fileName(sequence: sequence)))
            expectEqual(bytes.count, segment.byteCount)
            // The header, and after it zeros that need no new blocks when frames are written.
            expect(bytes[..<LogFormat.pageBytes].contains { $0 != 0 })
            expect(bytes[LogFormat.pageBytes...].allSatisfy { $0 == 0 })
        }
        try waitUntil("the next segment is ready") { fixture.pool.counts.spare == 1 }
        expectEqual(fixture.pool.counts.inUse, 3)
        expectEqual(fixture.pool.firstUnwritten, 4)
        try fixture.stop()
        expectEqual(fixture.files, (1...4).map { LogFormat.fileName(sequence: $0) })
    }

    @Test func `Each segment has its own nonce, also in a recycled file`() throws {
        let fixture = Fixture()
        var nonces: Set<UInt64> = []
        for _ in 0..<6 {
            let segment = try fixture.next()
            nonces.insert(segment.nonce)
            fixture.pool.release(before: segment.sequence)
        }
        expectEqual(nonces.count, 6)
        try fixture.stop()
    }

    @Test func `Segments released during an attempt that finds no space are used, and the attempt refuses nothing`()
        throws
    {
        let isFull = Atomic(false)
        let pool = Mutex<SegmentPool?>(nil)
        let fixture = Fixture { operation in
            guard operation == .allocateSegment, isFull.load(ordering: .acquiring) else { return 0 }
            pool.withLock { $0 }?.release(before: 3)
            return ENOSPC
        }
        pool.withLock { $0 = fixture.pool }
        for _ in 1...2 { _ = try fixture.next() }
        try waitUntil("the third segment is ready") { fixture.pool.counts.spare == 1 }
        isFull.store(true, ordering: .releasing)
        for sequence in 3...4 as ClosedRange<UInt64> {
            try expectEqual(fixture.next().sequence, sequence)
        }
        expectEqual(fixture.pool.counts.inUse, 2)
        try fixture.stop()
    }

    @Test func `The space of a reserve that was used becomes the reserve again, and nothing else gets it`() throws {
        let isFull = Atomic(false)
        let refusals = Atomic(0)
        let reserveBytes = Self.usualBytes / 2
        let fixture = Fixture(reserveBytes: reserveBytes) { operation in
            guard operation == .allocateSegment, isFull.load(ordering: .acquiring) else { return 0 }
            refusals.add(1, ordering: .relaxed)
            return ENOSPC
        }
        func waitForReserve() throws {
            try waitUntil("the reserve is there") { fixture.pool.bytesReserved == reserveBytes }
        }
        _ = try fixture.next()
        try waitUntil("the second is ready") { fixture.pool.counts.spare == 1 }
        try waitForReserve()
        isFull.store(true, ordering: .releasing)
        _ = try fixture.next()
        for _ in 0..<3 {
            let deletes = try fixture.next(byteCount: 2 * LogFormat.pageBytes, mayUseReserve: true)
            expectEqual(deletes.byteCount, reserveBytes)
            expectEqual(fixture.pool.bytesReserved, 0)
            // There is no space for another one.
            let before = refusals.load(ordering: .relaxed)
            try waitUntil("no space was found") { refusals.load(ordering: .relaxed) >= before + 3 }
            // A checkpoint releases what is before it: the next commit goes there.
            fixture.pool.release(before: deletes.sequence)
            let usual = try fixture.next()
            expectEqual(usual.byteCount, Self.usualBytes)
            fixture.pool.release(before: usual.sequence)
            try waitForReserve()
            try expectEqual(fixture.next().byteCount, Self.usualBytes)
        }
        try fixture.stop()
    }

    @Test func `Released segments are used again instead of new files`() throws {
        let created = Atomic(0)
        let fixture = Fixture(spares: 2) { operation in
            if operation == .allocateSegment { created.add(1, ordering: .relaxed) }
            return 0
        }
        for _ in 0..<20 {
            let segment = try fixture.next()
            // All before the one that is written.
            fixture.pool.release(before: segment.sequence)
            try waitUntil("a segment is ready") {
                fixture.pool.counts.spare > 0 && fixture.pool.firstUnwritten > segment.sequence
            }
        }
        expectEqual(fixture.pool.counts.inUse, 1)
        expect(created.load(ordering: .relaxed) <= 4)
        try fixture.stop()
        expect(fixture.files.count <= 4)
    }

    @Test func `The segment that is being written is never taken back`() throws {
        let fixture = Fixture()
        _ = try fixture.next()
        let second = try fixture.next()
        fixture.pool.release(before: second.sequence + 100)
        expectEqual(fixture.pool.counts.inUse, 1)
        try fixture.stop()
        expect(fixture.files.contains(LogFormat.fileName(sequence: second.sequence)))
    }

    @Test func `More files than spares allowed are removed, and trimming leaves one`() throws {
        let fixture = Fixture(spares: 3)
        var last: UInt64 = 0
        for _ in 0..<10 { last = try fixture.next().sequence }
        fixture.pool.release(before: last)
        try waitUntil("the files beyond the spares are removed") { fixture.files.count == 1 + 1 + 3 }
        fixture.pool.trim()
        try waitUntil("one free file is left") { fixture.files.count == 1 + 1 + 1 }
        try fixture.stop()
        fixture.pool.removeFree()
        expectEqual(fixture.files.count, 2)
    }

    @Test func `A giant group gets a segment of its size; what is ready and too small stays in the sequence`() throws {
        let fixture = Fixture()
        let first = try fixture.next()
        try waitUntil("the second is ready") { fixture.pool.counts.spare == 1 }
        let giant = try fixture.next(byteCount: 5 * Self.usualBytes + 1)
        expectEqual(giant.sequence, first.sequence + 2)
        expect(giant.byteCount >= 5 * Self.usualBytes + 1 && giant.byteCount % LogFormat.pageBytes == 0)
        // Afterwards segments have the usual size again, and the giant file is not kept.
        let after = try fixture.next()
        expect(after.byteCount == Self.usualBytes && after.sequence == giant.sequence + 1)
        fixture.pool.release(before: after.sequence)
        try waitUntil("the giant file is removed") {
            fixture.files.allSatisfy { name in
                var status = stat()
                return stat(fixture.directory.path(of: name), &status) != 0 || Int(status.st_size) <= Self.usualBytes
            }
        }
        try fixture.stop()
    }

    @Test func `Without room the next segment is refused, and comes when there is room`() throws {
        let isFull = Atomic(true)
        let fixture = Fixture { operation in
            operation == .allocateSegment && isFull.load(ordering: .acquiring) ? ENOSPC : 0
        }
        let error = #expect(throws: StorageError.self) { try fixture.next() }
        expectEqual(error?.code, .full)
        expect(fixture.files.isEmpty)
        isFull.store(false, ordering: .releasing)
        var segment: LogSegment?
        try waitUntil("a segment is given again") {
            segment = try? fixture.next()
            return segment != nil
        }
        expectEqual(segment?.sequence, 1)
        try fixture.stop()
    }

    @Test func `A stopped pool refuses, also those who wait`() throws {
        let entered = DispatchSemaphore(value: 0)
        let mayGoOn = DispatchSemaphore(value: 0)
        let fixture = Fixture { operation in
            guard operation == .allocateSegment else { return 0 }
            entered.signal()
            return mayGoOn.wait(timeout: .now() + 60) == .success ? ENOSPC : EIO
        }
        let refused = Mutex<StorageError?>(nil)
        let answered = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            do { _ = try fixture.next() } catch { refused.withLock { $0 = error as? StorageError } }
            answered.signal()
        }
        try entered.wait(until: "the segment is being prepared")
        fixture.pool.stop()
        try answered.wait(until: "the waiting thread gets its segment")
        expectEqual(refused.withLock { $0?.code }, .closed)
        mayGoOn.signal()
        try fixture.stop()
        #expect(throws: StorageError.self) { try fixture.next() }
    }
}
