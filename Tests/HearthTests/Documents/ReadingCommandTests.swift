// hearth get and hearth query against a running server.

import Foundation
import QueryEngine
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(20)))
struct ReadingCommandTests {
    @Test
    func `Documents are printed as lines of JSON, missing ones reported`() async throws {
        let directory = TemporaryDirectory("get")
        let server = try ServerProcess(data: directory.path(of: "data"))
        let client = try TestClient(server)
        try await client.set("c/x", number: 7)
        try await client.set("c/x/d/y", number: 8)
        await client.close()
        let from = "127.0.0.1:\(server.port)"
        let found = try HearthBinary.run([
            "get", "--address", from, "c/x", "projects/hearth/databases/(default)/documents/c/x/d/y",
        ])
        expectEqual(found.status, 0, "\(found.errors)")
        expectEqual(found.output, "{\"__name__\":\"c/x\",\"n\":7}\n{\"__name__\":\"c/x/d/y\",\"n\":8}\n")
        let missing = try HearthBinary.run(["get", "--address", from, "c/none", "c/x"])
        expectEqual(missing.status, 1)
        expectEqual(missing.output, "{\"__name__\":\"c/x\",\"n\":7}\n")
        expect(missing.errors.contains("c/none"))
        let malformed = try HearthBinary.run(["get", "--address", from, "c"])
        expect(malformed.status == 2 && malformed.errors.contains("is a collection"), "\(malformed.errors)")
        expectEqual(server.stop(), 0)
    }

    @Test
    func `Queries filter, order, limit and count`() async throws {
        let directory = TemporaryDirectory("query")
        let server = try ServerProcess(data: directory.path(of: "data"))
        let client = try TestClient(server)
        for number in 1...4 { try await client.set("c/d\(number)", number: number) }
        try await client.set("c/d1/c/e", number: 9)
        await client.close()
        func run(_ words: [String]) throws -> [String] {
            let outcome = try HearthBinary.run(["query", "--address", "127.0.0.1:\(server.port)"] + words)
            expectEqual(outcome.status, 0, "\(outcome.errors)")
            return outcome.output.split(separator: "\n").map(String.init)
        }
        func line(_ path: String, _ number: Int) -> String { "{\"__name__\":\"\(path)\",\"n\":\(number)}" }
        try expectEqual(run(["c"]), (1...4).map { line("c/d\($0)", $0) })
        try expectEqual(run(["c", "n >= 2", "n < 4"]), [line("c/d2", 2), line("c/d3", 3)])
        try expectEqual(run(["c", "n in [1, 4]"]), [line("c/d1", 1), line("c/d4", 4)])
        try expectEqual(run(["c", "--order-by", "n desc", "--limit", "2"]), [line("c/d4", 4), line("c/d3", 3)])
        try expectEqual(run(["c", "--offset", "3"]), [line("c/d4", 4)])
        try expectEqual(run(["c", "--select", "none"]), (1...4).map { "{\"__name__\":\"c/d\($0)\"}" })
        try expectEqual(run(["c", "--group", "--count"]), ["5"])
        try expectEqual(run(["c/d1/c", "n == 9"]), [line("c/d1/c/e", 9)])
        try expectEqual(
            run(["c", "--where", "n > 1", "--where=n<=3", "--order-by", "n:desc"]), [line("c/d3", 3), line("c/d2", 2)])
        try expectEqual(run(["c", "--count", "--sum", "n", "--avg", "n"]), ["count\t4", "sum n\t10", "avg n\t2.5"])
        try expectEqual(run(["c", "--avg", "n", "--where", "n >= 3"]), ["3.5"])
        let pipeline = "collection(c) | where(n > 1) | sort(n desc) | limit(2)"
        try expectEqual(run(["--pipeline", pipeline]), [line("c/d4", 4), line("c/d3", 3)])
        try expectEqual(run(["--pipeline", "collection(c) | aggregate(total: sum(n))"]), ["{\"total\":10}"])
        try expect(run(["--pipeline", pipeline, "--explain"]).contains { $0.contains("Limit 2") })
        let both = try HearthBinary.run(["query", "--address", "127.0.0.1:\(server.port)", "c", "--pipeline", pipeline])
        expectEqual(both.status, 2)
        expectEqual(server.stop(), 0)
    }

    @Test
    func `The notation of a value gives its type`() throws {
        let directory = TemporaryDirectory("query-values")
        let data = directory.path(of: "data")
        let lines = [
            #"{"__name__":"bool","v":true}"#, #"{"__name__":"bytes","v":{"$bytes":"aGk="}}"#,
            #"{"__name__":"double","v":3.5}"#,
            #"{"__name__":"integer","v":3}"#, #"{"__name__":"list","v":["red","blue"]}"#,
            #"{"__name__":"nan","v":{"$double":"NaN"}}"#,
            #"{"__name__":"null","v":null}"#, #"{"__name__":"reference","v":{"$reference":"c/list"}}"#,
            #"{"__name__":"text","v":"two words"}"#, #"{"__name__":"time","v":{"$timestamp":"2026-01-31T12:00:00Z"}}"#,
            #"{"__name__":"word","v":"3","a b":1}"#,
        ]
        let file = directory.path(of: "c.jsonl")
        try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: file))
        let server = try ServerProcess(data: data)
        let loaded = try HearthBinary.run([
            "load", file, "--collection", "c", "--address", "127.0.0.1:\(server.port)", "--quiet",
        ])
        expectEqual(loaded.status, 0, "\(loaded.errors)")
        // While a server runs on the directory it is the one to answer.
        let asked = try HearthBinary.run(["query", "c", "--data", data, "--count"])
        expect(asked.status == 0 && asked.output == "11\n", "\(asked.errors)")
        let named = try HearthBinary.run(
            ["query", "c", "--address", "127.0.0.1:\(server.port)", "--count"], environment: ["HEARTH_DATA": "/nowhere"]
        )
        expect(named.status == 0 && named.output == "11\n", "\(named.errors)")
        let both = try HearthBinary.run(["query", "c", "--address", "127.0.0.1:\(server.port)", "--data", data])
        expect(both.status == 2 && both.errors.contains("cannot be combined"))
        expectEqual(server.stop(), 0)
        /// The ids that a condition finds, asked of the directory.
        func find(_ condition: String) throws -> [String] {
            let outcome = try HearthBinary.run([
                "query", "c", "--data", data, "--select", "__name__", "--where", condition,
            ])
            expectEqual(outcome.status, 0, "\(condition): \(outcome.errors)")
            return outcome.output.split(separator: "\n").map {
                String($0.dropFirst(#"{"__name__":"c/"#.count).dropLast(2))
            }
        }
        for (condition, found) in [
            ("v == 3", ["integer"]), ("v = 3.0", ["integer"]), ("v=3.5", ["double"]), ("v == \"3\"", ["word"]),
            ("v > 3", ["double"]), ("v == NaN", ["nan"]), ("v == null", ["null"]), ("v == true", ["bool"]),
            ("v == two words", ["text"]), ("v == \"two words\"", ["text"]),
            ("v == 2026-01-31T13:00:00+01:00", ["time"]),
            ("v == 2026-01-31", []), ("v == /c/list", ["reference"]), ("v == \"/c/list\"", []),
            (#"v == {"$bytes":"aGk="}"#, ["bytes"]), (#"v == ["red", "blue"]"#, ["list"]),
            ("v array-contains red", ["list"]), ("v array-contains-any green, blue", ["list"]),
            ("v in 3,true,two words", ["bool", "integer", "text"]), (#"v in [3, "3"]"#, ["integer", "word"]),
            ("__name__ >= time", ["time", "word"]), ("__name__ == c/list", ["list"]),
            ("__name__ in list,nan", ["list", "nan"]),
            ("`a b` == 1", ["word"]), ("`a b`==1", ["word"]),
        ] {
            try expectEqual(find(condition), found, "\(condition)")
        }
        let path = try HearthBinary.run(["get", "--data", data, "c/integer"])
        expectEqual(path.output, "{\"__name__\":\"c/integer\",\"v\":3}\n", "\(path.errors)")
    }

    @Test(arguments: [
        ("n ~ 1", "is not an operator"), ("n", "FIELD OPERATOR VALUE"), ("n ==", "FIELD OPERATOR VALUE"),
        ("== 1", "FIELD OPERATOR VALUE"),
        ("n == [1", "is invalid"), ("n == 99999999999999999999", "is invalid"),
        ("n == /c", "is not the path of a document"),
        (#"n == {"$timestmap": 1}"#, "the forms are $double"),
    ])
    func `What is not understood is said, with status 2`(condition: String, message: String) throws {
        let outcome = try HearthBinary.run(["query", "c", "--where", condition])
        expectEqual(outcome.status, 2)
        expect(outcome.errors.contains(message), "\(outcome.errors)")
        let missing = try HearthBinary.run(["query", "c", "--data", "/nowhere/at/all"])
        expect(missing.status == 1 && missing.errors.contains("not a Hearth data directory"))
    }

    @Test
    func `Every client command takes the server's address by one flag, its older names and one variable`() throws {
        let directory = TemporaryDirectory("address")
        let server = try ServerProcess(data: directory.path(of: "data"))
        defer { expectEqual(server.stop(), 0) }
        let address = "127.0.0.1:\(server.port)"
        let nowhere = ["HEARTH_ADDRESS": "127.0.0.1:9"]
        let file = directory.path(of: "c.jsonl")
        try Data(#"{"__name__":"x","n":1}"#.utf8).write(to: URL(fileURLWithPath: file))
        let commands = [
            ["load", file, "--collection", "c", "--quiet"], ["export", "--collection", "c", "--quiet"], ["get", "c/x"],
            ["query", "c"],
        ]
        for command in commands {
            for flag in ["--address", "--to", "--from"] {
                let outcome = try HearthBinary.run(command + [flag, address], environment: nowhere)
                expectEqual(outcome.status, 0, "\(command[0]) \(flag): \(outcome.errors)")
            }
            let fromEnvironment = try HearthBinary.run(command, environment: ["HEARTH_ADDRESS": address])
            expectEqual(fromEnvironment.status, 0, "\(command[0]): \(fromEnvironment.errors)")
            let twice = try HearthBinary.run(command + ["--to", address, "--address", address])
            expect(twice.status == 2 && twice.errors.contains("--address may be given only once"))
        }
    }

    @Test
    func `A server that cannot be reached is an error with status 1`() throws {
        // Port 9 (discard) of this machine: nothing listens there.
        let outcome = try HearthBinary.run(["get", "--address", "127.0.0.1:9", "--timeout", "200ms", "c/x"])
        expectEqual(outcome.status, 1)
        expect(!outcome.errors.isEmpty)
    }
}

@Suite(.timeLimit(.minutes(20)))
struct IndexesCommandTests {
    @Test
    func `A file of indexes is applied to a running server, listed, and used by queries`() async throws {
        let directory = TemporaryDirectory("indexes")
        let data = directory.path(of: "data")
        let server = try ServerProcess(data: data)
        let client = try TestClient(server)
        for number in 1...4 { try await client.set("c/d\(number)/g/e", number: number) }
        await client.close()
        let file = directory.path(of: "firestore.indexes.json")
        let json = """
            {"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION", "fields": [
                {"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "DESCENDING"}]},
                {"collectionGroup": "t", "queryScope": "COLLECTION_GROUP", "fields": [
                {"fieldPath": "text", "searchConfig": {"textSpec": {}}},
                {"fieldPath": "place", "searchConfig": {"geoSpec": {}}}, {"fieldPath": "__name__"}],
                "searchIndexOptions": {"textLanguage": "de-AT"}}],
             "fieldOverrides": [{"collectionGroup": "g", "fieldPath": "n", "indexes": [
                {"order": "ASCENDING", "queryScope": "COLLECTION"},
                {"order": "ASCENDING", "queryScope": "COLLECTION_GROUP"}]},
                {"collectionGroup": "c", "fieldPath": "notes", "indexes": []}]}
            """
        try Data(json.utf8).write(to: URL(fileURLWithPath: file))
        let applied = try HearthBinary.run(["indexes", "apply", file, "--data", data])
        expectEqual(applied.status, 0, "\(applied.errors)")
        var listed = ""
        repeat {
            listed = try HearthBinary.run(["indexes", "list", "--data", data]).output
        } while listed.contains("BUILDING")
        expect(listed.contains("READY\t{\"collectionGroup\":\"c\",\"fieldPath\":\"notes\",\"indexes\":[]}"))
        expect(listed.split(separator: "\n").count == 4 && listed.contains("READY\t{\"collectionGroup\":\"c\""))
        expect(listed.contains("{\"fieldPath\":\"place\",\"searchConfig\":{\"geoSpec\":{}}}],"))
        expect(listed.contains("\"searchIndexOptions\":{\"textLanguage\":\"de\"}}"))
        let query = ["query", "--address", "127.0.0.1:\(server.port)", "g", "n >= 3", "--group"]
        try expect(HearthBinary.run(query + ["--explain"]).output.contains("IndexScan (n ASC, __name__ ASC)"))
        try expectEqual(HearthBinary.run(query).output.split(separator: "\n").count, 2)
        expectEqual(server.stop(), 0)
        let offline = try HearthBinary.run(["indexes", "list", "--data", data])
        // Sizes count what is in runs, and that changes with the last checkpoint.
        let lines = offline.output.split(separator: "\n").map { $0.split(separator: "\t") }
        let listedLines = listed.split(separator: "\n").map { $0.split(separator: "\t") }
        expectEqual(lines.map { Array($0.prefix(2)) }, listedLines.map { Array($0.prefix(2)) }, "\(offline.errors)")
        expect(lines.contains { $0.count == 3 && $0[2].hasPrefix("about 4 entries, ") }, "\(offline.output)")
        let checked = try HearthBinary.run(["check", "--data", data])
        expectEqual(checked.status, 0, "\(checked.output)\(checked.errors)")
    }

    @Test(arguments: [
        (
            #"{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "a", "indexes": []}, "#
                + #"{"collectionGroup": "c", "fieldPath": "a", "indexes": []}]}"#,
            "c.a is overridden twice"
        ),
        (
            #"{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "*", "ttl": true}]}"#,
            "ttl needs the name of a field"
        ),
        (
            #"{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "__name__", "order": "ASCENDING"}, "#
                + #"{"fieldPath": "a", "order": "ASCENDING"}]}]}"#,
            "no field may follow __name__"
        ),
        (
            #"{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "a", "order": "ASCENDING"}, "#
                + #"{"fieldPath": "b", "searchConfig": {"textSpec": {}}}]}]}"#,
            "all fields of an index for searches have a searchConfig"
        ),
        (
            #"{"indexes": [{"collectionGroup": "c", "fields": [{"fieldPath": "b", "searchConfig": {"textSpec": {}}}], "#
                + #""searchIndexOptions": {"textLanguage": "xx"}}]}"#,
            "Languages are: ar, ca"
        ),
        (#"{"indexes": 5}"#, "invalid firestore.indexes.json"),
        (
            #"{"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTIONS", "fields": [{"fieldPath": "a", "#
                + #""order": "ASCENDING"}]}]}"#,
            #"'queryScope' must be COLLECTION or COLLECTION_GROUP, not "COLLECTIONS""#
        ),
        (#"{"indexes": [{"collectionGroup": "c", "field": []}]}"#, "'fields' of an index of c is missing"),
        (
            #"{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "a", "indexes": [{"order": "ASC"}]}]}"#,
            "an index of a field override has neither order nor arrayConfig CONTAINS"
        ),
    ])
    func `A file that makes no sense is refused in words, by a server and without one`(json: String, words: String)
        throws
    {
        let directory = TemporaryDirectory("indexes")
        let data = directory.path(of: "data")
        let file = directory.path(of: "firestore.indexes.json")
        try Data(json.utf8).write(to: URL(fileURLWithPath: file))
        let server = try ServerProcess(data: data)
        let served = try HearthBinary.run(["indexes", "apply", file, "--data", data])
        expect(served.status == 1 && served.errors.contains(words), "\(served.errors)")
        expectEqual(server.stop(), 0)
        let offline = try HearthBinary.run(["indexes", "apply", file, "--data", data])
        expect(offline.status == 1 && offline.errors.contains(words), "\(offline.errors)")
        try expectEqual(HearthBinary.run(["indexes", "list", "--data", data]).output, "")
    }
}
