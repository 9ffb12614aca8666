// Directories that cannot be listed, and files that cannot be looked at: what is not known is not missing.

import CWriteFaults
import EngineTestSupport
import Glibc
import Storage
import StorageEngines
import TestSupport
import Testing

@testable import EmbeddedEngine

@Suite(.serialized, .timeLimit(.minutes(20)))
struct LookFaultTests {
    private let directory = TemporaryDirectory()

    @Test
    func `A log that cannot be listed to its end is not opened, and nothing is lost`() throws {
        let (data, killed) = (directory.path(of: "looked-at"), directory.path(of: "killed"))
        let store = try Store(data)
        let value = String(repeating: "x", count: 40 << 10)
        for version in 1...4 as ClosedRange<UInt64> { try store.commit(version, [.put("k\(version)", value)]) }
        Files.copyTree(data, to: killed)
        try store.engine.close()
        Files.remove(data)
        Files.copyTree(killed, to: data)
        let names = Files.names(in: data + "/log")
        expect(names.count { $0.hasSuffix(".log") } >= 4)
        defer { fail_directory_reads("", 0, 0) }
        for count in 0...(names.count + 2) {
            fail_directory_reads("looked-at/log", Int32(count), EIO)
            let failure = #expect(throws: StorageError.self, "\(count) entries") { try Store(data) }
            expectEqual(failure?.code, .inputOutput, "\(count) entries")
        }
        fail_directory_reads("", 0, 0)
        let again = try Store(data)
        expectEqual(again.replayed, [1, 2, 3, 4])
        try again.engine.close()
        try expectClean(data)
    }

    @Test(arguments: ["IDENTITY", "TIMELINE"])
    func `A file that cannot be looked at is not made again`(name: String) throws {
        let data = directory.path(of: "data")
        try Store(data).engine.close()
        let path = "\(data)/\(name)"
        let bytes = Files.read(path)
        Files.remove(path)
        // A link to itself stands for a disk that does not answer.
        expectEqual(symlink(path, path), 0)
        #expect(throws: StorageError.self) { try Store(data) }
        Files.remove(path)
        Files.write(bytes, to: path)
        try Store(data).engine.close()
        expectEqual(Files.read(path), bytes)
    }
}
