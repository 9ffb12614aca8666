// Reads that meet pages of runs which are not in memory: pending, until threads of the engine have read the pages.

import Basics
import EngineTestSupport
import Glibc
import Storage
import StorageEngines
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.timeLimit(.minutes(20)))
struct ColdReadTests {
    /// Documents and index entries, some with values that lie apart from their keys.
    private static let changes: [Change] = (0..<3_000).map { number in
        let space: UInt8 = number % 3 == 0 ? 0x20 : 0x10
        let length = number % 97 == 0 ? 20_000 : number % 50
        return Change(
            key: [space] + Bytes("k\(1_000_000 + number * 7)".utf8),
            value: Bytes(repeating: UInt8(number % 251), count: length))
    }

    private static var options: EngineOptions {
        var options = EngineOptions.small
        options.meetsPagesCold = true
        options.idleCheckpointMicroseconds = 0
        return options
    }

    /// An engine whose entries are all in runs.
    private static func store(_ directory: TemporaryDirectory, _ options: EngineOptions = options) throws -> Store {
        let store = try Store(directory.path, options)
        var version: UInt64 = 0
        for start in stride(from: 0, to: changes.count, by: 500) {
            version += 1
            try store.commit(version, Array(changes[start..<start + 500]))
            try store.engine.checkpointNow()
        }
        return store
    }

    /// Waits for what a reader's reads lacked.
    private static func wait(_ reader: EngineReader) throws(StorageError) {
        let outcome = Monitor<Result<Void, StorageError>?>(nil)
        reader.whenReady { ready in outcome.update { $0 = ready } }
        try outcome.wait { $0 }.get()
    }

    private static func isPending(_ key: Bytes, _ reader: EngineReader) -> Bool {
        do throws(StorageError) {
            let snapshot = try reader.snapshot(at: nil, .pends)
            _ = try snapshot.value(forKey: key.span.bytes)
            return false
        } catch {
            return error.code == .pending
        }
    }

    /// Reads a key, and repeats that as often as it is pending.
    private static func value(_ key: Bytes, _ reader: EngineReader, _ waits: inout Int) throws -> Bytes? {
        while true {
            do throws(StorageError) {
                let snapshot = try reader.snapshot(at: nil, .pends)
                guard let value = try snapshot.value(forKey: key.span.bytes) else { return nil }
                return value.bytes.withUnsafeBytes { Bytes($0) }
            } catch {
                guard error.code == .pending else { throw error }
            }
            waits += 1
            try wait(reader)
        }
    }

    /// Walks a range, and continues after the last key as often as a step is pending.
    private static func keys(
        _ reader: EngineReader, _ direction: ScanDirection, _ waits: inout Int
    ) throws -> [Bytes] {
        var keys: [Bytes] = []
        while true {
            do throws(StorageError) {
                let snapshot = try reader.snapshot(at: nil, .pends)
                let last = keys.last
                let lower = direction == .forward ? last.map { $0 + [0] } ?? [0] : [0]
                let upper = direction == .forward ? [0xF0] : last ?? [0xF0]
                var cursor = try snapshot.cursor(from: lower.span.bytes, to: upper.span.bytes, direction: direction)
                while try cursor.next() { keys.append(cursor.key.withUnsafeBytes { Bytes($0) }) }
                return keys
            } catch {
                guard error.code == .pending else { throw error }
            }
            waits += 1
            try wait(reader)
        }
    }

    @Test
    func `Pages that are met for the first time are waited for, and then every key has its value`() throws {
        let directory = TemporaryDirectory()
        let store = try Self.store(directory)
        let reader = try store.engine.makeReader()
        var waits = 0
        for change in Self.changes {
            try expectEqual(Self.value(change.key, reader, &waits), change.value)
            try expectNil(Self.value(change.key + [1], reader, &waits))
        }
        expect(waits > 0)
        let first = waits
        for change in Self.changes { _ = try Self.value(change.key, reader, &waits) }
        expectEqual(waits, first, "a page was waited for a second time")
        try store.engine.close()
    }

    @Test(arguments: [ScanDirection.forward, .backward])
    func `A walk that was pending continues after its last key`(direction: ScanDirection) throws {
        let directory = TemporaryDirectory()
        let store = try Self.store(directory)
        let reader = try store.engine.makeReader()
        var waits = 0
        let expected = Self.changes.map(\.key).sorted { $0.lexicographicallyPrecedes($1) }
        let found = try Self.keys(reader, direction, &waits)
        expectEqual(found, direction == .forward ? expected : expected.reversed())
        expect(waits > 0)
        try store.engine.close()
    }

    @Test
    func `What a read waits for may be merged meanwhile`() throws {
        let directory = TemporaryDirectory()
        let store = try Self.store(directory)
        let reader = try store.engine.makeReader()
        let key = Self.changes[1].key
        expect(Self.isPending(key, reader))
        try store.engine.sweepHistoryNow()
        try Self.wait(reader)
        var waits = 0
        try expectEqual(Self.value(key, reader, &waits), Self.changes[1].value)
        try store.engine.close()
    }

    @Test
    func `A page that cannot be read fails the reads that wait for it, and no others`() throws {
        let directory = TemporaryDirectory()
        let fault = Flag()
        var options = Self.options
        options.fault = { $0 == .readPages && fault.isSet ? EIO : 0 }
        let store = try Self.store(directory, options)
        let reader = try store.engine.makeReader()
        var waits = 0
        let (good, bad) = (Self.changes[1], Self.changes[2_999])
        try expectEqual(Self.value(good.key, reader, &waits), good.value)
        fault.set(true)
        do {
            _ = try Self.value(bad.key, reader, &waits)
            Issue.record("a page that cannot be read was read")
        } catch let error as StorageError {
            expectEqual(error.code, .corrupt)
            expect(error.file != nil)
        }
        try expectEqual(Self.value(good.key, reader, &waits), good.value)
        fault.set(false)
        try expectEqual(Self.value(bad.key, reader, &waits), bad.value)
        try store.engine.close()
    }

    @Test
    func `Only so many reads wait, and those that wait when the engine is closed get an answer`() throws {
        let directory = TemporaryDirectory()
        let gate = Monitor((isOpen: false, reached: 0))
        var options = Self.options
        options.waitingReadsMax = 2
        options.pageThreadsMax = 1
        options.fault = { operation in
            guard operation == .readPages else { return 0 }
            gate.update { $0.reached += 1 }
            gate.wait { $0.isOpen ? () : nil }
            return 0
        }
        let store = try Self.store(directory, options)
        let outcomes = Monitor<[Int: Result<Void, StorageError>]>([:])
        for number in 0..<3 {
            let reader = try store.engine.makeReader()
            expect(Self.isPending(Self.changes[1].key, reader))
            reader.whenReady { ready in outcomes.update { $0[number] = ready } }
        }
        gate.wait { $0.reached > 0 ? () : nil }
        let refused = outcomes.wait { $0[2] }
        #expect(throws: StorageError(.tooManyReaders, "too many reads wait for a disk")) { try refused.get() }
        // The page that is being read is waited for; the others are not begun.
        let closing = try SystemThread(name: "closing") { try? store.engine.close() }
        _ = outcomes.wait { $0[1] }
        gate.update { $0.isOpen = true }
        closing.join()
        let all = outcomes.withLock { $0 }
        expectEqual(all.count, 3)
        #expect(throws: (any Error).self) { try all[1]?.get() }
    }

    @Test
    func `Pages that the kernel dropped are found, and waited for`() throws {
        let directory = TemporaryDirectory()
        var options = Self.options
        options.meetsPagesCold = false
        do {
            let store = try Self.store(directory, options)
            try store.engine.close()
        }
        let store = try Store(directory.path, options)
        let reader = try store.engine.makeReader()
        guard case .embedded(let engine) = store.engine else { preconditionFailure("the engine has a directory") }
        let dropped = engine.core.runs.files.reduce(0) { $0 + $1.part.dropPages() }
        var waits = 0
        for change in Self.changes { try expectEqual(Self.value(change.key, reader, &waits), change.value) }
        // A file system in memory drops nothing.
        expectEqual(waits > 0, dropped > 0)
        let before = waits
        _ = engine.core.runs.files.reduce(0) { $0 + $1.part.dropPages() }
        for file in engine.core.runs.files { file.part.sweep() }
        for change in Self.changes { try expectEqual(Self.value(change.key, reader, &waits), change.value) }
        expectEqual(waits > before, dropped > 0)
        try store.engine.close()
    }
}

extension RunPart {
    /// Has the kernel drop the pages of the file with the data, as far as it can.
    /// - Returns: pages that are not in memory then.
    fileprivate func dropPages() -> Int {
        let path = path(of: .ahead(0..<0))
        madvise(UnsafeMutableRawPointer(mutating: base), byteCount, MADV_DONTNEED)
        let descriptor = open(path, O_RDONLY)
        defer { close(descriptor) }
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
        return stride(from: 0, to: byteCount, by: 4096).count {
            !Self.isResident(UnsafeRawBufferPointer(start: base + $0, count: 1))
        }
    }
}
