// Recovery from logs that are cut, damaged, or full of what earlier lives left.

import EngineTestSupport
import Glibc
import Storage
import StorageEngines
import TestSupport
import Testing

@testable import CommitLog
@testable import EmbeddedEngine

/// A directory whose log holds some commits, and where they lie.
private final class LoggedDirectory {
    let directory = TemporaryDirectory()
    let original: String
    let copy: String
    /// Frames of the first segment, in order.
    private(set) var frames: [LogFrameHeader] = []
    let segmentName = LogFormat.fileName(sequence: 1)
    private(set) var segment: Bytes = []

    /// Commits 10, 20, …, one frame each.
    init(commits: Int) throws {
        original = directory.path(of: "original")
        copy = directory.path(of: "copy")
        let store = try Store(original)
        for number in 1...UInt64(commits) { try store.commit(number * 10, Self.changes(number * 10)) }
        // Not closed: what a kill leaves.
        Files.copyTree(original, to: directory.path(of: "killed"))
        try store.engine.close()
        segment = Files.read(killed + "/log/" + segmentName)
        frames = Self.frames(segment)
        expectEqual(frames.map(\.lastVersion), (1...UInt64(commits)).map { $0 * 10 })
    }

    var killed: String { directory.path(of: "killed") }

    static func changes(_ version: UInt64) -> [Change] {
        [.put("all", "\(version)"), .put("k\(version)", "v"), .delete("k\(version - 10)")]
    }

    static func frames(_ segment: Bytes) -> [LogFrameHeader] {
        segment.withUnsafeBytes { bytes in
            guard let header = SegmentHeader(bytes) else { return [] }
            var frames: [LogFrameHeader] = []
            var offset = LogFormat.framesStart
            while let frame = LogFrameHeader(segment: bytes, at: offset, nonce: header.nonce) {
                frames.append(frame)
                offset += frame.frameBytes
            }
            return frames
        }
    }

    /// Makes `copy` a killed directory whose first segment is `bytes`.
    func damage(_ bytes: Bytes) {
        Files.remove(copy)
        Files.copyTree(killed, to: copy)
        Files.write(bytes, to: copy + "/log/" + segmentName)
    }

    /// Opens the copy, expects the commits up to `version` and nothing of later ones, commits more, and looks again.
    func expectRecovered(upTo version: UInt64, _ what: String) throws {
        do {
            let store = try Store(copy)
            expectEqual(store.replayed, stride(from: 10, through: version, by: 10).map { $0 }, "\(what)")
            try expectEqual(store.get("all"), version == 0 ? nil : "\(version)", "\(what)")
            try expectNil(store.get("k\(version + 10)"), "\(what)")
            try store.commit(1000, [.put("after", "1")])
            // Killed again, so that the new commit must come from the log.
            let again = copy + "-again"
            Files.copyTree(copy, to: again)
            defer { Files.remove(again) }
            let second = try Store(again)
            expectEqual(second.replayed, store.replayed + [1000], "\(what)")
            try expectEqual(second.get("after"), "1", "\(what)")
            try second.engine.close()
            try expectClean(again)
            try store.engine.close()
        }
        try expectClean(copy)
    }
}

@Suite(.timeLimit(.minutes(20)))
struct RecoveryTests {
    @Test
    func `The version of a commit that changes nothing stays after a clean end`() throws {
        let directory = TemporaryDirectory()
        let data = directory.path(of: "data")
        for version: UInt64 in [10, 20, 30] {
            let store = try Store(data)
            try store.commit(version, version == 10 ? [.put("k", "v")] : [])
            try store.engine.close()
            let again = try Store(data)
            expectEqual(again.engine.publishedVersion.microseconds, version)
            try again.engine.close()
        }
    }

    @Test
    func `A log whose last two groups are zeros from any byte on gives the groups before`() throws {
        let logged = try LoggedDirectory(commits: 4)
        let third = logged.frames[2]
        let fourth = logged.frames[3]
        let end = fourth.offset + fourth.frameBytes
        for cut in CaseShare.of(third.offset...end, 100) {
            logged.damage(Bytes(logged.segment[..<cut]) + Bytes(repeating: 0, count: logged.segment.count - cut))
            // A group may end with zeros, and then loses nothing.
            func isWhole(upTo end: Int) -> Bool { logged.segment[min(cut, end)..<end].allSatisfy { $0 == 0 } }
            let expected: UInt64 = isWhole(upTo: end) ? 40 : isWhole(upTo: fourth.offset) ? 30 : 20
            try logged.expectRecovered(upTo: expected, "zeros from \(cut)")
        }
    }

    @Test
    func `A segment that is shorter than its header says is corruption, named by file and size`() throws {
        let logged = try LoggedDirectory(commits: 4)
        let ends = logged.frames.flatMap { [$0.offset, $0.offset + 9, $0.offset + $0.frameBytes] }
        for size in [0, 1, 47, 48, 4095, 4096, logged.segment.count - 1] + ends {
            logged.damage(Bytes(logged.segment[..<size]))
            let error = #expect(throws: StorageError.self) { try Store(logged.copy) }
            expectEqual(error?.code, .corrupt, "cut to \(size)")
            expectEqual(error?.file, logged.copy + "/log/" + logged.segmentName)
            expectEqual(error?.offset, size)
            let report = try EngineCheck.run(directory: logged.copy)
            expectEqual(report.problems.count, 1, "cut to \(size)")
            // It was looked at and left alone.
            expectEqual(Files.read(logged.copy + "/log/" + logged.segmentName).count, size)
        }
    }

    @Test
    func `An unused segment that is cut short is corruption too: it may have held commits`() throws {
        let logged = try LoggedDirectory(commits: 2)
        logged.damage(logged.segment)
        let unused = logged.copy + "/log/" + LogFormat.fileName(sequence: 2)
        var bytes = Bytes(repeating: 0, count: 5000)
        bytes.withUnsafeMutableBytes { SegmentHeader(sequence: 2, nonce: 7, byteCount: 64 << 10).encode(into: $0) }
        Files.write(bytes, to: unused)
        let error = #expect(throws: StorageError.self) { try Store(logged.copy) }
        expectEqual(error?.code, .corrupt)
        expectEqual(error?.file, unused)
        try expect(!EngineCheck.run(directory: logged.copy).isClean)
    }

    @Test(arguments: [1, 8, 40, 56, 70])
    func `A log whose last group was torn in the middle gives the groups before it`(written: Int) throws {
        let logged = try LoggedDirectory(commits: 3)
        let last = logged.frames[2]
        var torn = logged.segment
        for index in (last.offset + written)..<(last.offset + last.frameBytes) { torn[index] = 0 }
        logged.damage(torn)
        try logged.expectRecovered(upTo: 20, "torn after \(written) bytes")
    }

    @Test
    func `A bit flipped anywhere in the last group cuts it off`() throws {
        let logged = try LoggedDirectory(commits: 3)
        let last = logged.frames[2]
        for index in CaseShare.of(last.offset..<(last.offset + last.frameBytes), 50) {
            var damaged = logged.segment
            damaged[index] ^= 1 << (index % 8)
            logged.damage(damaged)
            try logged.expectRecovered(upTo: 20, "bit flipped at \(index)")
        }
    }

    @Test
    func `A bit flipped anywhere before the last group is corruption, named by file and byte`() throws {
        let logged = try LoggedDirectory(commits: 3)
        for frame in logged.frames[..<2] {
            for index in CaseShare.of(frame.offset..<(frame.offset + frame.frameBytes), 50) {
                var damaged = logged.segment
                damaged[index] ^= 1 << (index % 8)
                logged.damage(damaged)
                let error = #expect(throws: StorageError.self) { try Store(logged.copy) }
                expectEqual(error?.code, .corrupt)
                expectEqual(error?.file, logged.copy + "/log/" + logged.segmentName)
                expectEqual(error?.offset, frame.offset)
                let report = try EngineCheck.run(directory: logged.copy)
                expectEqual(report.problems.count, 1)
            }
        }
    }

    @Test
    func `Two groups of which none is whole are corruption, named by the first one: it was synced`() throws {
        let logged = try LoggedDirectory(commits: 4)
        for first in 0..<3 {
            var damaged = logged.segment
            for frame in logged.frames[first...] { damaged[frame.offset + frame.frameBytes - 9] ^= 1 }
            // The first one may be gone altogether.
            for isGone in [false, true] {
                let frame = logged.frames[first]
                if isGone { for index in frame.offset..<(frame.offset + frame.frameBytes) { damaged[index] = 0 } }
                logged.damage(damaged)
                let error = #expect(throws: StorageError.self) { try Store(logged.copy) }
                expectEqual(error?.code, .corrupt)
                expectEqual(error?.file, logged.copy + "/log/" + logged.segmentName)
                expectEqual(error?.offset, frame.offset)
                try expect(!EngineCheck.run(directory: logged.copy).isClean)
            }
        }
    }

    @Test(arguments: [0, 8, 16, 24, 32, 47])
    func `A damaged segment header is corruption`(index: Int) throws {
        let logged = try LoggedDirectory(commits: 1)
        var damaged = logged.segment
        damaged[index] ^= 0x10
        logged.damage(damaged)
        let error = #expect(throws: StorageError.self) { try Store(logged.copy) }
        expectEqual(error?.code, .corrupt)
    }

    @Test(arguments: UInt64(1)...4)
    func `A missing segment is corruption, unless it is the last`(missing: UInt64) throws {
        let directory = TemporaryDirectory()
        let original = directory.path(of: "original")
        let copy = directory.path(of: "copy")
        let store = try Store(original)
        // Each of these takes most of a segment.
        for version in 1...4 as ClosedRange<UInt64> {
            try store.commit(version, [Change(key: [1], value: Bytes(repeating: 7, count: 50 << 10))])
        }
        Files.copyTree(original, to: copy)
        try store.engine.close()
        Files.remove(copy + "/log/" + LogFormat.fileName(sequence: missing))
        // Prepared ahead; without it the row ends where the missing one stood.
        Files.remove(copy + "/log/" + LogFormat.fileName(sequence: 5))
        if missing == 4 {
            // Nothing can tell that there ever was one more.
            let cut = try Store(copy)
            expectEqual(cut.replayed, [1, 2, 3])
            try cut.engine.close()
            return try expectClean(copy)
        }
        let error = #expect(throws: StorageError.self) { try Store(copy) }
        expectEqual(error?.code, .corrupt)
        try expect(!EngineCheck.run(directory: copy).isClean)
    }

    @Test
    func `A record that replay refuses ends the opening with its error`() throws {
        struct Refusal: Error {}
        let logged = try LoggedDirectory(commits: 2)
        #expect(throws: Refusal.self) {
            try StorageEngine.open(directory: logged.killed) { _, _, _, _ in throw Refusal() }
        }
        let store = try Store(logged.killed)
        expectEqual(store.replayed, [10, 20])
        try store.engine.close()
        try expectClean(logged.killed)
    }

    @Test(arguments: UInt64(1)...4)
    func `Recycled segments never give back commits of an earlier life`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let directory = TemporaryDirectory()
        var options = EngineOptions.small
        options.logSegmentBytes = 12 << 10
        options.logSpareSegmentsMax = 2
        let original = directory.path(of: "original")
        let store = try Store(original, options)
        var version: UInt64 = 0
        var sinceCheckpoint: [UInt64] = []
        for step in 0..<120 {
            version += 1
            // Same sizes again and again, so that frames of different lives begin at the same places.
            try store.commit(
                version, [Change(key: [1], value: Bytes(repeating: UInt8(truncatingIfNeeded: version), count: 900))])
            sinceCheckpoint.append(version)
            if random.oneIn(15) {
                try store.engine.checkpointNow()
                sinceCheckpoint = []
            }
            guard step % 10 == 9 else { continue }
            let copy = directory.path(of: "copy")
            Files.copyTree(original, to: copy)
            let killed = try Store(copy, options)
            expectEqual(killed.replayed, sinceCheckpoint, "seed \(seed), step \(step)")
            expectEqual(killed.engine.publishedVersion.microseconds, version)
            try killed.engine.close()
            try expectClean(copy)
            Files.remove(copy)
        }
        try store.engine.close()
        try expectClean(original)
        expect(Files.names(in: original + "/log").count <= 6)
    }

    @Test
    func `A log larger than the memtable is replayed with checkpoints in between`() throws {
        let directory = TemporaryDirectory()
        let copy = directory.path(of: "copy")
        let store = try Store(directory.path(of: "original"))
        for version in 1...60 as ClosedRange<UInt64> {
            try store.commit(version, [Change(key: [UInt8(version)], value: Bytes(repeating: 7, count: 10 << 10))])
        }
        Files.copyTree(directory.path(of: "original"), to: copy)
        try store.engine.close()
        var options = EngineOptions.small
        options.memtableBytesMax = 64 << 10
        let small = try Store(copy, options)
        expectEqual(small.replayed, Array(1...60))
        expect(small.engine.statistics.runEntries > 40)
        try expectEqual(small.scan().map(\.version), Array(1...60))
        try small.engine.close()
        try expectClean(copy)
    }

    @Test
    func `A group larger than a segment gets its own segment`() throws {
        let directory = TemporaryDirectory()
        let copy = directory.path(of: "copy")
        let store = try Store(directory.path(of: "original"))
        let giant = Bytes(repeating: 9, count: 300 << 10)
        try store.commit(1, [.put("a", "1")])
        try store.commit(2, [Change(key: [2], value: giant)])
        try store.commit(3, [.put("a", "3")])
        Files.copyTree(directory.path(of: "original"), to: copy)
        let killed = try Store(copy)
        expectEqual(killed.replayed, [1, 2, 3])
        try expectEqual(killed.scan().map(\.value.count), [300 << 10, 1])
        try killed.engine.close()
        try expectClean(copy)
        try store.engine.close()
        try expectClean(directory.path(of: "original"))
    }
}
