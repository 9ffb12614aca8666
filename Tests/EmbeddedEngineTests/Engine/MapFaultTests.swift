// Files of runs that are cut under an engine, and pages that the disk cannot read: a call that needs them reports
// damage, others are served, nothing wrong is, and the process lives.

import Basics
import EngineTestSupport
import Glibc
import Storage
import StorageEngines
import Synchronization
import TestSupport
import Testing

@testable import EmbeddedEngine

/// A store whose runs have all kinds of entries, in several files.
private final class FaultingStore {
    let directory: TemporaryDirectory
    /// For backups.
    let copies: TemporaryDirectory
    let store: Store
    let keys: [Bytes]
    let expected: [Bytes: Bytes]

    init(fileBytes: Int, on medium: TemporaryDirectory.Medium = .memory) throws {
        directory = TemporaryDirectory(on: medium)
        copies = TemporaryDirectory(on: medium)
        var options = EngineOptions.small
        options.runFileBytesMax = fileBytes
        options.scannedSpaces = 0x20...0x22
        options.retentionMicroseconds = 0
        options.sweepPauseMicroseconds = 1 << 40
        store = try Store(directory.path, options)
        var random = SeededGenerator(seed: 11)
        var expected: [Bytes: Bytes] = [:]
        var changes: [Change] = []
        for number in 0..<450 {
            // Long prefixes, and values of many pages.
            let space: UInt8 = number % 3 == 0 ? 0x21 : 0x10
            let key =
                [space] + Bytes(repeating: 1, count: number % 7 == 0 ? 300 : 3) + Bytes("key \(number)".utf8) + [0]
            let length = number % 90 == 0 ? 9_000 + number : random.below(80)
            // No byte is zero, and many have the highest bit.
            let value = Bytes((0..<length).map { _ in UInt8(1 + random.below(255)) })
            changes.append(Change(key: key, value: value))
            expected[key] = value
        }
        self.expected = expected
        keys = expected.keys.sorted { $0.lexicographicallyPrecedes($1) }
        try store.commit(1, changes)
        try store.commit(2, [.put("deleted", "1")])
        try store.engine.checkpointNow()
        try store.commit(3, [.delete("deleted")])
        try store.engine.checkpointNow()
        try store.engine.sweepHistoryNow()
    }

    var core: EngineCore {
        guard case .embedded(let engine) = store.engine else { preconditionFailure("the engine has files") }
        return engine.core
    }

    /// Looks keys up and walks, in both directions; all that is not damage is right.
    /// - Returns: the keys whose lookup met damage, and whether a walk did.
    func look(_ what: String, _ damagedPath: String) throws -> (failed: Set<Bytes>, hasWalkFailed: Bool) {
        let reader = try store.engine.makeReader()
        let snapshot = try reader.snapshot()
        var failed: Set<Bytes> = []
        for key in keys {
            do throws(StorageError) {
                let value = try bytes(snapshot, key)
                expectEqual(value, expected[key], "\(what): \(key)")
            } catch {
                expect(error.code == .corrupt && error.file == damagedPath, "\(what): \(error)")
                failed.insert(key)
            }
        }
        var hasWalkFailed = false
        for direction in [ScanDirection.forward, .backward] {
            let order = direction == .forward ? keys : keys.reversed()
            var count = 0
            do throws(StorageError) {
                let low = Bytes()
                let high = Bytes(repeating: 255, count: 500)
                var cursor = try snapshot.cursor(from: low.span.bytes, to: high.span.bytes, direction: direction)
                while try cursor.next() {
                    let entry = cursor.entry
                    expect(entry.key == order[count] && entry.value == expected[entry.key], "\(what): \(count)")
                    count += 1
                }
                expectEqual(count, keys.count, "\(what)")
            } catch {
                expect(error.code == .corrupt && error.file == damagedPath, "\(what): \(error)")
                hasWalkFailed = true
            }
        }
        return (failed, hasWalkFailed)
    }

    private func bytes(_ snapshot: borrowing EngineSnapshot, _ key: Bytes) throws(StorageError) -> Bytes? {
        guard let value = try snapshot.value(forKey: key.span.bytes) else { return nil }
        return value.bytes.withUnsafeBytes { Bytes($0) }
    }
}

/// Pages of an empty file: to read them is a fault.
private func makeUnreadable(_ start: UnsafeRawPointer, byteCount: Int) {
    let directory = TemporaryDirectory()
    let descriptor = open(directory.path(of: "empty"), O_RDWR | O_CREAT, 0o600)
    precondition(descriptor >= 0)
    let place = UnsafeMutableRawPointer(mutating: start)
    let mapped = mmap(place, byteCount, PROT_READ, MAP_SHARED | MAP_FIXED, descriptor, 0)
    precondition(mapped == place)
    close(descriptor)
}

@Suite(.timeLimit(.minutes(20)))
struct MapFaultTests {
    @Test(
        arguments: [false, true],
        [RunKind.entries, .documents])
    func `A page that cannot be read ends in damage for what needs it, whichever page it is`(
        isWarm: Bool, kind: RunKind
    ) throws {
        var page = 0
        var pages = 1
        while page < pages {
            let faulting = try FaultingStore(fileBytes: 1 << 20)
            let file = try #require(faulting.core.runs.current.files.joined().first { $0.kind == kind })
            pages = (file.part.byteCount + 4095) / 4096
            // What was verified is not looked at again by itself.
            if isWarm { _ = try faulting.look("before", "") }
            makeUnreadable(file.part.base + page * 4096, byteCount: 4096)
            let (failed, hasWalkFailed) = try faulting.look("page \(page)", file.path)
            let again = try faulting.look("page \(page), again", file.path)
            // Of a block that was verified before the fault, entries on other pages were still served.
            expect(again.failed.isSuperset(of: failed), "page \(page)")
            if !isWarm { expect(again.failed == failed && again.hasWalkFailed == hasWalkFailed, "page \(page)") }
            // A page of the index or the table may be one that everything needs; one of data is not.
            // Nothing reads the meta pages and free pages of an LMDB file.
            let isData = kind == .entries && (page + 1) * 4096 <= Int(file.footer.tableOffset) * 9 / 10
            if isData { expect(failed.count < faulting.keys.count && hasWalkFailed, "page \(page)") }
            #expect(throws: Never.self) { try faulting.store.commit(4, [.put("more", "1")]) }
            page += isWarm ? 1 : 3
        }
    }

    @Test
    func `A file that is cut under the engine is named by the calls that need it, and other files are served`() throws {
        let faulting = try FaultingStore(fileBytes: 16 << 10)
        let files = Array(faulting.core.runs.current.files.joined())
        expect(files.count > 2)
        let file = files[1]
        let (lowest, highest) = (Bytes(file.part.lowestKey), Bytes(file.part.highestKey))
        truncate(file.path, 4096)
        let (failed, hasWalkFailed) = try faulting.look("cut", file.path)
        expect(hasWalkFailed)
        expect(!failed.isEmpty)
        for key in failed {
            expect(!key.lexicographicallyPrecedes(lowest) && !highest.lexicographicallyPrecedes(key))
        }
        // A merge and a backup end, and leave the files as they are.
        try faulting.store.commit(4, [Change(key: faulting.keys[0], value: [1])])
        try faulting.store.engine.checkpointNow()
        let manifest = try Manifest.read(in: faulting.core.runs.directory)
        let backup = #expect(throws: StorageError.self) {
            try faulting.store.engine.backup(to: faulting.copies.path(of: "backup"))
        }
        expectEqual(backup?.code, .corrupt)
        let merge = #expect(throws: StorageError.self) { try faulting.store.engine.sweepHistoryNow() }
        expectEqual(merge?.code, .corrupt)
        let after = try Manifest.read(in: faulting.core.runs.directory)
        expect(Set(after.files).isSuperset(of: manifest.files.filter { $0 == file.number }))
    }

    @Test
    func `While files are cut, readers on other threads get right values or damage, and only of these files`() throws {
        let faulting = try FaultingStore(fileBytes: 16 << 10)
        let files = Array(faulting.core.runs.current.files.joined())
        let cut = files[1]
        let (lowest, highest) = (Bytes(cut.part.lowestKey), Bytes(cut.part.highestKey))
        let (keys, expected) = (faulting.keys, faulting.expected)
        let engine = faulting.store.engine
        let isStopping = Atomic<Bool>(false)
        let rounds = Atomic<Int>(0)
        let damage = Atomic<Int>(0)
        let wrong = Mutex<[String]>([])
        try withoutActuallyEscaping({ (thread: Int) in
            guard let reader = try? engine.makeReader() else { return }
            while !isStopping.load(ordering: .relaxed) {
                for key in keys {
                    let isCut = !key.lexicographicallyPrecedes(lowest) && !highest.lexicographicallyPrecedes(key)
                    let faults = MapFaults.settledCount
                    do {
                        let value = try reader.snapshot().bytes(key)
                        // A page may be lost between the last check and the copy of the value (decision 0030).
                        if value != expected[key], MapFaults.count == faults {
                            wrong.withLock { $0.append("\(key)") }
                        }
                    } catch {
                        damage.add(1, ordering: .relaxed)
                        let isDamage = (error as? StorageError)?.file == cut.path
                        if !isCut || !isDamage { wrong.withLock { $0.append("\(key): \(error)") } }
                    }
                }
                rounds.add(1, ordering: .relaxed)
            }
        }) { body in
            nonisolated(unsafe) let body = body
            let threads = try (0..<3).map { number in try SystemThread(name: "reader") { body(number) } }
            defer {
                isStopping.store(true, ordering: .relaxed)
                for thread in threads { thread.join() }
            }
            try waitUntil("all have read") { rounds.load(ordering: .relaxed) >= 3 }
            for page in (0...(cut.byteCount / 4096)).reversed() {
                truncate(cut.path, off_t(page * 4096))
                usleep(2_000)
            }
            let before = rounds.load(ordering: .relaxed)
            try waitUntil("all have read again") { rounds.load(ordering: .relaxed) >= before + 6 }
        }
        expect(damage.load(ordering: .relaxed) > 0)
        expectEqual(wrong.withLock { Array($0.prefix(5)) }, [])
    }

    @Test
    func `A fault of other memory goes to the handler that was there before`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { _ in _exit(7) }
            sigaction(SIGBUS, &action, nil)
            try readForeignPage()
        }
    }

    @Test
    func `A fault of other memory that nobody handles ends the process`() async {
        await #expect(processExitsWith: .signal(SIGBUS)) {
            signal(SIGBUS, SIG_DFL)
            try readForeignPage()
        }
    }
}

/// Opens an engine, then reads a page that is not one of its files.
private func readForeignPage() throws {
    // The process ends without removing the directories.
    let faulting = try FaultingStore(fileBytes: 1 << 20, on: .disk)
    let page = mmap(nil, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
    makeUnreadable(page, byteCount: 4096)
    print(page.load(as: UInt8.self))
    withExtendedLifetime(faulting) {}
}
