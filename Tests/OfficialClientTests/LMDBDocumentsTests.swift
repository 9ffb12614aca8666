// Documents read from the data directory with Python's lmdb package and the official protobuf classes, as
// docs/storage.md describes it.

import TestSupport
import Testing

@Suite(.serialized, .timeLimit(.minutes(20)))
struct LMDBDocumentsTests {
    private let directory = TemporaryDirectory("hearth-lmdb")

    @Test
    func `Any LMDB binding lists every document's name and fields as the API returns them`() throws {
        let data = directory.path(of: "data")
        for seed in 1...4 {
            let server = try ServerProcess(data: data, arguments: ["--log-level", "warning"])
            let expected = try OfficialClient.run(
                ["127.0.0.1:\(server.port)", "\(seed)"], program: "official_documents.py")
            expectEqual(expected.status, 0, "\(expected.text)")
            expectEqual(server.stop(), 0)
            let found = try OfficialClient.run([data], program: "lmdb_documents.py")
            expectEqual(found.status, 0, "\(found.text)")
            expectEqual(found.text, expected.text)
            expect(found.text.split(separator: "\n").count > 100)
        }
    }

    @Test
    func `The documents are listed as they are while commits, checkpoints and merges continue`() throws {
        let data = directory.path(of: "merging")
        do {
            let server = try ServerProcess(data: data, arguments: ["--log-level", "warning"])
            let written = try OfficialClient.run(
                ["127.0.0.1:\(server.port)", "7"], program: "official_documents.py")
            expectEqual(written.status, 0, "\(written.text)")
            expectEqual(server.stop(), 0)
        }
        let server = try ServerProcess(data: data, arguments: ["--log-level", "warning", "--memtable", "1MiB"])
        let listed = try OfficialClient.run(
            ["127.0.0.1:\(server.port)", data], program: "lmdb_while_merging.py")
        expectEqual(listed.status, 0, "\(listed.text)")
        let counts = listed.text.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
        expect(counts.count == 2 && counts.allSatisfy { $0 > 3 }, "\(listed.text)")
        expectEqual(server.stop(), 0)
    }
}
