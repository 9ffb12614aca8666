// Files of runs that cannot be written for a while: nothing is lost, what is accepted is kept, and what is refused is
// refused with the truth.

import Basics
import EngineTestSupport
import Glibc
import Storage
import Synchronization
import TestSupport
import Testing

@testable import EmbeddedEngine
@testable import FileSystem

/// The files of runs of a directory, of which chosen changes fail.
private final class FailingDisk: Sendable {
    private struct State {
        var paths: [Int32: String] = [:]
        var count = 0
        var failing = 0..<0
        var failed: [String] = []
    }

    private let state = Mutex(State())
    private let watch = Mutex<DiskWatch?>(nil)

    /// - Parameter directory: its runs are watched until `end`.
    init(_ directory: String) {
        let began = DiskWatch.begin(directory + "/runs") { [self] change, call in
            if case .close(let descriptor) = change { state.withLock { $0.paths[descriptor] = nil } }
            guard let status = status(change) else {
                let result = call()
                if case .open(let path, _, _, _) = change, result >= 0 {
                    state.withLock { $0.paths[Int32(result)] = path }
                }
                return result
            }
            errno = status
            return -1
        }
        watch.withLock { $0 = began }
    }

    func end() { watch.withLock { $0.take()?.end() } }

    /// From now on these changes fail, counted from the first one after this call.
    func fail(_ changes: Range<Int>) {
        state.withLock { state in
            state.count = 0
            state.failing = changes
        }
    }

    var count: Int { state.withLock { $0.count } }
    var failed: [String] { state.withLock { $0.failed } }

    /// What a change fails with, if it does. Space and reading are not concerned.
    private func status(_ change: DiskChange) -> Int32? {
        state.withLock { state in
            let what: String
            var status = EIO
            switch change {
            case .open(let path, _, let creates, _):
                if path.hasSuffix("/space") { return nil }
                what = (creates ? "create " : "open ") + path
                status = EMFILE
            case .write(let descriptor, _, _): what = "write \(state.paths[descriptor] ?? "")"
            case .sync(let descriptor): what = "sync \(state.paths[descriptor] ?? "")"
            case .rename(let path, _): what = "rename \(path)"
            case .link(let path, _): what = "link \(path)"
            case .removeFile(let path): what = "remove \(path)"
            case .resize, .close, .makeDirectory, .removeDirectory, .exchange: return nil
            }
            if what.hasSuffix("/space") { return nil }
            defer { state.count += 1 }
            guard state.failing.contains(state.count) else { return nil }
            state.failed.append(what)
            return status
        }
    }
}

@Suite(.timeLimit(.minutes(20)))
struct RetryTests {
    let directory = TemporaryDirectory()

    private static let options: EngineOptions = {
        var options = EngineOptions.small
        options.runFileBytesMax = 8 << 10
        options.retryMicroseconds = 1_000
        options.retentionMicroseconds = 0
        options.sweepPauseMicroseconds = 1 << 40
        return options
    }()

    private func changes(_ version: UInt64) -> [Change] {
        (0..<60).map { number in
            Change(key: Bytes("key \(number)".utf8), value: Bytes(repeating: UInt8(version), count: 100))
        }
    }

    private func expectLast(_ directory: String, _ last: UInt64, _ what: String) throws {
        try expectClean(directory)
        let store = try Store(directory)
        expectEqual(store.engine.publishedVersion.microseconds, last, "\(what)")
        let entries = try store.scan()
        expectEqual(entries.map(\.version), Array(repeating: last, count: 60), "\(what)")
        expect(entries.allSatisfy { $0.value == Bytes(repeating: UInt8(last), count: 100) }, "\(what)")
        try store.engine.close()
        let runs = directory + "/runs"
        let named = try Manifest.read(in: runs).runs.flatMap(\.parts).flatMap {
            RunFormat.fileNames($0.file, $0.kind)
        }
        expectEqual(Files.names(in: runs).sorted(), (named + ["MANIFEST", "space"]).sorted(), "\(what)")
    }

    /// Checkpoints and merges, each until it succeeds, with commits in between.
    private func work(_ store: Store, _ last: inout UInt64) throws {
        for _ in 0..<3 {
            last += 1
            try store.commit(last, changes(last))
            try waitUntil("a checkpoint succeeds") { (try? store.engine.checkpointNow()) != nil }
        }
        try waitUntil("a merge succeeds") { (try? store.engine.sweepHistoryNow()) != nil }
        last += 1
        try store.commit(last, changes(last))
    }

    @Test
    func `A failure of any one change of the files, in a checkpoint or a merge, delays it and loses nothing`() throws {
        var total = 1
        var kinds: Set<Substring> = []
        var number = 0
        while number < total {
            let path = directory.path(of: "\(number)")
            let disk = FailingDisk(path)
            let store = try Store(path, Self.options)
            disk.fail(number..<(number + 1))
            var last: UInt64 = 0
            try work(store, &last)
            total = max(total, disk.count)
            let failed = disk.failed
            disk.fail(0..<0)
            expect(!store.engine.statistics.hasFailed, "\(failed)")
            // Names that could not be removed stay; a failed close of a file is not one of them.
            let isHarmless = failed.isEmpty || failed[0].hasPrefix("remove")
            expect(isHarmless || store.engine.statistics.failedAttempts > 0, "\(failed)")
            try store.engine.close()
            disk.end()
            for what in failed { kinds.insert(what.prefix { $0 != " " }) }
            try expectLast(path, last, "change \(number): \(failed)")
            Files.remove(path)
            number += 1
        }
        expectEqual(kinds, ["create", "open", "write", "sync", "rename", "remove"])
    }

    @Test
    func `While files fail, commits are accepted as long as memory has room, then refused; later all is well`() throws {
        let disk = FailingDisk(directory.path)
        var options = Self.options
        options.memtableBytesMax = 100 << 10
        let store = try Store(directory.path, options)
        var last: UInt64 = 1
        try store.commit(last, changes(last))
        disk.fail(0..<Int.max)
        #expect(throws: StorageError.self) { try store.engine.checkpointNow() }
        expectEqual(store.engine.statistics.writeFailure?.code, .inputOutput)
        expectNil(store.engine.statistics.refusal)
        expect(store.engine.recentWriteFailure != nil)
        var refusal: StorageError?
        while refusal == nil, last < 1_000 {
            do throws(StorageError) {
                try store.commit(last + 1, changes((last + 1) % 250))
                last += 1
            } catch {
                refusal = error
            }
        }
        // Two memtables and more, but not without bound.
        expect(last > 10 && last < 100)
        expectEqual(refusal?.code, .refused)
        expect(!store.writer.hasStaged)
        let statistics = store.engine.statistics
        expectEqual(statistics.refusal?.code, .inputOutput)
        expect(statistics.failedAttempts > 0)
        expect(!statistics.hasFailed && !statistics.isFull)
        expect(statistics.memtableBytes < 5 * options.memtableBytesMax)
        try expectEqual(store.scan().count, 60)
        let accepted = last
        disk.fail(0..<0)
        try waitUntil("a commit is accepted") { (try? store.commit(accepted + 1, changes(accepted + 1))) != nil }
        try store.engine.checkpointNow()
        expectNil(store.engine.statistics.writeFailure)
        try store.engine.close()
        disk.end()
        try expectLast(directory.path, accepted + 1, "")
    }

    @Test
    func `A close while files fail keeps everything in the log; one after they have failed writes it`() throws {
        let disk = FailingDisk(directory.path)
        var options = Self.options
        // Longer than the test: only the close tries again.
        options.retryMicroseconds = 1 << 40
        do {
            let store = try Store(directory.path, options)
            try store.commit(1, changes(1))
            disk.fail(0..<Int.max)
            #expect(throws: StorageError.self) { try store.engine.checkpointNow() }
            let error = #expect(throws: StorageError.self) { try store.engine.close() }
            expectEqual(error?.code, .inputOutput)
        }
        disk.fail(0..<0)
        do {
            let store = try Store(directory.path, options)
            expectEqual(store.replayed, [1])
            try store.commit(2, changes(2))
            disk.fail(0..<Int.max)
            #expect(throws: StorageError.self) { try store.engine.checkpointNow() }
            disk.fail(0..<0)
            try store.engine.close()
        }
        let store = try Store(directory.path, options)
        expectEqual(store.replayed, [])
        try store.engine.close()
        disk.end()
        try expectLast(directory.path, 2, "")
    }

    @Test
    func `Without a descriptor for a log segment commits are refused as not applied, and accepted when there is one`()
        throws
    {
        // Nor for a run: else a checkpoint may free segments in time.
        let faults = Faults([.allocateSegment, .commitRun], EMFILE)
        var options = Self.options
        options.fault = faults.injection
        let store = try Store(directory.path, options)
        var last: UInt64 = 1
        try store.commit(last, changes(last))
        faults.isOn.store(true, ordering: .releasing)
        var refusal: StorageError?
        while refusal == nil, last < 200 {
            do throws(StorageError) {
                try store.commit(last + 1, changes(last + 1))
                last += 1
            } catch {
                refusal = error
            }
        }
        expectEqual(refusal?.code, .refused)
        expect(!store.engine.statistics.isFull)
        expectNil(store.engine.shortage)
        expectEqual(store.engine.statistics.refusal?.code, .inputOutput)
        faults.isOn.store(false, ordering: .releasing)
        let accepted = last
        try waitUntil("a commit is accepted") { (try? store.commit(accepted + 1, changes(accepted + 1))) != nil }
        try store.engine.close()
        try expectLast(directory.path, accepted + 1, "")
    }

    @Test
    func `A client learns whether its commit was applied, was not, or may have been`() {
        let unknown = RequestError(StorageError(.failed, "the log cannot be written: why"))
        expect(unknown.code == .unavailable && unknown.message.contains("the outcome is unknown"))
        let failure = StorageError(.failed, "the log cannot be written: why")
        let writeFailure = StorageError(.inputOutput, "cannot open: Too many open files", file: "/a/b")
        for refused in [failure.asFinalRefusal, writeFailure.asRefusal] {
            let refusal = RequestError(refused)
            expectEqual(refusal.code, .unavailable)
            expect(refusal.message.hasPrefix("The commit was not applied: "))
            expect(!refusal.message.contains("unknown") && !refusal.message.contains("/a/b"))
        }
        // These say it themselves.
        for code in [StorageError.Code.full, .closed, .valueTooLong] {
            expectEqual(StorageError(code, "").asRefusal.code, code)
        }
    }
}
