// The log as an engine, a follower and an archive use it: records come back in order, after any version; a trim takes
// what is not needed; damage and what was trimmed end in an error, and never in a wrong record.

import Basics
import EngineTestSupport
import Foundation
import Storage
import Synchronization
import TestSupport
import Testing

@testable import CommitLog

/// A record that came back.
private struct Seen: Equatable {
    var version: UInt64
    var bytes: Bytes
}

/// An open log on a directory.
private final class OpenLog {
    let log: WriteAheadLog
    let appender: LogAppender
    /// What recovery visited.
    let recovered: [Seen]
    private let outcomes = Monitor<[String]>([])
    private static let segmentBytes = 16 << 10

    static func options(
        _ fault: (@Sendable (FileOperation) -> Int32)? = nil, heldBytesMax: Int = 0, followedBytesMax: Int = 0
    ) -> EngineOptions {
        var options = EngineOptions.small
        options.logHeldBytesMax = heldBytesMax
        options.logFollowedBytesMax = followedBytesMax
        options.logSegmentBytes = segmentBytes
        options.diskReserveBytes = 0
        options.fault = fault
        return options
    }

    init(
        _ directory: String, from start: UInt64 = 0, after checkpoint: UInt64 = 0,
        fault: (@Sendable (FileOperation) -> Int32)? = nil, heldBytesMax: Int = 0, followedBytesMax: Int = 0
    ) throws {
        log = WriteAheadLog(
            directory: directory,
            options: Self.options(fault, heldBytesMax: heldBytesMax, followedBytesMax: followedBytesMax))
        var recovered: [Seen] = []
        let outcomes = outcomes
        appender = try log.recover(
            from: LogPosition(segment: start), after: CommitVersion(microseconds: checkpoint),
            finished: { version, error in
                outcomes.withLock { $0.append(error.map { "\($0.code)" } ?? "\(version)") }
            },
            { version, record in
                recovered.append(Seen(version: version.microseconds, bytes: record.withUnsafeBytes { Bytes($0) }))
            })
        self.recovered = recovered
        try log.startThreads()
    }

    deinit { log.close() }

    var allOutcomes: [String] { outcomes.withLock { $0 } }

    func append(_ record: Seen) throws {
        try appender.reserve(recordBytes: record.bytes.count, mayUseReserve: false)
        appender.append(record.bytes.span.bytes, version: CommitVersion(microseconds: record.version))
    }

    /// Appends a group, and syncs it on this thread or on the log's.
    func commit(_ records: [Seen], onLogThread: Bool = false) throws {
        for record in records { try append(record) }
        appender.waitUntilIdle()
        let group = appender.seal()
        if !onLogThread {
            let version = try appender.synchronize(group)
            expectEqual(version.microseconds, records.last?.version)
            return
        }
        let result = Monitor<Result<CommitVersion, StorageError>?>(nil)
        appender.synchronize(group) { outcome in result.withLock { $0 = outcome } }
        appender.waitUntilIdle()
        try expectEqual(result.withLock { $0 }?.get().microseconds, records.last?.version)
    }

    func position(after version: UInt64) -> LogPosition { log.position(after: CommitVersion(microseconds: version)) }

    func reader(after version: UInt64) -> LogRecords { log.records(after: CommitVersion(microseconds: version)) }
}

extension LogRecords {
    /// The next records, up to `count`.
    fileprivate func take(_ count: Int = .max) throws(StorageError) -> [Seen] {
        var seen: [Seen] = []
        while seen.count < count, try next() {
            seen.append(Seen(version: version.microseconds, bytes: record.withUnsafeBytes { Bytes($0) }))
        }
        return seen
    }

    /// The records of the next groups, up to `count` groups.
    fileprivate func takeGroups(_ count: Int = .max) throws(StorageError) -> [Seen] {
        var seen: [Seen] = []
        var groups = 0
        while groups < count, try nextGroup() {
            groups += 1
            let bytes = group.withUnsafeBytes { Bytes($0) }
            let before = seen.count
            var offset = 0
            func number(_ byteCount: Int) -> UInt64 {
                defer { offset += byteCount }
                return bytes[offset..<(offset + byteCount)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
            }
            while offset < bytes.count {
                let (version, length) = (number(8), Int(number(4)))
                seen.append(Seen(version: version, bytes: Bytes(bytes[offset..<(offset + length)])))
                offset += length
            }
            expect(seen.count - before == groupCount && seen.last?.version == version.microseconds)
        }
        return seen
    }
}

@Suite(.timeLimit(.minutes(20))) struct WriteAheadLogTests {
    let directory = TemporaryDirectory("log")

    private static func records(_ versions: ClosedRange<UInt64>, bytes: Int = 100) -> [Seen] {
        versions.map { Seen(version: $0, bytes: Bytes(repeating: UInt8(truncatingIfNeeded: $0), count: bytes)) }
    }

    @Test(arguments: [false, true])
    func `Records come back after any version, in the order of their groups, and later ones when they are durable`(
        onLogThread: Bool
    ) throws {
        let all = Self.records(1...60, bytes: 1_000)
        do {
            let open = try OpenLog(directory.path)
            let following = open.reader(after: 0)
            try expectEqual(following.take(), [])
            for start in stride(from: 0, to: 60, by: 3) {
                try open.commit(Array(all[start..<(start + 3)]), onLogThread: onLogThread)
                try expectEqual(following.take(), Array(all[start..<(start + 3)]))
            }
            expectEqual(open.log.durableVersion.microseconds, 60)
            expectEqual(open.allOutcomes, stride(from: 3, through: 60, by: 3).map { "\($0)" })
            expect(open.log.statistics.segmentsInUse > 3)
            for version in 0...61 {
                try expectEqual(open.reader(after: UInt64(version)).take(), Array(all.dropFirst(version)))
                try expectEqual(open.reader(after: UInt64(version)).takeGroups(), Array(all.dropFirst(version)))
            }
        }
        let again = try OpenLog(directory.path, from: 1, after: 20)
        expectEqual(again.recovered, Array(all[20...]))
        expectEqual(again.appender.lastVersion.microseconds, 60)
        try expectEqual(again.reader(after: 7).take(), Array(all[7...]))
        try again.commit(Self.records(61...61))
        try expectEqual(again.reader(after: 59).take().map(\.version), [60, 61])
    }

    @Test
    func `A position leads to all records after its version, and a trim takes what lies before it`() throws {
        let all = Self.records(1...40, bytes: 2_000)
        let open = try OpenLog(directory.path)
        for record in all { try open.commit([record]) }
        for version in UInt64(0)...40 {
            let position = open.position(after: version)
            var seen: [Seen] = []
            let contents = try WriteAheadLog.read(
                directory.path, from: position, after: CommitVersion(microseconds: version)
            ) { seen.append(Seen(version: $0.microseconds, bytes: $1.withUnsafeBytes { Bytes($0) })) }
            expectEqual(seen, Array(all[Int(version)...]))
            expect(contents.records == 40 - Int(version) && contents.lastVersion.microseconds == 40)
        }
        let inUse = open.log.statistics.segmentsInUse
        open.log.trim(before: open.position(after: 25))
        expect(open.log.statistics.segmentsInUse < inUse)
        expectEqual(open.log.start, open.position(after: 25))
        try expectEqual(open.reader(after: 25).take(), Array(all[25...]))
        let error = #expect(throws: StorageError.self) { try open.reader(after: 3).take() }
        expectEqual(error?.code, .versionTooOld)
        open.log.trim(before: open.position(after: 40))
        // The segment being written stays.
        expectEqual(open.log.statistics.segmentsInUse, 1)
        try expectEqual(open.reader(after: 40).take(), [])
        try open.commit(Self.records(41...42))
        try expectEqual(open.reader(after: 40).take(), Self.records(41...42))
    }

    @Test
    func `What a follower has not taken is not trimmed, up to its bound and together with other holds`() throws {
        let all = Self.records(1...40, bytes: 2_000)
        let open = try OpenLog(directory.path, heldBytesMax: 64 << 20, followedBytesMax: 5 * 16 << 10)
        func trim(after version: UInt64) {
            open.log.trim(before: open.log.trimPosition(after: CommitVersion(microseconds: version)))
        }
        open.log.hold(.archive, after: CommitVersion(microseconds: 40))
        expect(!open.log.isHeld)
        for record in all { try open.commit([record]) }
        open.log.hold(.follower(7), after: CommitVersion(microseconds: 20))
        open.log.hold(.follower(8), after: CommitVersion(microseconds: 30))
        expect(open.log.isHeld)
        trim(after: 40)
        try expectEqual(open.reader(after: 20).take(), Array(all[20...]))
        // One that has gone may come back.
        open.log.leave(.follower(7), stream: 0)
        trim(after: 40)
        try expectEqual(open.reader(after: 20).take(), Array(all[20...]))
        open.log.hold(.follower(7), after: CommitVersion(microseconds: 40))
        trim(after: 40)
        try expectEqual(open.reader(after: 30).take(), Array(all[30...]))
        try expect(open.log.base().microseconds > 20)
        // Beyond the bound it is trimmed all the same.
        for record in Self.records(41...100, bytes: 2_000) { try open.commit([record]) }
        open.log.hold(.archive, after: CommitVersion(microseconds: 100))
        trim(after: 100)
        let error = #expect(throws: StorageError.self) { try open.reader(after: 40).take() }
        expectEqual(error?.code, .versionTooOld)
    }

    @Test
    func `The last stream of a follower says what is kept, also if an earlier one ends after it has begun`() throws {
        let holds = LogHolds()
        let follower = LogHolder.follower(7)
        func hold(stream: UInt64, after version: UInt64) {
            holds.hold(follower, stream: stream, after: CommitVersion(microseconds: version), bytesMax: 1 << 20)
        }
        func kept(atMilliseconds now: UInt64) -> [UInt64] {
            holds.all(nowMilliseconds: now).map(\.version.microseconds)
        }
        hold(stream: 1, after: 10)
        hold(stream: 1, after: 40)
        // What the first stream has sent last did not arrive.
        hold(stream: 2, after: 30)
        expectEqual(kept(atMilliseconds: 0), [30])
        hold(stream: 1, after: 50)
        holds.leave(follower, stream: 1, nowMilliseconds: 0)
        expectEqual(kept(atMilliseconds: LogHolds.awayMillisecondsMax), [30])
        hold(stream: 2, after: 20)
        expectEqual(kept(atMilliseconds: LogHolds.awayMillisecondsMax), [30])
        holds.leave(follower, stream: 2, nowMilliseconds: 0)
        expectEqual(kept(atMilliseconds: LogHolds.awayMillisecondsMax - 1), [30])
        expectEqual(kept(atMilliseconds: LogHolds.awayMillisecondsMax), [])
    }

    @Test
    func `What an archive has not taken is not trimmed, up to a bound`() throws {
        let all = Self.records(1...40, bytes: 2_000)
        let open = try OpenLog(directory.path, heldBytesMax: 5 * 16 << 10)
        func trim(after version: UInt64) {
            open.log.trim(before: open.log.trimPosition(after: CommitVersion(microseconds: version)))
        }
        for record in all[..<20] { try open.commit([record]) }
        trim(after: 20)
        expect(open.log.isHeld)
        try expectEqual(open.reader(after: 0).take(), Array(all[..<20]))
        open.log.hold(.archive, after: CommitVersion(microseconds: 12))
        // It does not go back.
        open.log.hold(.archive, after: CommitVersion(microseconds: 3))
        trim(after: 20)
        try expectEqual(open.reader(after: 12).take(), Array(all[12..<20]))
        try expect(open.log.base().microseconds > 0)
        open.log.hold(.archive, after: CommitVersion(microseconds: 20))
        expect(!open.log.isHeld)
        for record in all[20...] { try open.commit([record]) }
        trim(after: 25)
        try expectEqual(open.reader(after: 20).take(), Array(all[20...]))
        // 17 records of 2,000 bytes take more than four segments, 20 more than five.
        for record in Self.records(41...80, bytes: 2_000) { try open.commit([record]) }
        trim(after: 80)
        let error = #expect(throws: StorageError.self) { try open.reader(after: 20).take() }
        expectEqual(error?.code, .versionTooOld)
        expectEqual(open.log.statistics.segmentsInUse, 1)
    }

    @Test
    func `A reader whose records are trimmed and written over gives right records, then an error`() throws {
        let open = try OpenLog(directory.path)
        var version: UInt64 = 0
        func commit(_ count: Int) throws {
            for _ in 0..<count {
                version += 1
                try open.commit(Self.records(version...version, bytes: 3_000))
            }
        }
        try commit(12)
        let readers = [0, 1, 5, 9].map { open.reader(after: UInt64($0)) }
        for (index, first) in [0, 1, 5, 9].enumerated() {
            try expectEqual(readers[index].take(1).map(\.version), [UInt64(first + 1)])
        }
        // Every file has another life.
        for _ in 0..<10 {
            try commit(5)
            open.log.trim(before: open.position(after: version))
        }
        for (index, first) in [0, 1, 5, 9].enumerated() {
            var last = UInt64(first + 1)
            let error = #expect(throws: StorageError.self) {
                while let seen = try readers[index].take(1).first {
                    last += 1
                    expectEqual(seen, Self.records(last...last, bytes: 3_000)[0])
                }
            }
            expectEqual(error?.code, .versionTooOld)
            // It stays so.
            #expect(throws: StorageError.self) { try readers[index].next() }
        }
        try expectEqual(open.reader(after: version).take(), [])
    }

    @Test
    func `A damaged group ends reading with its file and offset, after all records before it`() throws {
        let all = Self.records(1...12, bytes: 500)
        let open = try OpenLog(directory.path)
        for record in all { try open.commit([record]) }
        let path = directory.path(of: LogFormat.fileName(sequence: 1))
        let whole = Files.read(path)
        var offset = LogFormat.framesStart
        let nonce = whole.withUnsafeBytes { SegmentHeader($0)!.nonce }
        for number in 0..<12 {
            let frame = try #require(
                whole.withUnsafeBytes { LogFrameHeader(segment: $0, at: offset, nonce: nonce) })
            for place in [0, 9, 17, 25, 33, 49, 60, frame.frameBytes / 2] {
                var bytes = whole
                bytes[offset + place] ^= 0x20
                Files.write(bytes, to: path)
                let reader = open.reader(after: 0)
                try expectEqual(reader.take(number), Array(all[..<number]))
                let error = #expect(throws: StorageError.self) { try reader.next() }
                expect(error?.code == .corrupt && error?.file == path && error?.offset == offset)
            }
            offset += frame.frameBytes
        }
        Files.write(whole, to: path)
        try expectEqual(open.reader(after: 0).take(), all)
    }

    @Test
    func `A group that is not durable is not given, and a failed sync is final`() throws {
        let isFailing = Atomic(false)
        let entered = DispatchSemaphore(value: 0)
        let mayEnd = DispatchSemaphore(value: 0)
        let open = try OpenLog(directory.path) { operation in
            guard operation == .syncLog, isFailing.load(ordering: .acquiring) else { return 0 }
            entered.signal()
            mayEnd.wait()
            return EIO
        }
        try open.commit(Self.records(1...2))
        let reader = open.reader(after: 0)
        try expectEqual(reader.take().map(\.version), [1, 2])
        isFailing.store(true, ordering: .releasing)
        for record in Self.records(3...4) { try open.append(record) }
        try expectEqual(reader.take(), [])
        let result = Monitor<Result<CommitVersion, StorageError>?>(nil)
        open.appender.synchronize(open.appender.seal()) { outcome in result.withLock { $0 = outcome } }
        try entered.wait(until: "the group is written, and its sync has begun")
        expect(open.appender.isBusy)
        try expectEqual(reader.take(), [])
        mayEnd.signal()
        open.log.waitUntilIdle()
        #expect(throws: StorageError.self) { try result.withLock { $0 }?.get() }
        expectEqual(open.allOutcomes, ["2", "failed"])
        expectEqual(open.log.durableVersion.microseconds, 2)
        try expectEqual(reader.take(), [])
    }

    @Test(arguments: CaseShare.of(UInt64(1)...12, 4))
    func `Random groups, trims, readers and restarts give the records of the model`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var all: [Seen] = []
        /// What the engine would have made durable: records up to here are not needed, and where the log begins.
        var checkpoint: UInt64 = 0
        var start: UInt64 = 0
        for _ in 0..<4 {
            let open = try OpenLog(directory.path, from: start, after: checkpoint)
            expectEqual(open.recovered, all.filter { $0.version > checkpoint }, "seed \(seed)")
            start = try #require(open.log.start).segment
            var followers: [(reader: LogRecords, next: Int)] = []
            for _ in 0..<60 {
                switch random.below(10) {
                case 0:
                    checkpoint = max(checkpoint, all.isEmpty ? 0 : random.pick(all.suffix(8)).version)
                    let position = open.position(after: checkpoint)
                    start = position.segment
                    open.log.trim(before: position)
                case 1: followers.append((open.reader(after: all.last?.version ?? 0), all.count))
                case 2, 3: for index in followers.indices { try follow(&followers[index], all, random.below(9)) }
                case 4: for index in followers.indices { try followGroups(&followers[index], all, random.below(4)) }
                default:
                    var group: [Seen] = []
                    var last = all.last?.version ?? 0
                    for _ in 0...random.below(4) {
                        last += 1 + UInt64(random.below(3))
                        let count = random.oneIn(30) ? 40_000 : random.below(random.oneIn(3) ? 6_000 : 200)
                        group.append(
                            Seen(version: last, bytes: Bytes(repeating: UInt8(random.below(256)), count: count)))
                    }
                    try open.commit(group, onLogThread: random.oneIn(2))
                    all += group
                }
            }
            try expectEqual(open.reader(after: checkpoint).take(), all.filter { $0.version > checkpoint })
        }
    }

    /// Reads up to `count` records; what was trimmed is skipped.
    private func follow(_ follower: inout (reader: LogRecords, next: Int), _ all: [Seen], _ count: Int) throws {
        do throws(StorageError) {
            let seen = try follower.reader.take(count)
            expectEqual(seen, Array(all[follower.next...].prefix(count)))
            follower.next += seen.count
        } catch {
            expectEqual(error.code, .versionTooOld)
        }
    }

    /// Reads up to `count` groups, the rest of one that was begun among them; what was trimmed is skipped.
    private func followGroups(_ follower: inout (reader: LogRecords, next: Int), _ all: [Seen], _ count: Int) throws {
        do throws(StorageError) {
            let seen = try follower.reader.takeGroups(count)
            expectEqual(seen, Array(all[follower.next...].prefix(seen.count)))
            expect(count == 0 || !seen.isEmpty || follower.next == all.count)
            follower.next += seen.count
        } catch {
            expectEqual(error.code, .versionTooOld)
        }
    }
}
