// Documents read from the data directory with Python's lmdb package and the official protobuf classes, as
// docs/storage.md describes it.

import TestSupport
import Testing

@Suite("Documents in LMDB files", .serialized, .timeLimit(.minutes(20)))
struct LMDBDocumentsTests {
    private let directory = TemporaryDirectory("hearth-lmdb")

    @Test("Any LMDB binding lists every document's name and fields as the API returns them")
    func listing() throws {
        let data = directory.path(of: "data")
        for seed in 1...4 {
            let server = try ServerProcess(data: data, arguments: ["--log-level", "warning"])
            let expected = try OfficialClient.run(
                ["127.0.0.1:\(server.port)", "\(seed)"], program: "official_documents.py")
            #expect(expected.status == 0, "\(expected.text)")
            #expect(server.stop() == 0)
            let found = try OfficialClient.run([data], program: "lmdb_documents.py")
            #expect(found.status == 0, "\(found.text)")
            #expect(found.text == expected.text)
            #expect(found.text.split(separator: "\n").count > 100)
        }
    }
}
