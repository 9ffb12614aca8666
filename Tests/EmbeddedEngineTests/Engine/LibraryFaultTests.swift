// Pages of LMDB files that cannot be read while liblmdb writes a file, or while a directory is checked: an error that
// names the file, and the process lives.

import Basics
import EngineTestSupport
import Glibc
import Storage
import TestSupport
import Testing

@testable import EmbeddedEngine
@testable import FileSystem

@Suite(.timeLimit(.minutes(20)))
struct LibraryFaultTests {
    let directory = TemporaryDirectory()

    private func append(_ numbers: Range<Int>, to file: LMDBAppender) throws(StorageError) {
        for number in numbers {
            let key = Bytes("key \(10_000 + number)".utf8)
            var failure: StorageError?
            key.withUnsafeBytes { key in
                do throws(StorageError) {
                    try file.append(key, byteCount: 500) { $0.initializeMemory(as: UInt8.self, repeating: 7) }
                } catch {
                    failure = error
                }
            }
            if let failure { throw failure }
        }
    }

    @Test
    func `A page that liblmdb wrote and cannot read again ends the writing of the file, whichever page it is`() throws {
        var failed: [Int] = []
        for page in 0..<30 {
            let path = directory.path(of: "\(page).mdb")
            let file = try LMDBAppender(path)
            try append(0..<200, to: file)
            try file.commit()
            let pages = Files.read(path).count / 4096
            guard page < pages else { break }
            // This page, and those after it.
            expectEqual(truncate(path, off_t(page * 4096)), 0)
            do throws(StorageError) {
                try append(200..<400, to: file)
                try file.commit()
            } catch {
                expect(error.code == .inputOutput && error.file == path, "page \(page): \(error)")
                failed.append(page)
            }
            file.close()
        }
        // Without the meta pages or the last leaf nothing can be added.
        expect(failed.starts(with: [0, 1, 2]))
        let file = try LMDBAppender(directory.path(of: "again.mdb"))
        try append(0..<400, to: file)
        try file.commit()
        file.close()
        var count = 0
        try LMDBReader.forEach(directory.path(of: "again.mdb")) { _, value in
            count += value.allSatisfy { $0 == 7 } ? 1 : 0
            return true
        }
        expectEqual(count, 400)
    }

    private var entries: [RunEntry] {
        (0..<300).map { number in
            let byte = UInt8(truncatingIfNeeded: number)
            let value = Bytes(repeating: byte, count: number % 50 == 0 ? 9_000 : 300)
            return RunEntry(key: Bytes("\u{10}\(10_000 + number)".utf8), version: 1, value: value)
        }
    }

    @Test
    func `A page that cannot be read when its sum is made ends the writing of the file`() throws {
        try TestRun.write(entries, in: directory.path, number: 1, kind: .documents)
        let pages = Files.read(directory.path(of: RunFormat.fileNames(1, .documents)[0])).count / 4096
        expect(pages > 20)
        for page in 0..<pages {
            let path = directory.path(of: RunFormat.fileNames(2, .documents)[0])
            let watch = DiskWatch.begin(directory.path) { change, call in
                // The whole file is noted just before its sums are made.
                if case .write(_, let bytes, 0) = change, bytes.count == pages * 4096 {
                    expectEqual(truncate(path, off_t(page * 4096)), 0)
                }
                return call()
            }
            let error = #expect(throws: StorageError.self) {
                try TestRun.write(entries, in: directory.path, number: 2, kind: .documents)
            }
            watch.end()
            expect(error?.code == .inputOutput && error?.file == path, "page \(page): \(error.debugDescription)")
        }
    }

    @Test
    func `A file that is cut or changed while it is checked is a finding, and the check ends`() throws {
        try TestRun.write(entries, in: directory.path, number: 1, kind: .documents)
        let path = directory.path(of: RunFormat.fileNames(1, .documents)[0])
        let whole = Files.read(path)
        for page in 0..<(whole.count / 4096) {
            for isCut in [true, false] {
                let file = try RunFile(directory: directory.path, number: 1, kind: .documents)
                // It was verified before.
                try file.part.verifyPages()
                var bytes = whole
                bytes[page * 4096 + 100] ^= 1
                if isCut { truncate(path, off_t(page * 4096)) } else { Files.write(bytes, to: path) }
                var report = EngineCheck.Report()
                let error = #expect(throws: StorageError.self) { try DocumentCheck.run(file, &report) }
                expect(error?.code == .corrupt && error?.file == path && error?.offset == page * 4096)
                Files.write(whole, to: path)
            }
        }
        let file = try RunFile(directory: directory.path, number: 1, kind: .documents)
        var report = EngineCheck.Report()
        try DocumentCheck.run(file, &report)
        expectEqual(report.problems, [])
    }
}
