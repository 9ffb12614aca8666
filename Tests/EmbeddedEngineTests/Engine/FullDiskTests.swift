// Disks that are really full: a tmpfs of a few megabytes.

import EngineTestSupport
import Foundation
import Storage
import Synchronization
import TestSupport
import Testing

@testable import FileSystem

@Suite(.timeLimit(.minutes(20)))
struct FullDiskTests {
    private var options: EngineOptions {
        var options = EngineOptions.small
        options.logSegmentBytes = 256 << 10
        options.runFileBytesMax = 256 << 10
        options.diskReserveBytes = 2 << 20
        options.retentionMicroseconds = 0
        options.sweepPauseMicroseconds = 1000
        return options
    }

    private static func value(_ version: UInt64) -> Bytes {
        Bytes(repeating: UInt8(truncatingIfNeeded: version), count: 32 << 10)
    }

    /// Commits until it is refused; answers the last version that was acknowledged.
    private func commitUntilFull(_ store: Store, from first: UInt64) throws -> UInt64 {
        var version = first
        while true {
            do throws(StorageError) {
                try store.commit(version, [Change(key: Bytes("\(version)".utf8), value: Self.value(version))])
            } catch {
                expectEqual(error.code, .full)
                return version - 1
            }
            version += 1
        }
    }

    private func commitWhenPossible(_ store: Store, _ version: UInt64, _ value: Bytes = [1]) throws {
        try waitUntil("there is space for commit \(version)") {
            do throws(StorageError) {
                try store.commit(version, [Change(key: Bytes("again \(version)".utf8), value: value)])
                return true
            } catch {
                if error.code != .full { throw error }
                return false
            }
        }
    }

    private func expectAll(_ versions: ClosedRange<UInt64>, in store: Store) throws {
        let found = try store.scan()
        let expected = versions.map { Entry(key: Bytes("\($0)".utf8), value: Self.value($0), version: $0) }
        expectEqual(found.sorted { $0.version < $1.version }, expected)
    }

    @Test
    func `Commits are refused, nothing acknowledged is lost, deletes make room, and commits resume`() throws {
        let disk = try TemporaryDisk(megabytes: 24)
        let store = try Store(disk.path(of: "data"), options)
        let last = try commitUntilFull(store, from: 1)
        expect(last > 100)
        expect(store.engine.statistics.isFull)
        expect(!store.engine.statistics.hasFailed)
        try expectAll(1...last, in: store)
        var version = last
        for deleted in 1...last where deleted % 2 == 0 {
            version += 1
            try store.delete(version, "\(deleted)")
        }
        // Room for a good part of what was deleted, as soon as it is swept.
        for _ in 0..<(last / 4) {
            version += 1
            try commitWhenPossible(store, version, Self.value(version))
        }
        try expectEqual(store.scan().count, Int(last - last / 2 + last / 4))
        try? store.engine.close()
        try expectClean(disk.path(of: "data"))
    }

    /// A small value between two large ones wastes most of a page.
    private func document(_ version: UInt64, _ number: Int, _ valueBytes: Int) -> Change {
        let length = number % 3 == 2 ? 40 : valueBytes + number % 3
        // Of some the key is the longest.
        let name = number % 5 == 0 ? Bytes(repeating: 0x61, count: 486) : []
        let key = [0x10] + name + Bytes("\(100_000 + version) \(number)".utf8) + [0]
        return Change(key: key, value: Bytes(repeating: UInt8(truncatingIfNeeded: version), count: length))
    }

    @Test(arguments: CaseShare.of([400, 1_400, 1_500, 2_100, 4_060, 4_200], 2))
    func `What was acknowledged finds its place in document files, whatever the size of documents`(valueBytes: Int)
        throws
    {
        let disk = try TemporaryDisk(megabytes: 24)
        let data = disk.path(of: "data")
        var options = options
        options.memtableBytesMax = 4 << 20
        var last: UInt64 = 0
        do {
            let store = try Store(data, options)
            var isFull = false
            while !isFull {
                do throws(StorageError) {
                    try store.commit(last + 1, (0..<12).map { document(last + 1, $0, valueBytes) })
                    last += 1
                } catch {
                    expectEqual(error.code, .full)
                    isFull = true
                }
            }
            expect(Int(last) * 12 * valueBytes > 2 << 20)
            // Another process takes what is left.
            try disk.fill()
            try store.engine.checkpointNow()
            try expectEqual(store.scan().count, Int(last) * 12)
            try store.engine.close()
        }
        try disk.remove()
        let store = try Store(data, options)
        let expected = (1...last).flatMap { version in
            (0..<12).map { document(version, $0, valueBytes) }.map {
                Entry(key: $0.key, value: $0.value!, version: version)
            }
        }
        let found = try store.scan()
        expectEqual(found, expected.sorted { $0.key.lexicographicallyPrecedes($1.key) })
        try commitWhenPossible(store, last + 1)
        try store.engine.close()
        try expectClean(data)
    }

    @Test
    func `Blocks that another process takes during a checkpoint are replaced from the slack`() throws {
        let disk = try TemporaryDisk(megabytes: 24)
        let data = disk.path(of: "data")
        let thefts = Mutex(0)
        // Another process takes all that a file gives back, as soon as it does, for the first few times.
        let watch = DiskWatch.begin(data) { change, call in
            let result = call()
            guard case .resize = change else { return result }
            thefts.withLock { left in
                guard left > 0 else { return }
                left -= 1
                try? disk.fill("thief")
            }
            return result
        }
        defer { watch.end() }
        var options = options
        // No checkpoint is under way when the disk is filled.
        options.memtableBytesMax = 8 << 20
        let store = try Store(data, options)
        for version in 1...96 as ClosedRange<UInt64> {
            try store.commit(version, [Change(key: Bytes("\(version)".utf8), value: Self.value(version))])
        }
        try disk.fill()
        thefts.withLock { $0 = 6 }
        try store.engine.checkpointNow()
        expectEqual(thefts.withLock { $0 }, 0)
        try expectAll(1...96, in: store)
        try store.engine.close()
        try disk.remove()
        try disk.remove("thief")
        try expectClean(data)
    }

    @Test
    func `An engine opens on a disk without a free block; it reads, deletes, and commits when there is room`() throws {
        let disk = try TemporaryDisk(megabytes: 32)
        let data = disk.path(of: "data")
        // Given back at the end: the store itself fills what is left, so its filler alone may be a few blocks.
        try Data(count: 8 << 20).write(to: URL(fileURLWithPath: disk.path(of: "room")))
        var last: UInt64
        do {
            let store = try Store(data, options)
            last = try commitUntilFull(store, from: 1)
            try disk.fill()
            try? store.engine.close()
        }
        try disk.fill()
        do {
            let store = try Store(data, options)
            try expectAll(1...last, in: store)
            // After a refusal space may be found again, which is not enough for the commit that was refused.
            try waitUntil("the disk is full") {
                last = try commitUntilFull(store, from: last + 1)
                return store.engine.statistics.isFull
            }
            try store.delete(last + 1, "1")
            try expectNil(store.get("1"))
            try? store.engine.close()
        }
        try disk.remove()
        try disk.remove("room")
        let store = try Store(data, options)
        try expectEqual(store.scan().map(\.version).sorted(), Array(2...last))
        try commitWhenPossible(store, last + 2)
        try store.engine.close()
        try expectClean(data)
    }

    @Test
    func `After a restart on a full disk deletes use what is left of the reserve`() throws {
        let disk = try TemporaryDisk(megabytes: 24)
        let data = disk.path(of: "data")
        do {
            let store = try Store(data, options)
            try store.commit(1, [.put("1", "a"), .put("2", "b")])
            try waitUntil("the reserve is whole") { store.engine.statistics.reserveBytes == options.diskReserveBytes }
            try store.engine.close()
        }
        // Less than the slack and the reserve: the first is counted before the second.
        let left = 2 << 20
        let space = try FileHandle(forUpdating: URL(fileURLWithPath: data + "/runs/space"))
        expectEqual(ftruncate(space.fileDescriptor, off_t(left)), 0)
        try disk.fill()

        let store = try Store(data, options)
        let reserve = store.engine.statistics.reserveBytes
        // A manifest that was written on the full disk has taken a few blocks of it.
        expect(reserve >= left / 2 + options.logSegmentBytes - (64 << 10))
        expect(reserve < options.diskReserveBytes)
        try expectEqual(commitUntilFull(store, from: 2), 1)
        try store.delete(2, "1")
        try expectEqual(store.scan().map(\.key), [Bytes("2".utf8)])
        try store.engine.close()
        try expectClean(data)
    }

    /// Deletes whose record fills most of a segment of `EngineOptions.small`.
    private func deletes(_ version: UInt64) -> [Change] {
        (0..<115).map { Change(key: Bytes("\(version) \($0) ".utf8) + Bytes(repeating: 0x61, count: 480), value: nil) }
    }

    private func delete(_ store: Store, _ version: UInt64) throws {
        try store.stage(version, deletes(version), mayUseReserve: true)
        try store.writer.commitGroup()
    }

    @Test(arguments: [true, false])
    func `A segment that was being prepared at a kill is kept for deletes`(hasReserve: Bool) throws {
        let directory = TemporaryDirectory("killed")
        let (source, killed) = (directory.path(of: "source"), directory.path(of: "killed"))
        var options = EngineOptions.small
        if !hasReserve { options.diskReserveBytes = 0 }
        do {
            let store = try Store(source, options)
            try store.commit(1, [.put("1", "a")])
            try waitUntil("the log has its files") {
                let statistics = store.engine.statistics
                return statistics.logSegmentsSpare == 1
                    && statistics.reserveBytes == options.diskReserveBytes
            }
            Files.copyTree(source, to: killed)
            try store.engine.close()
        }
        // What a kill leaves while the last space there is becomes a segment: that of the reserve, or of one that a
        // checkpoint has released.
        let log = killed + "/log/"
        let segments = Files.names(in: log).filter { $0.hasSuffix(".log") }
        try #require(segments.count == 2)
        if hasReserve { Files.remove(log + segments[1]) }
        expectEqual(rename(log + (hasReserve ? "reserve" : segments[1]), log + "2.prepare"), 0)
        options.fault = { $0 == .allocateSegment ? ENOSPC : 0 }
        let store = try Store(killed, options)
        expectEqual(store.replayed, [1])
        for version in 2...40 as ClosedRange<UInt64> { try delete(store, version) }
        try store.engine.close()
        try expectClean(killed)
    }

    @Test(arguments: [0, EngineOptions.small.diskReserveBytes])
    func `Deletes find their place in the log while checkpoints begin and end`(reserveBytes: Int) throws {
        let directory = TemporaryDirectory("checkpoints")
        let isFull = Atomic(false)
        var options = EngineOptions.small
        options.diskReserveBytes = reserveBytes
        options.fault = { operation in
            operation == .allocateSegment && isFull.load(ordering: .acquiring) ? ENOSPC : 0
        }
        let store = try Store(directory.path(of: "data"), options)
        for version in 1...3 as ClosedRange<UInt64> { try delete(store, version) }
        isFull.store(true, ordering: .releasing)
        let isEnding = Atomic(false)
        let ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread { [engine = store.engine] in
            while !isEnding.load(ordering: .acquiring) { try? engine.checkpointNow() }
            ended.signal()
        }
        var refusal: (any Error)?
        for version in 4...300 as ClosedRange<UInt64> where refusal == nil {
            do { try delete(store, version) } catch { refusal = error }
        }
        isEnding.store(true, ordering: .releasing)
        try ended.wait(until: "the last checkpoint has ended")
        expectNil(refusal)
        try store.engine.close()
        try expectClean(directory.path(of: "data"))
    }

    @Test
    func `A checkpoint without space is a full disk and not a failed one`() throws {
        let disk = try TemporaryDisk(megabytes: 24)
        let data = disk.path(of: "data")
        let store = try Store(data, options)
        for version in 1...20 as ClosedRange<UInt64> {
            try store.commit(version, [Change(key: Bytes("\(version)".utf8), value: Self.value(version))])
        }
        // Takes the allocated blocks away, as an administrator's `truncate` may.
        expectEqual(truncate(data + "/runs/space", 0), 0)
        try disk.fill()
        let error = #expect(throws: StorageError.self) { try store.engine.checkpointNow() }
        expectEqual(error?.code, .full)
        expect(!store.engine.statistics.hasFailed)
        try expectAll(1...20, in: store)
        try disk.remove()
        try commitWhenPossible(store, 21)
        try store.engine.checkpointNow()
        try store.engine.close()
        try expectClean(data)
    }
}
