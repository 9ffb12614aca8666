// Writes of liblmdb that fail, each of them in turn.

import Basics
import CWriteFaults
import EngineTestSupport
import Glibc
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.serialized, .timeLimit(.minutes(20)))
struct DocumentWriteFaultTests {
    let directory = TemporaryDirectory()
    private static let errors = [EIO, ENOSPC, Int32(SHORT_WRITE)]
    /// What they may be for the engine. LMDB does not always say why a write was short.
    private static func codes(_ error: Int32) -> [StorageError.Code] {
        error == ENOSPC ? [.full] : error == EIO ? [.inputOutput] : [.full, .inputOutput]
    }
    /// Counts writes and lets all of them through.
    private static let none = (count: Int32.max, error: EIO)

    @Test(arguments: errors)
    func `A file whose writing fails at any write ends in an error, and can be written again`(error: Int32) throws {
        // Three transactions.
        let entries = (0..<300).map { number in
            let name = Bytes("\u{10}\(10_000 + number)".utf8)
            return RunEntry(key: name, version: 1, value: Bytes(repeating: UInt8(number & 255), count: 64 << 10))
        }
        fail_lmdb_writes(Self.none.count, Self.none.error)
        defer { fail_lmdb_writes(0, 0) }
        try TestRun.write(entries, in: directory.path, number: 1, kind: .documents)
        let writes = lmdb_write_count()
        expect(writes >= 6)
        for number in CaseShare.of(Array(0..<writes), 12) {
            fail_lmdb_writes(number, error)
            let failure = #expect(throws: StorageError.self, "write \(number)") {
                try TestRun.write(entries, in: directory.path, number: 2, kind: .documents)
            }
            expectEqual(failure.map { Self.codes(error).contains($0.code) }, true, "write \(number)")
        }
        fail_lmdb_writes(0, 0)
        let run = try TestRun(entries, in: directory.path, number: 3, kind: .documents)
        try expectEqual(run.entries(), entries)
    }

    private func changes(_ version: UInt64) -> [Change] {
        (0..<300).map { number in
            let key = Bytes([0x10]) + Bytes("\((Int(version) * 7 + number) % 500)".utf8) + [0]
            return Change(key: key, value: Bytes(repeating: UInt8(version), count: number % 90 == 0 ? 9_000 : 300))
        }
    }

    @Test(arguments: CaseShare.of(errors, 2))
    func `A checkpoint or merge that fails at any write loses nothing, and succeeds later`(error: Int32) throws {
        defer { fail_lmdb_writes(0, 0) }
        var number: Int32 = 0
        var hasFailed = true
        while hasFailed {
            let path = directory.path(of: "\(error)-\(number)")
            hasFailed = try failing(path, after: number, error)
            // All writes of the first checkpoint, and some of those after it.
            number += number < 8 ? 1 : 5
        }
        expect(number > 8)
    }

    /// Commits, writes and merges with writes that fail after so many.
    /// - Returns: whether one has failed.
    private func failing(_ path: String, after count: Int32, _ error: Int32) throws -> Bool {
        var options = EngineOptions.small
        options.retryMicroseconds = 1_000
        options.retentionMicroseconds = 0
        options.clock = { 1_000 }
        let store = try Store(path, options)
        var model = Model()
        var hasFailed = false
        for version in 1...4 as ClosedRange<UInt64> {
            do throws(StorageError) {
                try store.commit(version, changes(version))
                model.commit(version, changes(version))
            } catch {
                // On a full disk commits are refused until files can be written.
                expect(error.code == .full && hasFailed, "\(error)")
            }
            if version == 1 { fail_lmdb_writes(count, error) }
            do throws(StorageError) {
                if version < 4 { try store.engine.checkpointNow() } else { try store.engine.sweepHistoryNow() }
            } catch {
                expect(error.code == .inputOutput || error.code == .full, "\(error)")
                hasFailed = true
            }
            expect(!store.engine.statistics.hasFailed)
            try expectEqual(store.scan(), model.entries([], [255], at: version, .forward))
        }
        fail_lmdb_writes(0, 0)
        try waitUntil("files are written again") { (try? store.engine.checkpointNow()) != nil }
        try waitUntil("runs are merged") { (try? store.engine.sweepHistoryNow()) != nil }
        try expectEqual(store.scan(), model.entries([], [255], at: 4, .forward))
        try store.engine.close()
        try expectClean(path)
        return hasFailed
    }
}
