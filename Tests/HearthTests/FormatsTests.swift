// Directories that released versions have written: this version reads them, or upgrades them.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct FormatsTests {
    private static let folder = Repository.url("Tests/HearthTests/Formats")

    /// The archives beside the script that makes them.
    private static let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
        .filter { $0.hasSuffix(".tar.gz") }.map { String($0.dropLast(7)) }.sorted()

    private let directory = TemporaryDirectory("formats")

    private func run(_ arguments: [String]) throws -> String {
        let outcome = try HearthBinary.run(arguments)
        expectEqual(outcome.status, 0, "\(arguments): \(outcome.errors)")
        return outcome.output
    }

    private func export(_ collection: String, _ server: ServerProcess) throws -> [String] {
        try run(["export", "--collection", collection, "--quiet", "--address", "127.0.0.1:\(server.port)"])
            .split(separator: "\n").map(String.init)
    }

    @Test
    func `There is a directory of format 1`() {
        expect(Self.names.contains("format-1"))
    }

    @Test(arguments: names)
    func `A directory of a released format has its documents, indexes and rules`(name: String) throws {
        let unpacked = try HearthBinary.run(
            ["-xzf", Self.folder.appending(path: "\(name).tar.gz").path, "-C", directory.path],
            executable: "/bin/tar")
        expectEqual(unpacked.status, 0, "\(unpacked.errors)")
        let data = directory.path(of: "data")
        _ = try run(["upgrade", data])
        let checked = try run(["check", "--data", data])
        expect(checked.contains("no problems; 201 documents") && checked.contains("rules number 1"), "\(checked)")
        let server = try ServerProcess(data: data)
        let expected = try String(contentsOf: Self.folder.appending(path: "\(name).jsonl"), encoding: .utf8)
        let found = try export("books", server) + export("books/b001/reviews", server)
        expectEqual(found.sorted(), expected.split(separator: "\n").map(String.init).sorted())
        let indexes = try run(["indexes", "list", "--data", data])
        expect(indexes.contains("READY") && indexes.contains("\"title\""), "\(indexes)")
        expectEqual(server.stop(), 0)
        try expect(run(["check", "--data", data]).contains("no problems"))
    }
}
