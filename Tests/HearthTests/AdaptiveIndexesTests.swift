// Indexes on demand as an operator sees them: explain, the list, the log and the metrics of a real server.

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct AdaptiveIndexesTests {
    @Test
    func `Explain names the missing index; then the list, the log and the metrics have it, also after a restart`()
        async throws
    {
        let directory = TemporaryDirectory("adaptive")
        let data = directory.path(of: "data")
        let flags = ["--automatic-indexes", "adaptive", "--adaptive-index-demand", "20"]
        let server = try ServerProcess(data: data, arguments: flags)
        let client = try TestClient(server)
        for number in 1...30 { try await client.set("c/d\(number)", number: number) }
        await client.close()
        func run(_ words: [String], port: Int) throws -> String {
            let outcome = try HearthBinary.run(words + ["--address", "127.0.0.1:\(port)"])
            expectEqual(outcome.status, 0, "\(outcome.errors)")
            return outcome.output + outcome.errors
        }
        let query = ["query", "c", "n == 7"]
        let before = try run(query + ["--explain"], port: server.port)
        expect(before.contains("Missing index c (n): not requested, 0 of 20 documents read in vain"), "\(before)")
        expect(before.contains("CollectionScan"))
        try expectEqual(run(query, port: server.port), "{\"__name__\":\"c/d7\",\"n\":7}\n")
        try await eventually("the index is used") {
            let plan = try run(query + ["--explain"], port: server.port)
            return plan.contains("IndexScan (n ASC") && !plan.contains("Missing index")
        }
        try expectEqual(run(query, port: server.port), "{\"__name__\":\"c/d7\",\"n\":7}\n")
        let listed = try HearthBinary.run(["indexes", "list", "--data", data]).output
        expect(listed.hasPrefix("READY\t{\"collectionGroup\":\"c\",\"fieldPath\":\"n\""), "\(listed)")
        expect(listed.contains("\"adaptive\":true,\"lastUsed\":\"20"), "\(listed)")
        expect(server.process.waitForError("event=index_requested"))
        expect(server.process.waitForError("event=index_made"))
        expect(server.process.errors.contains("collection=c field=n kind=values"))
        let page = try #require(HTTPTestClient(port: server.port).request("GET", "/metrics"))
        let text = page.body
        expect(
            text.contains("\nhearth_adaptive_indexes 1\n") && text.contains("\nhearth_adaptive_indexes_made_total 1\n"))
        expectEqual(server.stop(), 0)

        // A tool that reads the directory uses the index and leaves it there.
        let offline = try HearthBinary.run(query + ["--data", data, "--explain"])
        expect(offline.status == 0 && (offline.output + offline.errors).contains("IndexScan (n ASC"))
        try expectEqual(HearthBinary.run(["check", "--data", data]).status, 0)
        let again = try ServerProcess(data: data, arguments: flags)
        try expect(run(query + ["--explain"], port: again.port).contains("IndexScan (n ASC"))
        expectEqual(again.stop(), 0)
    }
}
