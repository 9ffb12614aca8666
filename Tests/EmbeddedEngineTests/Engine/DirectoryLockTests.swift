// The lock of a data directory, whose file may be removed by the one that has it.

import EngineTestSupport
import Foundation
import Glibc
import Storage
import StorageEngines
import Synchronization
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct DirectoryLockTests {
    @Test
    func `One thread at a time has the lock, although each removes the file before it gives the lock back`() {
        let directory = TemporaryDirectory("lock")
        let path = directory.path
        let holders = Atomic(0)
        let conflicts = Atomic(0)
        let taken = Atomic(0)
        DispatchQueue.concurrentPerform(iterations: 4) { _ in
            for _ in 0..<5_000 {
                guard let lock = try? DirectoryFormat.lock(path) else { continue }
                taken.add(1, ordering: .relaxed)
                if holders.add(1, ordering: .sequentiallyConsistent).newValue > 1 {
                    conflicts.add(1, ordering: .relaxed)
                }
                sched_yield()
                holders.subtract(1, ordering: .sequentiallyConsistent)
                // The last that it does with the directory.
                unlink("\(path)/LOCK")
                lock.unlock()
            }
        }
        expectEqual(conflicts.load(ordering: .relaxed), 0)
        expect(taken.load(ordering: .relaxed) > 0)
    }

    /// The files in a directory and below, by their paths in it.
    private static func files(in path: String) throws -> [String: Data] {
        let names = try #require(FileManager.default.enumerator(atPath: path)).compactMap { $0 as? String }
        var files: [String: Data] = [:]
        for name in names { files[name] = FileManager.default.contents(atPath: "\(path)/\(name)") }
        return files
    }

    @Test
    func `An engine whose directory was moved away changes nothing in the one that took its place`() throws {
        let directory = TemporaryDirectory("moved")
        let (data, moved) = (directory.path(of: "data"), directory.path(of: "moved"))
        var options = EngineOptions.small
        options.memtableBytesMax = 64 << 10
        options.retryMicroseconds = 1_000
        let value = String(repeating: "x", count: 4 << 10)
        let first = try Store(data, options)
        for version in 1...40 as ClosedRange<UInt64> { try first.commit(version, [.put("old\(version)", value)]) }
        try first.engine.checkpointNow()
        expectEqual(rename(data, moved), 0)
        let second = try Store(data, options)
        for version in 1...20 as ClosedRange<UInt64> { try second.commit(version, [.put("new\(version)", value)]) }
        try second.engine.close()
        let before = try Self.files(in: data)

        // Until the segments that it has are full.
        var last: UInt64 = 40
        var refusal: StorageError?
        while refusal == nil, last < 2_000 {
            do {
                try first.commit(last + 1, [.put("old\(last + 1)", value)])
                last += 1
            } catch {
                refusal = error
            }
        }
        expectEqual(refusal?.message.contains("was moved or removed"), true, "\(String(describing: refusal))")
        #expect(throws: StorageError.self) { try first.engine.checkpointNow() }
        #expect(throws: StorageError.self) { try first.engine.backup(to: directory.path(of: "backup")) }
        try? first.engine.close()
        try expectEqual(Self.files(in: data), before)
        try expectClean(data)

        try expectClean(moved)
        let again = try Store(moved, options)
        for version in 1...last { try expect(again.get("old\(version)") != nil, "\(version)") }
        try again.engine.close()
    }
}
