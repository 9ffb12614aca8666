// hearth get and hearth query against a running server.

import Foundation
import TestSupport
import Testing

@Suite("get and query")
struct ReadingCommandTests {
    @Test("Documents are printed as lines of JSON, missing ones reported")
    func get() async throws {
        let directory = TemporaryDirectory("get")
        let server = try ServerProcess(data: directory.path(of: "data"))
        let client = try TestClient(server)
        try await client.set("c/x", number: 7)
        try await client.set("c/x/d/y", number: 8)
        await client.close()
        let from = "127.0.0.1:\(server.port)"
        let found = try HearthBinary.run([
            "get", "--from", from, "c/x", "projects/hearth/databases/(default)/documents/c/x/d/y",
        ])
        #expect(found.status == 0, "\(found.errors)")
        #expect(found.output == "{\"__name__\":\"c/x\",\"n\":7}\n{\"__name__\":\"c/x/d/y\",\"n\":8}\n")
        let missing = try HearthBinary.run(["get", "--from", from, "c/none", "c/x"])
        #expect(missing.status == 1)
        #expect(missing.output == "{\"__name__\":\"c/x\",\"n\":7}\n")
        #expect(missing.errors.contains("c/none"))
        let malformed = try HearthBinary.run(["get", "--from", from, "c"])
        #expect(malformed.status == 1)
        server.stop()
    }

    @Test("Queries filter, order, limit and count")
    func query() async throws {
        let directory = TemporaryDirectory("query")
        let server = try ServerProcess(data: directory.path(of: "data"))
        let client = try TestClient(server)
        for number in 1...4 { try await client.set("c/d\(number)", number: number) }
        try await client.set("c/d1/c/e", number: 9)
        await client.close()
        func run(_ words: [String]) throws -> [String] {
            let outcome = try HearthBinary.run(["query", "--from", "127.0.0.1:\(server.port)"] + words)
            #expect(outcome.status == 0, "\(outcome.errors)")
            return outcome.output.split(separator: "\n").map(String.init)
        }
        func line(_ path: String, _ number: Int) -> String { "{\"__name__\":\"\(path)\",\"n\":\(number)}" }
        #expect(try run(["c"]) == (1...4).map { line("c/d\($0)", $0) })
        #expect(try run(["c", "n >= 2", "n < 4"]) == [line("c/d2", 2), line("c/d3", 3)])
        #expect(try run(["c", "n in [1, 4]"]) == [line("c/d1", 1), line("c/d4", 4)])
        #expect(try run(["c", "--order-by", "n desc", "--limit", "2"]) == [line("c/d4", 4), line("c/d3", 3)])
        #expect(try run(["c", "--offset", "3"]) == [line("c/d4", 4)])
        #expect(try run(["c", "--select", "none"]) == (1...4).map { "{\"__name__\":\"c/d\($0)\"}" })
        #expect(try run(["c", "--group", "--count"]) == ["5"])
        #expect(try run(["c/d1/c", "n == 9"]) == [line("c/d1/c/e", 9)])
        let mistaken = try HearthBinary.run(["query", "c", "n=1"])
        #expect(mistaken.status == 2)
        #expect(mistaken.errors.contains("FIELD OPERATOR VALUE"))
        server.stop()
    }

    @Test("A server that cannot be reached is an error with status 1")
    func unreachable() throws {
        // Port 9 (discard) of this machine: nothing listens there.
        let outcome = try HearthBinary.run(["get", "--from", "127.0.0.1:9", "--timeout", "200ms", "c/x"])
        #expect(outcome.status == 1)
        #expect(!outcome.errors.isEmpty)
    }
}

@Suite("indexes")
struct IndexesCommandTests {
    @Test("A file of indexes is applied to a running server, listed, and used by queries")
    func apply() async throws {
        let directory = TemporaryDirectory("indexes")
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        let client = try TestClient(server)
        for number in 1...4 { try await client.set("c/d\(number)/g/e", number: number) }
        await client.close()
        let file = directory.path(of: "firestore.indexes.json")
        let json = """
            {"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [
                {"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "DESCENDING"}]}],
             "fieldOverrides": [{"collectionGroup": "g", "fieldPath": "n", "indexes": [
                {"order": "ASCENDING", "queryScope": "COLLECTION"},
                {"order": "ASCENDING", "queryScope": "COLLECTION_GROUP"}]},
                {"collectionGroup": "c", "fieldPath": "notes", "indexes": []}]}
            """
        try Data(json.utf8).write(to: URL(fileURLWithPath: file))
        let applied = try HearthBinary.run(["indexes", "apply", file, "--data", data])
        #expect(applied.status == 0, "\(applied.errors)")
        var listed = ""
        repeat {
            listed = try HearthBinary.run(["indexes", "list", "--data", data]).output
        } while listed.contains("BUILDING")
        #expect(listed.contains("READY\t{\"collectionGroup\":\"c\",\"fieldPath\":\"notes\",\"indexes\":[]}"))
        #expect(listed.split(separator: "\n").count == 3 && listed.contains("READY\t{\"collectionGroup\":\"c\""))
        let query = ["query", "--from", "127.0.0.1:\(server.port)", "g", "n >= 3", "--group"]
        #expect(try HearthBinary.run(query + ["--explain"]).output.contains("index (n ASC, __name__ ASC)"))
        #expect(try HearthBinary.run(query).output.split(separator: "\n").count == 2)
        server.stop()
        let offline = try HearthBinary.run(["indexes", "list", "--data", data])
        #expect(offline.output == listed, "\(offline.errors)")
        let checked = try HearthBinary.run(["check", "--data", data])
        #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
    }
}
